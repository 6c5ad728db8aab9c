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
_SOURCES = re.compile(r"\.(?:cuh?|[ch](?:pp|xx|c|h)?|inl)\Z")
_DEFINED = re.compile(rb"compile_definitions\s*\(([^)]{1,2000})\)|-D(\w+(?:=\w*)?)|\(\s*[\"'](\w+)[\"']\s*,")
_NAMED_FOR_ROCM = re.compile(r"(?=\w*_)(?:[A-Z0-9]+_)*(?:HIP|ROCM|AMDGPU)(?:_[A-Z0-9]+)*")
_DENIES = re.compile(r"(?:^|_)(?:NO|NOT|NON|DISABLE|DISABLED|WITHOUT|SKIP|OFF)(?:_|$)")
"""A name that says what is not: its number on ROCm is anybody's guess."""
_WORD = re.compile(rb"\w+(?:=\w*)?")


def own_macros(
    root: Path, seen: Iterable[Look], max_file_bytes: int
) -> tuple[dict[str, tuple[int | None, int | None]], tuple[str, ...]]:
    """Return the macros that a project defines as one number on ROCm and as another elsewhere, and those beyond 64.

    They are its files', and those named for ROCm that its builds define. Those that files contradict each other about
    are left out, and those that a build defines, too, or another way than as 1: a branch is never dropped on a guess.
    """
    seen = list(seen)
    found: dict[str, tuple[int | None, int | None]] = {}
    wrong: set[str] = set()
    for one in seen:
        wrong.update(one.defines)
        for name, values in one.macros.items():
            if found.setdefault(name, values) != values:
                wrong.add(name)
    wrong |= _defined_elsewhere(root, seen, set(found) - wrong, max_file_bytes)
    for one in seen:
        if _BUILDS.search(one.path):
            for name, value in _built(root, one.path, max_file_bytes):
                believed = _NAMED_FOR_ROCM.fullmatch(name) and not _DENIES.search(name) and value in {"", "1"}
                if not believed or found.setdefault(name, (1, None)) != (1, None):
                    wrong.add(name)
    known = {name.decode() for name in ROCM.keys() | NVIDIA.keys()} - {name.decode() for name in OWN}
    names = sorted(found.keys() - wrong - known)
    return {name: found[name] for name in names[:_MOST]}, tuple(names[_MOST:])


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


def _defined_elsewhere(root: Path, seen: Iterable[Look], names: set[str], max_file_bytes: int) -> set[str]:
    """Return the macros that a source defines which says nothing of ROCm."""
    wrong: set[str] = set()
    if not names:
        return wrong
    any_name = b"|".join(re.escape(name.encode()) for name in names)
    definition = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+(" + any_name + rb")\b", re.MULTILINE)
    for one in seen:
        if one.macros or not _SOURCES.search(one.path):
            continue
        try:
            data, _ = read_steady(root, one.path, max_file_bytes)
        except NotReadError:
            continue
        wrong.update(name.decode() for name in definition.findall(data))
    return wrong


def _built(root: Path, path: str, max_file_bytes: int) -> set[tuple[str, str]]:
    """Return the macros that a build defines, each with its value; empty where none is said."""
    try:
        data, _ = read_steady(root, path, max_file_bytes)
    except NotReadError:
        return set()
    words = {word for texts in _DEFINED.findall(data) for text in texts for word in _WORD.findall(text)}
    pairs = (word.decode().partition("=") for word in words)
    return {(name, value) for name, _, value in pairs}
