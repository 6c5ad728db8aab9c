"""What a project does for ROCm already, and what of that is missing on the targets asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from rocmend.core.units import count_text
from rocmend.port.records import Analysis
from rocmend.port.state import generations
from rocmend.port.steady import NotReadError, read_steady
from rocmend.port.survey import Survey
from rocmend.port.walk import FoundFile

__all__ = ["RocmSupport", "rocm_support"]

_BUILDS = ("setup.py", "CMakeLists.txt", "Makefile", "makefile", "meson.build")
_HIPIFY = re.compile(rb"\bhipify|hipconvertinplace|cuda_to_hip", re.IGNORECASE)
_HIP_BUILD = re.compile(
    rb"enable_language\s*\(\s*HIP|find_package\s*\(\s*(?:hip|HIP|ROCM)\b|\bhipcc\b|LANGUAGES[^)]{0,200}\bHIP\b|\bROCM_HOME\b"
    rb"|version\.hip\b"
)
_TARGET = re.compile(rb"\bgfx[0-9a-f]{3,4}\b")
_FORK = re.compile(rb"github\.com/((?:ROCm|ROCmSoftwarePlatform|AMD-AIG-AIMA)/[\w.-]{1,80})", re.IGNORECASE)
_HIP_FOLDERS = frozenset(("hip", "rocm", "amd"))
_MOST_NAMES = 4


class RocmSupport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a project does for ROCm itself.

    Attributes:
        ways: How it supports ROCm, each with where.
        missing: What of it is missing on the targets asked for.
    """

    ways: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


def rocm_support(root: Path, files: Sequence[FoundFile], found: Survey, analysis: Analysis, most: int) -> RocmSupport:
    """Return what a project does for ROCm itself, without what ports of rocmend brought.

    Args:
        root: Its folder.
        files: Those that rules may read.
        found: What it is made of.
        analysis: What rules found in it.
        most: Larger files are not read.
    """
    ours = {entry.path for port in generations(root) for entry in port.manifest.entries} if root.is_dir() else set()
    paths = [file.path for file in files if file.path not in ours]
    cuda = set(found.cuda)
    marked = [path for path in found.uses("rocm") if path not in ours]
    sources = [path for path in marked if path in cuda]
    modules = [path for path in marked if path not in cuda and PurePosixPath(path).name not in _BUILDS]
    hip = [path for path in paths if path.endswith((".hip", ".hip.cpp", ".hip.h")) or _in_hip_folder(path)]
    builds = {path: _read(root, path, most) for path in paths if _is_build(path)}
    hipified = [path for path, data in builds.items() if _HIPIFY.search(data)]
    built = [path for path, data in builds.items() if _HIP_BUILD.search(data)]
    named = [path for path in found.own_rocm if path not in ours]
    macros = [name for name, (here, elsewhere) in analysis.macros.items() if here and not elsewhere]
    forks = sorted({name.decode() for name in _FORK.findall(_read(root, "README.md", most))})[:2]
    by = f" ({', '.join(macros[:_MOST_NAMES])})" if macros else ""
    ways = (
        _way("branches for ROCm in", sources, "C++ file", by),
        _way("HIP sources:", hip, "file"),
        _way("a build for HIP:", built, ""),
        _way("hipify:", hipified, ""),
        _way("torch.version.hip or the like in", modules, "Python file"),
        _way("files for ROCm:", named, ""),
        f"a fork for AMD GPUs, {', '.join(forks)}" if forks else "",
    )
    missing = [text for path in built for text in _not_built(path, builds[path], analysis.targets)]
    missing += [
        f"{issue.path}:{issue.line} builds HIP without USE_ROCM, and what a port adds is compiled only with it"
        for issue in analysis.issues
        if issue.rule == "BL16"
    ]
    missing += [
        f"{path} works with other than 32 lanes on ROCm: {count_text(count, 'place')} beside it to decide by hand"
        for path, count in sorted(_widths(analysis).items())
    ]
    return RocmSupport(tuple(way for way in ways if way), tuple(missing) if any(ways) else ())


def _widths(analysis: Analysis) -> dict[str, int]:
    found: dict[str, int] = {}
    for issue in analysis.issues:
        if issue.rule == "CU07" or "works with other than 32 lanes" in issue.message:
            found[issue.path] = found.get(issue.path, 0) + 1
    return found


def _way(what: str, paths: Sequence[str], unit: str, more: str = "") -> str:
    if not paths:
        return ""
    if unit and len(paths) > 1:
        return f"{what} {count_text(len(paths), unit)}{more}, {paths[0]} …"
    return f"{what} {', '.join(paths[:_MOST_NAMES])}{' …' if len(paths) > _MOST_NAMES else ''}{more}"


def _in_hip_folder(path: str) -> bool:
    where = PurePosixPath(path)
    sources = where.suffix in {".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp", ".hip"}
    return sources and not _HIP_FOLDERS.isdisjoint(part.lower() for part in where.parts[:-1])


def _is_build(path: str) -> bool:
    return PurePosixPath(path).name in _BUILDS or path.endswith((".cmake", ".mk"))


def _not_built(path: str, data: bytes, targets: Iterable[str]) -> list[str]:
    listed = list(dict.fromkeys(name.decode() for name in _TARGET.findall(data)))
    shown = ", ".join(listed[:_MOST_NAMES]) + (" …" if len(listed) > _MOST_NAMES else "")
    return [
        f"{target} is not among the targets of {path} ({shown})"
        for target in targets
        if listed and target not in listed
    ]


def _read(root: Path, path: str, most: int) -> bytes:
    try:
        return read_steady(root, path, most)[0]
    except NotReadError:
        return b""
