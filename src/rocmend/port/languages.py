"""What each language brings: how a file is parsed, written back and proven unchanged for NVIDIA.

Parsers are imported where a file needs them: most runs need only some, and start-up time is a feature.
"""

from __future__ import annotations

from collections.abc import Sequence

from rocmend.port.records import Issue, Language
from rocmend.port.rule import Source

__all__ = ["broken", "destination", "identity_broken", "ported", "source"]


def source(language: Language, path: str, data: bytes) -> Source:
    """Return a file as its language's rules read it.

    Raises:
        DataError: It is no source of that language.
    """
    if language is Language.PYTHON:
        from rocmend.port.python.file import PythonFile
        from rocmend.port.python.notebook import Notebook

        return Notebook(path, data) if path.lower().endswith(".ipynb") else PythonFile(path, data)
    if language is Language.CUDA:
        from rocmend.port.cuda.file import CudaFile

        return CudaFile(path, data)
    from rocmend.port.build.file import TextFile

    return TextFile(path, data)


def broken(language: Language, path: str, data: bytes) -> str:
    """Return why a file that no rule asks for is no source of its language; empty where it is, or nothing can tell."""
    if language is not Language.PYTHON or path.lower().endswith(".ipynb"):
        return ""
    from rocmend.port.python.file import syntax_error

    return syntax_error(path, data)


def destination(language: Language, path: str) -> str:
    """Return the path that a file's port is written to: its own, or that of a file beside it (``Dockerfile.rocm``)."""
    if language is not Language.TEXT:
        return path
    from rocmend.port.build.kinds import destination as beside

    return beside(path)


def ported(language: Language, path: str, data: bytes, issues: Sequence[Issue], reach: str = "") -> bytes:
    """Return a file with its issues' edits gated for ROCm: what ``destination`` holds.

    Args:
        language: The one that the file is written back as.
        path: The file, relative to the project.
        data: Its bytes.
        issues: Those whose edits are to be made, and those that a person has to see.
        reach: How the file reaches what the port gives the project: for Python the module that defines ``is_rocm``,
            for CUDA what ``#include`` says for the compatibility header. Empty: the file has to do without.

    Raises:
        UnitError: Edits contradict each other, or cannot be gated where they stand.
        DataError: The file is no source of its language.
    """
    if language is Language.PYTHON:
        from rocmend.port.python.write import ported as python

        return python(data, issues, reach)
    if language is Language.CUDA:
        from rocmend.port.cuda.write import ported as cuda

        return cuda(data, issues, reach, path=path)
    from rocmend.port.build.write import ported as text

    return text(path, data, issues)


def identity_broken(language: Language, path: str, before: bytes, after: bytes, reach: str = "") -> str | None:
    """Return why the NVIDIA side of a ported file is not the original; None where it is.

    Args:
        language: The one that it was written back as.
        path: Relative to the project.
        before: The original.
        after: The ported file.
        reach: As for ``ported``: a flag of the project's own is no gate unless it is named here.
    """
    if language is Language.PYTHON:
        from rocmend.port.python.identity import folds_back

        return folds_back(before, after, reach)
    if language is Language.CUDA:
        from rocmend.port.cuda.identity import broken as cuda

        return cuda(before, after)
    from rocmend.port.build.identity import broken as text

    return text(path, before, after)
