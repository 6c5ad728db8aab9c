"""How long probes take, about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocmend.probe.records import KIND, subject_of
from rocmend.probe.registry import select

if TYPE_CHECKING:
    from rocmend.store.store import Store

START_S = 6.0
"""Importing torch and using a device for the first time, on a plain machine."""

SHARED_S = 0.6
"""One quick operation in a process that is there already."""

_RECORDS = 2000
"""Newest records that are looked at for the times of earlier runs."""


def about_s(
    selection: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    *,
    jobs: int = 1,
    isolate: bool = False,
    store: Store | None = None,
) -> float:
    """Return how many seconds a run of probes takes: as they took before, or as they take on a plain machine.

    Args:
        selection: As for `run_probes`.
        dtypes: As for `run_probes`.
        jobs: Probes that run at the same time.
        isolate: Each in a process of its own.
        store: Holds earlier runs.

    Raises:
        UsageError: Nothing fits the selection.
    """
    took: dict[str, float] = {}
    if store is not None and not isolate:
        for row in store.query(kind=KIND, limit=_RECORDS):
            took.setdefault(row.evidence.subject, row.evidence.time_ms / 1000)
    times = [
        took.get(subject_of(probe.id, dtype), START_S + SHARED_S if isolate or probe.alone else SHARED_S)
        for probe, dtype in select(selection, dtypes)
    ]
    return START_S + sum(times) / jobs
