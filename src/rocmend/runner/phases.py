"""Phases of known programs, as data: marks in their output, and how long each phase may be silent.

A phase set is a TOML file: ``phases/NAME.toml``, or one of the user's own given by its path::

    [set]
    title = "My trainer"
    sources = ["https://…"]

    [[phases]]
    name = "load"
    words = ["loading checkpoint"]      # one of them is in the line, exactly: found fast
    pattern = "loading checkpoint [0-9]+"  # then searched for; without it a word is enough
    silence_s = 300                     # how long it may say nothing
    slow = "torch-compile"              # a first run that is known to be slow (slow_first_runs.toml)
    again = true                        # it may come back after a later phase

Phases stand in their usual order. A mark of an earlier phase is passed over unless that phase may come again.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from rocmend.core.documents import read_toml
from rocmend.core.errors import DataError, UsageError
from rocmend.core.patterns import PatternError, compile_pattern
from rocmend.runner.output import find_lines

FOLDER = Path(__file__).with_name("phases")
SLOW_FILE = Path(__file__).with_name("slow_first_runs.toml")

START = "start"
"""The phase before the first mark."""


class Phase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stretch of a run that begins with a mark in its output.

    Attributes:
        name: What it is called.
        words: Its line holds one of them.
        pattern: Regular expression searched for in such a line; empty where a word is enough.
        silence_s: Seconds that it may be silent; 0 takes the attempt's own limit.
        slow: Id of a first run that is known to be slow; empty for none.
        again: It may come back after a later phase.
    """

    name: str
    words: tuple[str, ...] = ()
    pattern: str = ""
    silence_s: float = 0.0
    slow: str = ""
    again: bool = False


class _About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    sources: tuple[str, ...] = ()


class PhaseSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The phases of one program, in their usual order."""

    set: _About
    phases: tuple[Phase, ...]


class SlowFirstRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A component whose first run takes long, and is no hang.

    Attributes:
        title: What it is.
        usual_s: Seconds that it usually takes, least and most.
        allowance_s: Seconds of silence that it is allowed while it works.
        cache: Where it keeps what it made, so that the next run is fast.
        source: Who says so.
    """

    title: str
    usual_s: tuple[float, float]
    allowance_s: float
    cache: str
    source: str


@cache
def slow_first_runs() -> dict[str, SlowFirstRun]:
    """Return the known slow first runs by id."""
    return msgspec.toml.decode(SLOW_FILE.read_bytes(), type=dict[str, SlowFirstRun])


def known_sets() -> tuple[str, ...]:
    """Return the names of the phase sets that come with rocmend."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load_phases(name: str) -> PhaseSet:
    """Return a phase set by its name, or from the path of a TOML file; none for an empty name.

    Raises:
        UsageError: There is no such set or file.
        DataError: The file is not a valid phase set.
    """
    if not name:
        return PhaseSet(_About("no marks"), ())
    path = FOLDER / f"{name}.toml"
    if name not in known_sets():
        path = Path(name)
        if path.suffix != ".toml" or not path.is_file():
            raise UsageError(
                "phases",
                f"unknown phase set {name!r}.",
                next_step=f"Use one of {', '.join(known_sets())}, or the path of a TOML file.",
            )
    try:
        found = msgspec.convert(read_toml(path), PhaseSet)
    except (OSError, msgspec.ValidationError) as error:
        raise DataError(str(path), f"is not a phase set: {error}.") from error
    _check(found, str(path))
    return found


def _check(found: PhaseSet, subject: str) -> None:
    names = [phase.name for phase in found.phases]
    if len(set(names)) < len(names):
        raise DataError(subject, "names a phase twice.")
    for phase in found.phases:
        if phase.slow and phase.slow not in slow_first_runs():
            raise DataError(
                subject,
                f"phase {phase.name!r} names {phase.slow!r}, which is not a known slow first run.",
                next_step=f"Use one of {', '.join(slow_first_runs())}, or give it silence_s.",
            )
        if phase.pattern and not phase.words:
            raise DataError(subject, f"phase {phase.name!r} has a pattern but no words to select lines.")
        try:
            compile_pattern(phase.pattern)
        except PatternError as error:
            raise DataError(
                subject, f"the pattern of phase {phase.name!r} is wrong: {error.reason}.", next_step=error.next_step
            ) from error


class Mark(msgspec.Struct, frozen=True):
    """A phase that begins, with the line that says so."""

    phase: Phase
    line: str


class PhaseTracker:
    """Follows the phases of one run through its output.

    Args:
        phases: What to look for.
    """

    def __init__(self, phases: PhaseSet) -> None:
        self._phases = phases.phases
        self._patterns = [compile_pattern(phase.pattern) if phase.pattern else None for phase in phases.phases]
        self._at = -1
        self._words: tuple[bytes, ...] = ()
        self._refresh()

    def all_words(self) -> tuple[bytes, ...]:
        """Return every word that a mark may be found by."""
        return tuple(word.encode() for phase in self._phases for word in phase.words)

    def _refresh(self) -> None:
        """Look only for the phases that can begin now."""
        self._words = tuple(
            word.encode()
            for index, phase in enumerate(self._phases)
            if index != self._at and (index > self._at or phase.again)
            for word in phase.words
        )

    @property
    def current(self) -> str:
        """The phase that it is in."""
        return self._phases[self._at].name if self._at >= 0 else START

    def feed(self, block: bytes) -> list[Mark]:
        """Return the phases that begin in a block of whole lines, in order."""
        found: list[Mark] = []
        if not self._words:
            return found
        for hit in find_lines(block, self._words):
            index = self._phase_of(hit.line)
            if index is not None and index != self._at:
                self._at = index
                found.append(Mark(self._phases[index], hit.line[:200]))
        if found:
            self._refresh()
        return found

    def _phase_of(self, line: str) -> int | None:
        """Return the phase that a line begins: the next one in order, or else an earlier one that may come again."""
        matching = [
            index
            for index, (phase, pattern) in enumerate(zip(self._phases, self._patterns, strict=True))
            if (index >= self._at or phase.again)
            and any(word in line for word in phase.words)
            and (pattern is None or pattern.search(line))
        ]
        later = [index for index in matching if index >= self._at]
        return later[0] if later else (matching[0] if matching else None)

    def following(self) -> str:
        """Return the phase that usually comes next; empty at the end."""
        return self._phases[self._at + 1].name if self._at + 1 < len(self._phases) else ""
