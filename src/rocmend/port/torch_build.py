"""What PyTorch's build of extensions does for ROCm by itself, so that a port need not do it.

It translates the sources that it compiles, and those that they include (hipify): names and headers of CUDA's
interfaces, and ``__CUDACC__``.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from rocmend.port.build.kinds import Kind, kind_of
from rocmend.port.classify import languages
from rocmend.port.cuda.includes import closure
from rocmend.port.cuda.torch_names import BUILT_BY_TORCH, SUPPORTED_BY_TORCH
from rocmend.port.definitions.macros import listed
from rocmend.port.definitions.setup import torch_sources
from rocmend.port.look import Look
from rocmend.port.records import Issue, Language, Outcome
from rocmend.port.state import first_and_last, generations
from rocmend.port.steady import NotReadError, read_steady
from rocmend.port.traits import traits

__all__ = ["TorchBuild", "built_by_torch", "torch_builds", "without_names"]

Read = Callable[[str], bytes]
"""Returns a file's bytes; empty where it cannot be read."""


class TorchBuild(NamedTuple):
    """How PyTorch's build takes part in a project's.

    Attributes:
        sources: What it compiles, and nothing else does.
        supported: Whether the project's code has support for ROCm of its own.
    """

    sources: frozenset[str] = frozenset()
    supported: bool = False

    def of(self, path: str) -> set[str]:
        """Return what is true of how a file is built: ``BUILT_BY_TORCH``, ``SUPPORTED_BY_TORCH``."""
        if path not in self.sources:
            return set()
        return {BUILT_BY_TORCH, SUPPORTED_BY_TORCH} if self.supported else {BUILT_BY_TORCH}


def torch_builds(root: Path, seen: Iterable[Look], max_file_bytes: int) -> TorchBuild:
    """Return how PyTorch's build takes part in a project's.

    Args:
        root: Its folder.
        seen: What its files say.
        max_file_bytes: Larger files are not read.
    """

    def read(path: str) -> bytes:
        try:
            return read_steady(root, path, max_file_bytes)[0]
        except NotReadError:
            return b""

    seen = list(seen)
    cuda = (one.path for one in seen if one.reads is Language.CUDA)
    sources = built_by_torch(((one.path, one.traits) for one in seen), cuda, read)
    return (
        TorchBuild(sources, any(_supports(one.reads, one.traits) for one in _before(root, seen)))
        if sources
        else TorchBuild()
    )


def built_by_torch(files: Iterable[tuple[str, tuple[str, ...]]], cuda: Iterable[str], read: Read) -> frozenset[str]:
    """Return the CUDA sources that PyTorch's build compiles, with what they include; none where another build is there.

    Args:
        files: The project's, each with what it says of the project (``rocmend.port.traits``).
        cuda: The project's CUDA sources and headers.
        read: Returns files.
    """
    scripts = []
    for path, has in files:
        kind = kind_of(path)
        if "cuda" in has and kind in {Kind.CMAKE, Kind.MAKE, Kind.BAZEL, Kind.MESON}:
            return frozenset()
        if "nvcc" in has and (kind is Kind.SHELL or path.endswith(".py")):
            return frozenset()
        if "names-apart" in has:  # it translates cub::X, and no name that a using-directive or an alias brings
            return frozenset()
        if "torch-build" in has:
            scripts.append(path)
    known = frozenset(cuda) if scripts else frozenset()
    sources = _Sources(known, read)
    found: set[str] = set()
    for script in scripts:
        for name in torch_sources(script, read(script)):
            for path in _named(name, posixpath.dirname(script), known):
                found |= closure(path, sources)
    return frozenset(found)


def _named(name: str, folder: str, paths: frozenset[str]) -> Iterator[str]:
    """Yield the sources that a build in a folder means by a name, whose beginning may be unknown."""
    exact = posixpath.normpath(posixpath.join(folder, name))
    yield from [exact] if exact in paths else (path for path in paths if listed(path, (name,)))


class _Sources(Mapping[str, bytes]):
    """The sources of a project, read when they are asked for."""

    def __init__(self, paths: frozenset[str], read: Read) -> None:
        self._paths = paths
        self._read = read

    def __getitem__(self, path: str) -> bytes:
        if path not in self._paths:
            raise KeyError(path)
        return self._read(path)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def without_names(issues: tuple[Issue, ...], known: set[str]) -> tuple[Issue, ...]:
    """Return a file's issues without those that PyTorch's build settles.

    Where anything else is rewritten, the header of names stays: the rewrite may need it.

    Args:
        issues: Of one file.
        known: What is true of the project.
    """
    left = tuple(one for one in issues if known.isdisjoint(one.unless))
    rewritten = any(one.edits and one.outcome is not Outcome.MANUAL for one in left)
    return tuple(one for one in issues if one in left or (rewritten and one.rule == "CU40"))


def _supports(reads: Language | None, has: tuple[str, ...]) -> bool:
    return "rocm" in has and (reads is Language.CUDA or "extension" in has)


def _before(root: Path, seen: list[Look]) -> list[Look]:
    """Return looks at what files were before the first port: what that wrote is no support of the project's own."""
    ports = generations(root) if root.is_dir() else []
    if not ports:
        return seen
    first, _, _ = first_and_last(ports)
    return [_original(one, first[one.path]) if one.path in first else one for one in seen]


def _original(seen: Look, data: bytes | None) -> Look:
    kinds = languages(seen.path, data) if data is not None else ()
    return Look(seen.path, reads=kinds[0], traits=traits(kinds[0], data)) if kinds and data else Look(seen.path)
