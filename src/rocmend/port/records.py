"""What is found in a project, what is to be changed in it, and how far a change was proven."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from rocmend.core.records import Severity

__all__ = [
    "NO_TIME_LEFT",
    "Analysis",
    "Change",
    "Edit",
    "FileReport",
    "Issue",
    "KeptFinding",
    "Lanes",
    "Language",
    "Outcome",
]

NO_TIME_LEFT = "not read: the project's time limit was reached"
"""Why a file was skipped that came after ``Settings.project_time_limit_s``."""


class Language(StrEnum):
    """How a file is read."""

    PYTHON = "python"
    CUDA = "cuda"
    """CUDA C++: ``.cu``, ``.cuh``, and C or C++ sources and headers that use CUDA."""
    TEXT = "text"
    """Builds, requirements, containers, workflows, shell and settings: whatever rules for text read."""


class Outcome(StrEnum):
    """What is done about a construct."""

    AUTO = "auto"
    """It is rewritten, and the rewrite is right wherever the rule fires."""
    SUGGEST = "suggest"
    """A rewrite is shown; a person decides (``--apply --suggestions`` takes it)."""
    MANUAL = "manual"
    """It is for a person: the file is not reported as done."""
    NOTE = "note"
    """Worth knowing; nothing is to be done."""


class Edit(msgspec.Struct, frozen=True, order=True):
    """Bytes of a file to be replaced on the ROCm side.

    Attributes:
        start: Offset of the first byte.
        end: Offset after the last byte; equal to ``start`` for an insertion.
        text: What stands there instead.
    """

    start: int
    end: int
    text: bytes


class Issue(msgspec.Struct, frozen=True, omit_defaults=True):
    """A construct that a rule found.

    Attributes:
        rule: The rule's id.
        path: The file, relative to the project, with forward slashes.
        line: Of its first byte, from 1.
        column: Of its first byte in its line, in characters, from 1.
        end_line: Of its last byte.
        start: Offset of its first byte.
        end: Offset after its last byte.
        severity: How much it matters.
        outcome: What is done about it.
        message: What it is, in one sentence.
        remedy: What to do, where a person must.
        snippet: The source line, cut at 160 characters.
        edits: The rewrite; none for ``manual`` and ``note``.
        needs: Names of support units that the rewrite uses (``rocmend.port.support``).
        unless: Names of files, and of packages as `NAME/__init__.py`: a project that has one of them has no such issue.
    """

    rule: str
    path: str
    line: int
    column: int
    end_line: int
    start: int
    end: int
    severity: Severity
    outcome: Outcome
    message: str
    remedy: str = ""
    snippet: str = ""
    edits: tuple[Edit, ...] = ()
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class KeptFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A finding for a person that rules no longer see once the port is written, as the port keeps it.

    Attributes:
        rule: The rule's id.
        path: The file, relative to the project, with forward slashes.
        line: In the original, from 1.
        severity: How much it matters.
        message: What it is, in one sentence.
        remedy: What to do.
        snippet: The source line, as the finding showed it.
        code: The words of its lines as ROCm reads them, by which it is found again; empty where they are not found.
        seen_on_rocm: Whether its rule finds it on the ROCm side of the port: once it does not, the finding is closed.
    """

    rule: str
    path: str
    line: int
    severity: Severity
    message: str
    remedy: str = ""
    snippet: str = ""
    code: tuple[str, ...] = ()
    seen_on_rocm: bool = False


class FileReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file that was looked at.

    Attributes:
        path: Relative to the project, with forward slashes.
        language: How it was read.
        size_bytes: Its size.
        sha256: Of the bytes that were read: what an edit holds for.
        issues: In order of their place.
        skipped: Why it was not read or not understood; empty where it was.
        wide: Why nothing in it is rewritten to warps of 32 lanes: what code for ROCm in a file that it includes does.
        asks: Names that it does not define, and on which findings depend.
    """

    path: str
    language: Language
    size_bytes: int
    sha256: str = ""
    issues: tuple[Issue, ...] = ()
    skipped: str = ""
    wide: str = ""
    asks: tuple[str, ...] = ()

    @property
    def manual(self) -> bool:
        """Whether a person has to look at the file before it can be called ported."""
        return bool(self.skipped) or any(issue.outcome is Outcome.MANUAL for issue in self.issues)

    @property
    def unread(self) -> bool:
        """Whether it is a source that was not read, or any file that there was no time for.

        Other text that is skipped is data as a rule: too large for a build file, or binary.
        """
        return bool(self.skipped) and (self.language is not Language.TEXT or self.skipped == NO_TIME_LEFT)


class Lanes(msgspec.Struct, frozen=True, array_like=True):
    """What a C++ source says of the lanes of a warp.

    Attributes:
        includes: The files that it includes, as it names them.
        wide: What in its code for ROCm works with other than 32 lanes; empty where nothing does.
        names: Its functions, macros and constants that depend on that; none where they are too many.
    """

    includes: tuple[str, ...] = ()
    wide: str = ""
    names: tuple[str, ...] = ()


class Analysis(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything that was found in a project.

    Attributes:
        root: The project's folder.
        targets: The gfx targets asked for.
        files: Files with issues and files that were skipped, by path.
        looked_at: How many files were read, by language.
        lines: How many lines they have.
        time_ms: What it took.
        from_cache: How many files' results were known from before.
        suppressed: How many issues comments in the sources suppress.
        folders: Folders that were not entered, and why.
        submodules: Repositories within the project, which are ported on their own.
        notes: What else there is to say about the run, in sentences.
        narrowed: Whether issues may be missing on purpose: rules were chosen, or issues are known and accepted.
        macros: The project's own macros that tell ROCm from CUDA, with their values there; None: not defined.
    """

    root: str
    targets: tuple[str, ...]
    files: tuple[FileReport, ...]
    looked_at: dict[str, int] = {}
    lines: int = 0
    time_ms: float = 0.0
    from_cache: int = 0
    suppressed: int = 0
    folders: dict[str, str] = {}
    submodules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    narrowed: bool = False
    macros: dict[str, tuple[int | None, int | None]] = {}

    @property
    def issues(self) -> list[Issue]:
        """Return the issues of all files, by path and place."""
        return [issue for file in self.files for issue in file.issues]


class Change(msgspec.Struct, frozen=True):
    """A file before and after a port.

    Attributes:
        path: Relative to the project, with forward slashes.
        before: Its bytes; None where there was no such file.
        after: Its bytes; None where it is removed.
    """

    path: str
    before: bytes | None
    after: bytes | None
