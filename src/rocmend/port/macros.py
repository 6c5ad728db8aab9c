"""The macros by which a project tells ROCm from CUDA, wherever it defines them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from rocmend.port.cuda.conditions import NVIDIA, OWN, ROCM
from rocmend.port.look import Look
from rocmend.port.pool import Macros
from rocmend.port.records import Language
from rocmend.port.steady import NotReadError, read_steady

__all__ = ["naming", "own_macros"]

_MOST = 64
_BUILDS = re.compile(r"(?:^|/)(?:CMakeLists\.txt|[^/]*\.cmake|setup\.py|[Mm]akefile|[^/]*\.mk)\Z")
_DEFINED = re.compile(rb"compile_definitions\s*\(([^)]{1,2000})\)|-D(\w+)|\(\s*[\"'](\w+)[\"']\s*,")
_FOR_ROCM = re.compile(rb"(?=\w*_)(?:[A-Z0-9]+_)*(?:HIP|ROCM|AMDGPU)(?:_[A-Z0-9]+)*")
_WORD = re.compile(rb"\w+")


def own_macros(root: Path, seen: Iterable[Look], max_file_bytes: int) -> dict[str, tuple[int | None, int | None]]:
    """Return the macros that a project defines as one number on ROCm and as another elsewhere.

    They are its files', and those named for ROCm that its builds define. Those that files contradict each other about
    are left out.
    """
    seen = list(seen)
    found: dict[str, tuple[int | None, int | None]] = {}
    wrong: set[str] = set()
    for one in seen:
        wrong.update(one.defines)
        for name, values in one.macros.items():
            if found.setdefault(name, values) != values:
                wrong.add(name)
    for one in seen:
        if _BUILDS.search(one.path):
            found |= {name: (1, None) for name in _built(root, one.path, max_file_bytes) if name not in found}
    known = {name.decode() for name in ROCM.keys() | NVIDIA.keys()} - {name.decode() for name in OWN}
    return {name: found[name] for name in sorted(found.keys() - wrong - known)[:_MOST]}


def naming(root: Path, seen: Iterable[Look], own: Macros, max_file_bytes: int) -> Iterator[Look]:
    """Yield the CUDA sources in which one of the macros stands in a condition."""
    names = b"|".join(re.escape(name.encode()) for name in own)
    asks = re.compile(rb"^[ \t]*#[ \t]*(?:el)?if[^\n]*\b(?:" + names + rb")\b", re.MULTILINE)
    for one in seen:
        if one.reads is not Language.CUDA:
            continue
        try:
            data, _ = read_steady(root, one.path, max_file_bytes)
        except NotReadError:
            continue
        if asks.search(data):
            yield one


def _built(root: Path, path: str, max_file_bytes: int) -> set[str]:
    """Return the macros named for ROCm that a build defines."""
    try:
        data, _ = read_steady(root, path, max_file_bytes)
    except NotReadError:
        return set()
    words = {word for texts in _DEFINED.findall(data) for text in texts for word in _WORD.findall(text)}
    return {word.decode() for word in words if _FOR_ROCM.fullmatch(word)}
