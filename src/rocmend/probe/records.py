"""What a run of probes yields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict
from rocmend.runner.result import AttemptResult

if TYPE_CHECKING:
    from rocmend.store.store import Store

KIND = "probe"
"""The kind of evidence that probes leave."""

PLAN = "plan"
"""Part of a record's detail: the subjects that its run was begun for."""

QUIET = frozenset({Verdict.PASS, Verdict.SKIPPED})
"""Verdicts that speak of nothing wrong."""


class Subject(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is probed: a device through an interpreter's torch.

    Attributes:
        python: The interpreter.
        device: The device as torch names it.
        device_name: What it calls itself.
        gfx_target: ``gfx1151``, ``sm_90``, ``cpu`` …
        versions: python, torch, hip, cuda, triton.
    """

    python: str
    device: str
    device_name: str
    gfx_target: str
    versions: dict[str, str]


class Tried(msgspec.Struct, frozen=True):
    """How a probe ended, and in what process.

    Attributes:
        result: Its attempt, the one that counts.
        shared: Others ran in the process before it, or could have.
        after: Those that did, the last of them where there were many.
        earlier: The attempt in a shared process that failed, where the one that counts is its repetition alone.
    """

    result: AttemptResult
    shared: bool = False
    after: tuple[str, ...] = ()
    earlier: AttemptResult | None = None


class ProbeRun(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run of probes.

    Attributes:
        group: Its id in the store; ``rocmend probe --resume`` takes it.
        subject: What was probed.
        results: One record for each probe and dtype, in the order of the catalogue.
        resumed: How many of them an earlier run had left.
        not_run: Subjects that were not started.
        quarantine: Why nothing more was started on this host; empty where all was.
        problems: Modules of the catalogue that could not be loaded.
        notes: What else is to be known about the run.
    """

    group: str
    subject: Subject
    results: tuple[Evidence, ...]
    resumed: int = 0
    not_run: tuple[str, ...] = ()
    quarantine: str = ""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def order_dependent(self) -> tuple[Evidence, ...]:
        """The results that were worse in a process that other probes had run in than in one of their own."""
        return tuple(result for result in self.results if result.verdict in QUIET and "shared_attempt" in result.detail)

    @property
    def failed(self) -> tuple[Evidence, ...]:
        """The results that speak of something wrong."""
        return tuple(result for result in self.results if result.verdict not in QUIET)

    @property
    def clean(self) -> bool:
        """Whether every probe was run and none failed, not even after others only."""
        return not (self.failed or self.order_dependent or self.not_run or self.quarantine)


def subject_of(probe_id: str, dtype: str) -> str:
    """Return what a probe in a dtype is called in the store: ``conv2d-forward:float16``."""
    return f"{probe_id}:{dtype}"


def kept_run(store: Store, group: str) -> tuple[str, dict[str, Evidence]]:
    """Return a run's id and its results by subject, the newest of each; none where the store has no such run.

    Args:
        store: Where they are.
        group: The run's id, or ``last`` for the newest one.
    """
    if group == "last":
        group = store.last_group(f"{KIND}-") or group
    found: dict[str, Evidence] = {}
    for row in store.query(kind=KIND, group=group):
        found.setdefault(row.evidence.subject, row.evidence)
    return group, found
