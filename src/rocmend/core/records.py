"""The records that flow through the house: facts, machines, findings.

A record is a frozen msgspec struct, so it can be encoded to JSON as it stands and decoded with validation.
"""

from __future__ import annotations

import datetime as dt
from enum import StrEnum
from typing import Any

import msgspec

SCHEMA_VERSION = 1
"""Version of every JSON document written; raised when a reader of the old form would misread the new one."""


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing known about a machine, with where it was read.

    Attributes:
        key: Dotted name declared by a collector or a derivation, e.g. ``gpu.0.gfx_target``.
        value: A JSON value. None means "looked for and known to be unset", never "could not look".
        source: The file path, command line or facts it came from.
        raw: The text it was read from, where that says more than the value does.
    """

    key: str
    value: Any
    source: str
    raw: str = ""


class Gap(msgspec.Struct, frozen=True, omit_defaults=True):
    """A fact, or a group of facts ending in ``.*``, that could not be established.

    Attributes:
        key: The fact's key, or a prefix followed by ``.*``.
        reason: Why it could not be read, in the user's words.
        source: Where it would have been read.
    """

    key: str
    reason: str
    source: str = ""


class CollectorStatus(StrEnum):
    """How a collector ended."""

    OK = "ok"
    TIMEOUT = "timeout"
    CRASH = "crash"
    ERROR = "error"


class CollectorRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """One collector's run: how it ended and how long it took."""

    name: str
    status: CollectorStatus
    time_ms: float
    reason: str = ""


class Severity(StrEnum):
    """How much a finding matters, most severe first."""

    ERROR = "error"
    WARNING = "warning"
    ADVICE = "advice"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the most severe."""
        return list(Severity).index(self)


class Risk(StrEnum):
    """What following a remedy can cost."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who says so.

    Attributes:
        title: The document, thread or person.
        url: Where it can be read; empty only for a measurement of ours.
        date: ISO date of the statement (YYYY-MM-DD, YYYY-MM or YYYY).
        kind: issue, documentation, source-code, release-notes, benchmark, community, specification or measurement.
        read: The day on which somebody last read it; None where that was not recorded.
        said: What it said then, in a sentence.
    """

    title: str
    url: str = ""
    date: str = ""
    kind: str = "documentation"
    read: dt.date | None = None
    said: str = ""


class Phase(StrEnum):
    """Where a remedy stands in a plan, first to last."""

    FIRST = "first"
    ACCESS = "access"
    INSTALL = "install"
    ENVIRONMENT = "environment"
    FIRMWARE = "firmware"
    KERNEL = "kernel"
    BOOT = "boot"
    REBOOT = "reboot"
    RUNTIME = "runtime"
    INVESTIGATE = "investigate"

    @property
    def rank(self) -> int:
        """0 for the first."""
        return list(Phase).index(self)


class Remedy(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something a person can do about a finding. Never applied by us.

    What it leaves empty it takes from its action, where that is declared in ``kb/actions``.

    Attributes:
        text: What to do, in one or two sentences.
        commands: Shell lines that do it, for a person to read and run.
        risk: What following it can cost.
        risk_note: What exactly the risk is.
        needs: Any of ``root``, ``reboot``, ``reinstall``, ``rebuild``, ``bios``.
        action: Id of what is done, the same in all entries that ask for it: ``unset-variable:HSA_XNACK`` (what follows
            the colon is the action's argument). Empty for what only looks.
        phase: Where it stands in a plan; None where the action says so, and for what only looks.
        check: A command that exits with 0 once it is done, and prints what ``expect`` says.
        expect: What the check prints; without a check, what a person sees.
        undo: How to take it back.
        by_hand: A script cannot do it: a setting of the calling shell, a file to edit, the BIOS.
        after: Ids of actions that must have taken effect first, where they are in the plan too; without argument.
        when: Predicate; the remedy is left out where it is false.
        instead_of: Id of the action that it is another way for.
        until: Id of the action that it helps until.
        optional: Worth a try; nothing is wrong without it.
        brought_by: Id of the action that brings it along: beside that one it is optional.
        title: The step's title, in place of its action's.
    """

    text: str = ""
    commands: tuple[str, ...] = ()
    risk: Risk = Risk.NONE
    risk_note: str = ""
    needs: tuple[str, ...] = ()
    action: str = ""
    phase: Phase | None = None
    check: str = ""
    expect: str = ""
    undo: str = ""
    by_hand: bool = False
    after: tuple[str, ...] = ()
    when: str = ""
    instead_of: str = ""
    until: str = ""
    optional: bool = False
    title: str = ""
    brought_by: str = ""

    @property
    def relation(self) -> str:
        """``Until then`` or ``Or`` for an alternative, ``Investigate`` for what only looks, else ``Do``."""
        if self.until:
            return "Until then"
        if self.instead_of:
            return "Or"
        return "Investigate" if self.phase is Phase.INVESTIGATE else "Do"


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A knowledge entry that matched a machine.

    Attributes:
        entry_id: The knowledge entry's stable id.
        title: What is the matter, with this machine's values filled in.
        severity: How much it matters on this machine.
        subject: What it concerns: ``gpu.0``, ``torch``, ``kernel`` …; empty for the machine as a whole.
        explanation: Why, in a paragraph or two of Markdown.
        evidence: The facts that the entry's predicate read.
        remedies: What can be done, best first.
        sources: Who says so.
        status: The entry's status (active, disputed …).
        see: Ids of linked entries worth reading.
        fixed_in: Versions that fix it, where some do.
    """

    entry_id: str
    title: str
    severity: Severity
    subject: str = ""
    explanation: str = ""
    evidence: tuple[Fact, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    sources: tuple[Source, ...] = ()
    status: str = "active"
    see: tuple[str, ...] = ()
    fixed_in: tuple[str, ...] = ()
