"""Porting one file: its rewrites made, and its NVIDIA side proven to be what it was."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rocmend.core.errors import DataError, UnitError
from rocmend.port.languages import identity_broken, ported
from rocmend.port.records import Edit, Issue, Language, Outcome
from rocmend.port.state import digest
from rocmend.port.steady import NotReadError, read_steady
from rocmend.port.supply import headers_in

__all__ = ["Rewrite", "Rewritten", "rewrite"]

CHANGED_SINCE = "it changed since the analysis; run again"


class Rewritten(msgspec.Struct, frozen=True, array_like=True, tag="written"):
    """A file's port.

    Attributes:
        path: The file.
        after: Its port; None where nothing in it changes, or where it is left alone.
        reason: Why it is left alone; empty where it is not.
    """

    path: str
    after: bytes | None = None
    reason: str = ""


class Rewrite(msgspec.Struct, frozen=True, array_like=True, tag="write"):
    """A file to be ported.

    Attributes:
        path: Relative to the project.
        sha256: Of the content that the issues were found in.
        language: The one that it is written back as.
        issues: Those whose edits are to be made, and those that a person has to see.
        reach: How it reaches what the port gives the project (``languages.ported``).
    """

    path: str
    sha256: str
    language: Language
    issues: tuple[Issue, ...]
    reach: str

    def lost(self, reason: str) -> Rewritten:
        """Return the result of a file that is left alone."""
        return Rewritten(self.path, reason=reason)


def rewrite(root: Path, task: Rewrite, max_file_bytes: int) -> Rewritten:
    """Return a file's port, or why it is left alone: it changed, its edits contradict each other, the proof fails."""
    try:
        data, _ = read_steady(root / task.path, max_file_bytes)
        if digest(data) != task.sha256:
            return task.lost(CHANGED_SINCE)
        after = _ported(task, data)
        broken = identity_broken(task.language, task.path, data, after, task.reach) if after != data else None
    except NotReadError as error:
        return task.lost(str(error))
    except (UnitError, DataError) as error:
        return task.lost(error.message)
    except Exception as error:  # noqa: BLE001  a writer that fails costs its file, not the run
        return task.lost(f"writing it failed: {type(error).__name__}: {error}")
    if broken is not None:
        return task.lost(f"its NVIDIA side would not be what it was: {broken}")
    return Rewritten(task.path, after if after != data else None)


def _ported(task: Rewrite, data: bytes) -> bytes:
    """Return a file's port; a CUDA source includes what its rewrites use, whether or not a rule saw to that."""
    after = ported(task.language, task.path, data, task.issues, task.reach)
    needs = task.language is Language.CUDA and any(issue.needs for issue in task.issues)
    if not needs or headers_in(b"", after):
        return after
    from rocmend.port.cuda.file import CudaFile
    from rocmend.port.cuda.regions import cut_before

    file = CudaFile(task.path, data)
    at = cut_before(file, file.tokens[0].start)
    first = task.issues[0]
    include = Edit(at, at, b'#include "%b"\n' % task.reach.encode())
    missing = msgspec.structs.replace(first, start=at, end=at, outcome=Outcome.AUTO, edits=(include,))
    return ported(task.language, task.path, data, (*task.issues, missing), task.reach)
