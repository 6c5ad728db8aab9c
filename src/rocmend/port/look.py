"""Looking at one file: in our own process, or in one of several that cannot take the run down with them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from rocmend.port.classify import kind, languages
from rocmend.port.cuda.conditions import SAYS_ROCM
from rocmend.port.findings import findings
from rocmend.port.nesting import NestingError
from rocmend.port.records import NO_TIME_LEFT, FileReport, Lanes, Language
from rocmend.port.steady import NotReadError, read_steady
from rocmend.port.traits import traits

__all__ = ["Look", "Task", "look", "not_looked_at"]

_BINARY_PROBE_BYTES = 8192


class Task(msgspec.Struct, frozen=True, array_like=True, tag="look"):
    """A file to look at.

    Attributes:
        path: Relative to the project.
        size_bytes: Its size when it was found.
        stamp: Its times and inode when it was found.
        known_sha256: Of the content that the cache knows; where it is the file's, nothing is parsed.
    """

    path: str
    size_bytes: int
    stamp: tuple[int, int, int]
    known_sha256: str = ""

    def lost(self, reason: str) -> Look:
        """Return the look that the process was lost at: known from then on, so that it happens once."""
        return not_looked_at(self.path, reason, self.size_bytes, self.stamp)

    def left_out(self) -> Look:
        """Return the look that there was no time for: the next run looks at the file."""
        return not_looked_at(self.path, NO_TIME_LEFT, self.size_bytes)


class Look(msgspec.Struct, frozen=True, array_like=True, tag="seen"):
    """What one look at a file found.

    Attributes:
        path: Relative to the project.
        stamp: Of the state that was read; zeros where it could not be.
        sha256: Of the bytes that were read.
        lines: How many; 0 for a file that no rule reads.
        reads: The language it is read as; None where no rule reads it (C++ that uses no CUDA).
        report: Its issues, or why it was skipped; None where there is nothing to say.
        suppressed: How many issues comments suppress.
        same: The content is the known one: the other attributes are the cache's.
        traits: What it says of its project (``rocmend.port.traits``).
        lanes: What a CUDA source says of the lanes of a warp.
        macros: What it defines as one number on ROCm and as another elsewhere, with these; None: not defined.
        defines: The macros that it defines otherwise, where it says anything of ROCm.
        asks: Names that it does not define, and on which findings depend (``rocmend.port.headers``).
    """

    path: str
    stamp: tuple[int, int, int] = (0, 0, 0)
    size_bytes: int = 0
    sha256: str = ""
    lines: int = 0
    reads: Language | None = None
    report: FileReport | None = None
    suppressed: int = 0
    same: bool = False
    traits: tuple[str, ...] = ()
    lanes: Lanes | None = None
    macros: dict[str, tuple[int | None, int | None]] = {}
    defines: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


def not_looked_at(path: str, reason: str, size_bytes: int = 0, stamp: tuple[int, int, int] = (0, 0, 0)) -> Look:
    """Return the look at a file that was skipped; without a stamp, it is looked at again next time."""
    kinds = kind(path)
    language = kinds[0] if kinds else Language.CUDA
    return Look(path, stamp, size_bytes, report=FileReport(path, language, size_bytes, skipped=reason))


def look(root: Path, task: Task, max_file_bytes: int) -> Look:
    """Read one file and return what its rules find; whatever goes wrong is the reason why it was skipped."""
    path = task.path
    try:
        data, stamp = read_steady(root, path, max_file_bytes)
    except NotReadError as error:
        return not_looked_at(path, str(error), task.size_bytes)
    size = len(data)
    sha256 = hashlib.sha256(data).hexdigest()
    if sha256 == task.known_sha256:
        return Look(path, stamp, size, sha256, same=True)
    kinds = languages(path, data)
    if not kinds:
        unread = Look(path, stamp, size, sha256)
        return _as_cpp(unread, data) if kind(path) is None else unread
    if b"\0" in data[:_BINARY_PROBE_BYTES]:
        report = FileReport(path, kinds[0], size, sha256, skipped="binary, or text in UTF-16")
        return Look(path, stamp, size, sha256, report=report)
    lines = data.count(b"\n") + (data[-1:] not in {b"", b"\n"})
    suppressed = 0
    try:
        report, suppressed = findings(path, data, kinds)
    except MemoryError:
        report = FileReport(path, kinds[0], size, sha256, skipped="needs more memory than the limit per file")
    except NestingError as error:
        report = FileReport(path, kinds[0], size, sha256, skipped=str(error))
    except RecursionError:
        report = FileReport(path, kinds[0], size, sha256, skipped="nested too deeply")
    except Exception as error:  # noqa: BLE001  a rule that fails costs its file, not the run
        where = "".join(f" in {note}" for note in getattr(error, "__notes__", ()))
        reason = f"failed{where}: {type(error).__name__}: {error}"
        report = FileReport(path, kinds[0], size, sha256, skipped=reason)
    asks, report = report.asks, msgspec.structs.replace(report, asks=())
    kept = report if report.issues or report.skipped else None
    seen = Look(path, stamp, size, sha256, lines, kinds[0], kept, suppressed, traits=traits(kinds[0], data), asks=asks)
    if kinds[0] is not Language.CUDA or report.skipped:
        return seen
    return _as_cpp(seen, data)


def _as_cpp(seen: Look, data: bytes) -> Look:
    """Return a look with what a C++ source says to those that include it."""
    macros, others = _macros(data) if b"define" in data and SAYS_ROCM.search(data) else ({}, ())
    return msgspec.structs.replace(seen, lanes=_lanes(data), macros=macros, defines=others)


def _macros(data: bytes) -> tuple[dict[str, tuple[int | None, int | None]], tuple[str, ...]]:
    from rocmend.port.cuda.file import CudaFile
    from rocmend.port.cuda.treated import macros_of

    try:
        found, others = macros_of(CudaFile("", data))
    except (NestingError, RecursionError, MemoryError):
        return {}, ()
    return {name.decode(): values for name, values in found.items()}, tuple(sorted(name.decode() for name in others))


def _lanes(data: bytes) -> Lanes | None:
    """Return what a CUDA source says of the lanes of a warp; None where it cannot be read."""
    from rocmend.port.wave.lanes import lanes

    try:
        return lanes(data)
    except (NestingError, RecursionError, MemoryError):
        return None
