"""What each language brings: how a file is parsed, written back and proven unchanged for NVIDIA."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from rocmend.port.records import Issue, Language
from rocmend.port.rule import Source

__all__ = ["identity_broken", "ported", "source"]

_ROOMS = {
    Language.PYTHON: ("python", "PythonFile"),
    Language.CUDA: ("cuda", "CudaFile"),
    Language.TEXT: ("build", "TextFile"),
}


def _unit(language: Language, name: str) -> Any:
    """Import a language's unit: heavy parsers are loaded where a file needs them, not before."""
    return import_module(f"rocmend.port.{_ROOMS[language][0]}.{name}")


def source(language: Language, path: str, data: bytes) -> Source:
    """Return a file as its language's rules read it.

    Raises:
        DataError: It is no source of that language.
    """
    made: Source = getattr(_unit(language, "file"), _ROOMS[language][1])(path, data)
    return made


def ported(language: Language, path: str, data: bytes, issues: Sequence[Issue], package_import: str) -> bytes:
    """Return a file with its issues' edits gated for ROCm, in place.

    Args:
        language: The one that the file is written back as.
        path: The file, relative to the project.
        data: Its bytes.
        issues: Those whose edits are to be made.
        package_import: The module that defines ``is_rocm``, for Python.

    Raises:
        UnitError: Edits contradict each other.
    """
    write = _unit(language, "write")
    if language is Language.PYTHON:
        written: bytes = write.ported(data, issues, package_import)
    elif language is Language.CUDA:
        written = write.ported(data, issues, ())
    else:
        written = write.ported(path, data, issues)
    return written


def identity_broken(language: Language, path: str, before: bytes, after: bytes) -> str | None:
    """Return why the NVIDIA side of a ported file is not the original; None where it is."""
    proof = _unit(language, "identity")
    if language is Language.PYTHON:
        reason: str | None = proof.folds_back(before, after)
        return reason
    if language is Language.CUDA:
        same: bool = proof.restored(after) == before
        return None if same else "without USE_ROCM it is not the original, byte for byte"
    told: str | None = proof.broken(path, before, after)
    return told
