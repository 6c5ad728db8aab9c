"""What compiling HIP C++ for an AMD GPU comes to."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from rocmend.codeobject.notes import Kernel

__all__ = ["Diagnostic", "Failure", "HipFailure", "HipObject", "Level", "Syntax"]


class Level(StrEnum):
    """How much a diagnostic matters."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Diagnostic(msgspec.Struct, frozen=True, omit_defaults=True):
    """One message of the compiler, assembler or linker.

    Attributes:
        level: How much it matters; a note belongs to the message before it.
        message: What it says, without the warning's option.
        file: The file it speaks of, as the compiler names it; ``<source>`` for source that was given as bytes; empty
            where it names none.
        line: From 1; 0 where it names none.
        column: From 1; 0 where it names none.
        option: The option that switches it, ``-Wunused-value``; empty for errors.
    """

    level: Level
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    option: str = ""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return f"{place}: {self.level}: {self.message}" if place else f"{self.level}: {self.message}"


class Failure(StrEnum):
    """Why there is no code object."""

    REFUSED = "refused"
    """The compiler, assembler or linker reports errors."""
    MISSING_HEADER = "missing-header"
    """The first error is a header that is not here: nothing is known of the source itself."""
    TIMED_OUT = "timed-out"
    """It stood still, or did not come to an end within its time limit, and was ended."""
    OUT_OF_MEMORY = "out-of-memory"
    """It needed more memory than it may use, or than the machine has: nothing is known of the source itself."""
    CRASHED = "crashed"
    """The compiler crashed, or ended without an error and without a result."""
    UNREADABLE = "unreadable"
    """It gave a file that is no code object, or the source cannot be read."""


class HipFailure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A source that did not become a code object.

    Attributes:
        target: The gfx target it was compiled for; empty for a syntax check of the host's side alone.
        wave_size: Lanes of a wavefront.
        reason: Why.
        message: The same in a sentence, with what to do next.
        diagnostics: What the tools said, errors and warnings.
        missing_headers: Headers that were not found, as the source names them.
        stand_ins: Headers that were rocmend's own: what they lack, ROCm's may have.
        log: The end of what the tools printed, where no diagnostic could be read from it.
        time_ms: Wall time.
    """

    target: str
    wave_size: int
    reason: Failure
    message: str
    diagnostics: tuple[Diagnostic, ...] = ()
    missing_headers: tuple[str, ...] = ()
    stand_ins: tuple[str, ...] = ()
    log: str = ""
    time_ms: float = 0.0

    @property
    def errors(self) -> list[Diagnostic]:
        """Return the errors alone."""
        return [one for one in self.diagnostics if one.level is Level.ERROR]


class HipObject(msgspec.Struct, frozen=True, omit_defaults=True):
    """A linked code object.

    Attributes:
        target: The gfx target it was compiled for.
        wave_size: Lanes of a wavefront that were asked for; each kernel states its own.
        code: The code object (an ELF file, ``.hsaco``).
        assembly: What it was assembled from.
        kernels: Its kernels with their registers, spills, LDS and scratch.
        diagnostics: Warnings.
        stand_ins: Headers that were rocmend's own, because no ROCm is installed that has them.
        toolchain: What compiled it.
        time_ms: Wall time of the compilation; that of the first one where it comes from the cache.
        from_cache: It was compiled before.
    """

    target: str
    wave_size: int
    code: bytes
    assembly: str
    kernels: tuple[Kernel, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    stand_ins: tuple[str, ...] = ()
    toolchain: str = ""
    time_ms: float = 0.0
    from_cache: bool = False


class Syntax(msgspec.Struct, frozen=True, omit_defaults=True):
    """A translation unit whose host and device sides were both understood; nothing was generated.

    Attributes:
        target: The gfx target of the device's side.
        wave_size: Lanes of a wavefront.
        diagnostics: Warnings.
        stand_ins: Headers that were rocmend's own, because no ROCm is installed that has them.
        toolchain: What read it.
        time_ms: Wall time.
    """

    target: str
    wave_size: int
    diagnostics: tuple[Diagnostic, ...] = ()
    stand_ins: tuple[str, ...] = ()
    toolchain: str = ""
    time_ms: float = 0.0
