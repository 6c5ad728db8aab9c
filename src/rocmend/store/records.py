"""What a store hands out."""

from __future__ import annotations

import msgspec

from rocmend.core.evidence import Evidence


class StoredEvidence(msgspec.Struct, frozen=True):
    """A record of the store.

    Attributes:
        id: Its id; ids sort by when the run started (UTC): ``20260131-120000-3fk2m9qz``.
        evidence: The record.
    """

    id: str
    evidence: Evidence


class StoredSummary(msgspec.Struct, frozen=True):
    """What is noted of a record for searching.

    Attributes:
        id: Its id.
        kind: The record's ``kind``.
        subject: The record's ``subject``.
        verdict: The record's ``verdict``.
        gfx_target: The record's ``gfx_target``.
        group: The record's ``group``.
    """

    id: str
    kind: str
    subject: str
    verdict: str
    gfx_target: str
    group: str


class StoredGroup(msgspec.Struct, frozen=True):
    """The records of one probe run or experiment, counted.

    Attributes:
        group: Its id.
        first: Id of its oldest record.
        last: Id of its newest record.
        verdicts: Verdict to number of records.
    """

    group: str
    first: str
    last: str
    verdicts: dict[str, int]

    @property
    def count(self) -> int:
        """Number of records."""
        return sum(self.verdicts.values())


class Damage(msgspec.Struct, frozen=True):
    """Something in the store that is not as it was written.

    Attributes:
        subject: The record's id, an artifact's hash or the file concerned.
        problem: What is the matter with it.
    """

    subject: str
    problem: str


class GcReport(msgspec.Struct, frozen=True):
    """What collecting garbage removed, or would remove.

    Attributes:
        machines: Machine snapshots that no record names.
        artifacts: Artifacts that no record names.
        partial_files: Files that a killed writer left half-written.
        freed_bytes: Room that the files took on disk.
    """

    machines: int
    artifacts: int
    partial_files: int
    freed_bytes: int

    @property
    def empty(self) -> bool:
        """There was nothing to remove."""
        return not (self.machines or self.artifacts or self.partial_files)
