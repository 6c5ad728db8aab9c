"""What PyTorch's build of extensions does for ROCm by itself, so that a port need not do it.

It translates the sources that it compiles (hipify): names and headers of CUDA's interfaces, and ``__CUDACC__``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rocmend.port.build.kinds import Kind, kind_of
from rocmend.port.classify import languages
from rocmend.port.cuda.torch_names import BUILT_BY_TORCH, SUPPORTED_BY_TORCH
from rocmend.port.look import Look
from rocmend.port.records import Issue, Language, Outcome
from rocmend.port.state import first_and_last, generations
from rocmend.port.traits import traits

__all__ = ["compiles_all_cuda", "torch_builds", "without_names"]


def torch_builds(root: Path, seen: Iterable[Look]) -> set[str]:
    """Return what is true of how a project's CUDA is built: ``BUILT_BY_TORCH``, ``SUPPORTED_BY_TORCH``.

    Args:
        root: Its folder.
        seen: What its files say.
    """
    seen = list(seen)
    if not compiles_all_cuda((one.path, one.traits) for one in seen):
        return set()
    supported = any(_supports(one.reads, one.traits) for one in _before(root, seen))
    return {BUILT_BY_TORCH, SUPPORTED_BY_TORCH} if supported else {BUILT_BY_TORCH}


def compiles_all_cuda(files: Iterable[tuple[str, tuple[str, ...]]]) -> bool:
    """Tell whether PyTorch's build compiles a project's CUDA, and no other build of the project does.

    Args:
        files: The project's, each with what it says of the project (``rocmend.port.traits``).
    """
    extension = False
    for path, has in files:
        kind = kind_of(path)
        if "cuda" in has and kind in {Kind.CMAKE, Kind.MAKE}:
            return False
        if "nvcc" in has and (kind is Kind.SHELL or path.endswith(".py")):
            return False
        if "names-apart" in has:  # it translates cub::X, and no name that a using-directive or an alias brings
            return False
        extension = extension or "torch-build" in has
    return extension


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
