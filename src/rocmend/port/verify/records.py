"""The result of a level of proof."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from rocmend.core.records import SCHEMA_VERSION
from rocmend.port.verify.execution import Execution, Step

__all__ = ["Evidence", "Level", "Outcome", "Proof", "Status"]


class Status(StrEnum):
    """How a level ended."""

    PASSED = "passed"
    """It ran, and everything it looked at holds."""
    FAILED = "failed"
    """It ran, and something does not hold."""
    INCOMPLETE = "incomplete"
    """It ran, nothing failed, and something could not be looked at: the evidence says what and why."""
    NOT_RUN = "not run"
    """It did not run; ``why`` says why."""


class Outcome(StrEnum):
    """What one piece of evidence says."""

    HOLDS = "holds"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    NOTE = "note"


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that a level looked at.

    Attributes:
        subject: The file, relative to the project; or what else it is about.
        outcome: What it says.
        detail: What was found, and where something is broken or unknown what to do about it.
        line: In the file; 0 where it is about no line.
        target: The gfx target it holds for; empty where it holds for all.
        wave_size: Lanes of a wavefront; 0 where it is about none.
        time_ms: What finding it out took, where that is worth telling.
        data: Figures, for a program to read.
    """

    subject: str
    outcome: Outcome
    detail: str = ""
    line: int = 0
    target: str = ""
    wave_size: int = 0
    time_ms: float = 0.0
    data: dict[str, Any] = {}


class Level(msgspec.Struct, frozen=True, omit_defaults=True):
    """One level of proof.

    Attributes:
        number: Its place, from 1.
        name: What it is called on the command line.
        title: What it proves, in a few words.
        status: How it ended.
        summary: What it came to, in a sentence; empty where it did not run.
        why: Why it did not run; empty where it did.
        evidence: What it looked at: everything that does not hold, and what holds as far as that is worth telling.
        counts: How many things it looked at, by what they came to.
        time_ms: Wall time.
        steps: What it executes of the project: executed where the run was asked for, else only named.
        command: The command that runs what was not run for want of being asked for; empty where nothing was.
    """

    number: int
    name: str
    title: str
    status: Status
    summary: str = ""
    why: str = ""
    evidence: tuple[Evidence, ...] = ()
    counts: dict[str, int] = {}
    time_ms: float = 0.0
    steps: tuple[Step, ...] = ()
    command: str = ""

    @property
    def ran(self) -> bool:
        """Whether it ran at all."""
        return self.status is not Status.NOT_RUN

    @property
    def broken(self) -> list[Evidence]:
        """Return what does not hold."""
        return [one for one in self.evidence if one.outcome is Outcome.BROKEN]


class Proof(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a port was proven. Levels that were not asked for are not in it.

    Attributes:
        root: The project's folder.
        targets: The gfx targets asked for.
        levels: In order.
        generation: The port that was looked at, by its folder's name; empty where none was applied.
        execution: How code of the project was executed; None where that was not asked for, and none was.
        schema_version: Of the record as JSON.
    """

    root: str
    targets: tuple[str, ...]
    levels: tuple[Level, ...]
    generation: str = ""
    execution: Execution | None = None
    schema_version: int = SCHEMA_VERSION

    @property
    def failed(self) -> bool:
        """Whether a level that ran does not hold."""
        return any(level.status is Status.FAILED for level in self.levels)

    @property
    def reached(self) -> Level | None:
        """Return the highest level up to which everything passed without a gap; None where the first did not."""
        best = None
        for number, level in enumerate(self.levels, 1):
            if level.number != number or level.status is not Status.PASSED:
                break
            best = level
        return best
