"""What a project is made of: its sources, builds, containers, workflows and the libraries that they name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from rocmend.port.build.kinds import Kind, for_rocm, kind_of
from rocmend.port.cache import Cache
from rocmend.port.classify import languages
from rocmend.port.look import Look
from rocmend.port.records import Language
from rocmend.port.settings import Settings
from rocmend.port.steady import NotReadError, read_steady
from rocmend.port.traits import traits
from rocmend.port.walk import FoundFile

__all__ = ["Survey", "survey"]

_VENDORED = re.compile(
    r"(?:^|.*/)(?:third[_-]?party|3rd[_-]?party|vendor(?:ed)?|extern(?:al|als)?|submodules)(?=/)", re.IGNORECASE
)
_ENDS_CUDA = (".cu", ".cuh")


class Survey:
    """What a project is made of.

    Attributes:
        cuda: CUDA sources (``.cu``, ``.cuh``), and other C++ that uses CUDA.
        kernels: Of them, those that nvcc compiles.
        python: Python files.
        by_trait: Files by what they use: ``triton``, ``extension``, ``compile``, ``graphs``, ``cutlass`` …
        by_kind: Build, container and workflow files.
        cmake: CMake files that build CUDA.
        make: Makefiles that build CUDA.
        vendored: Folders of others' code, and how many sources they hold.
        own_rocm: The project's own files for ROCm, by their names.
    """

    def __init__(self) -> None:
        self.cuda: list[str] = []
        self.kernels: list[str] = []
        self.python: list[str] = []
        self.by_trait: dict[str, list[str]] = defaultdict(list)
        self.by_kind: dict[Kind, list[str]] = defaultdict(list)
        self.cmake: list[str] = []
        self.make: list[str] = []
        self.vendored: dict[str, int] = {}
        self.own_rocm: list[str] = []

    def uses(self, *traits: str) -> list[str]:
        """Return the files that have one of these traits, by path."""
        return sorted({path for trait in traits for path in self.by_trait.get(trait, ())})

    def add(self, seen: Look) -> None:
        """Add what is known of a file."""
        path = seen.path
        text = kind_of(path)
        if text is not None:
            self.by_kind[text].append(path)
        if for_rocm(PurePosixPath(path).name):
            self.own_rocm.append(path)
        if seen.reads is Language.TEXT:
            if "cuda" in seen.traits and text in {Kind.CMAKE, Kind.MAKE}:
                (self.cmake if text is Kind.CMAKE else self.make).append(path)
            return
        if seen.reads is None:
            return
        if seen.reads is Language.PYTHON:
            self.python.append(path)
        else:
            self.cuda.append(path)
            if path.lower().endswith(_ENDS_CUDA):
                self.kernels.append(path)
        for name in seen.traits:
            self.by_trait[name].append(path)
        vendored = _VENDORED.match(path)
        if vendored:
            self.vendored[vendored.group()] = self.vendored.get(vendored.group(), 0) + 1


def survey(root: Path, files: Iterable[FoundFile], settings: Settings) -> Survey:
    """Return what a project is made of.

    Args:
        root: Its folder.
        files: Those that rules may read; what an analysis has just found out about them is not read again.
        settings: Its settings.
    """
    found = Survey()
    known = Cache(root, settings)
    for file in files:
        found.add(known.unchanged(file) or _seen(root, file, settings.max_file_bytes))
    return found


def _seen(root: Path, file: FoundFile, max_bytes: int) -> Look:
    """Return what a file's bytes say of the project."""
    try:
        data, _ = read_steady(root, file.path, max_bytes)
    except NotReadError:
        return Look(file.path)
    kinds = languages(file.path, data)
    return Look(file.path, reads=kinds[0], traits=traits(kinds[0], data)) if kinds else Look(file.path)
