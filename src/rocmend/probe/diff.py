"""What changed between two runs of probes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from rocmend.core.errors import UsageError
from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict
from rocmend.probe.records import KIND, kept_run
from rocmend.store.exchange import SHARED
from rocmend.store.runs import LISTED, find_run
from rocmend.store.store import Store

TIME_RATIO = 1.5
"""A steady time that changed by less than this factor is taken for noise."""

TIME_FLOOR_MS = 0.1
"""Steady times below this are not compared: they measure the clock."""

ERROR_RATIO = 4.0
"""An error that grew by less than this factor is taken for another order of additions."""


class Side(msgspec.Struct, frozen=True):
    """One of the two runs.

    Attributes:
        group: Its id.
        device_name: What was probed.
        gfx_target: Its target.
        versions: Its torch and the like.
        count: How many results it has.
    """

    group: str
    device_name: str
    gfx_target: str
    versions: dict[str, str]
    count: int


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """A probe that came out differently.

    Attributes:
        subject: The probe and its dtype.
        kind: ``fixed``, ``broken``, ``verdict`` (neither passes), ``error`` or ``time``.
        before: Verdict in the first run.
        after: Verdict in the second.
        reason: Why, where the second does not pass; else where the first did not.
        error_before: Largest relative error.
        error_after: The same in the second.
        time_before_ms: Median steady time.
        time_after_ms: The same in the second.
        time_ratio: Second over first.
    """

    subject: str
    kind: str
    before: Verdict
    after: Verdict
    reason: str = ""
    error_before: float | None = None
    error_after: float | None = None
    time_before_ms: float | None = None
    time_after_ms: float | None = None
    time_ratio: float | None = None


class Diff(msgspec.Struct, frozen=True):
    """What changed.

    Attributes:
        before: The first run.
        after: The second.
        changes: What came out differently, verdicts first.
        same: How many came out alike.
        only_before: Subjects that only the first has.
        only_after: Subjects that only the second has.
    """

    before: Side
    after: Side
    changes: tuple[Change, ...]
    same: int
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]

    @property
    def worse(self) -> bool:
        """Something that passed does not pass any more."""
        return any(change.kind == "broken" for change in self.changes)


def load_group(store: Store, group: str) -> dict[str, Evidence]:
    """Return a run's results by subject, the newest of each.

    Args:
        store: Where they are.
        group: The run's id, a beginning that no other id has, or ``last`` for the newest one.

    Raises:
        UsageError: The store has no such run.
    """
    if group != "last":
        group = find_run(store, group, kinds=[f"{KIND}-", SHARED], subject="probe diff", what="run of probes")
    group, found = kept_run(store, group)
    if not found:
        raise UsageError("probe diff", f"{group} is no run of probes.", next_step=f"`{LISTED}` lists what there is.")
    return found


def diff(before: Mapping[str, Evidence], after: Mapping[str, Evidence]) -> Diff:
    """Return what changed from one run's results, by subject, to another's."""
    both = [name for name in before if name in after]
    changes = [change for name in both if (change := _change(name, before[name], after[name])) is not None]
    order = ("broken", "verdict", "fixed", "error", "time")
    return Diff(
        before=_side(before.values()),
        after=_side(after.values()),
        changes=tuple(sorted(changes, key=lambda change: (order.index(change.kind), change.subject))),
        same=len(both) - len(changes),
        only_before=tuple(sorted(set(before) - set(after))),
        only_after=tuple(sorted(set(after) - set(before))),
    )


def _side(results: Iterable[Evidence]) -> Side:
    listed = list(results)
    if not listed:
        return Side("", "", "", {}, 0)
    first = listed[0]
    return Side(first.group, str(first.detail.get("device_name", "")), first.gfx_target, first.versions, len(listed))


def _change(subject: str, before: Evidence, after: Evidence) -> Change | None:
    kind = _kind(before, after)
    if not kind:
        return None
    times = _number(before, "steady_ms"), _number(after, "steady_ms")
    return Change(
        subject,
        kind,
        before.verdict,
        after.verdict,
        after.reason or before.reason,
        _error(before),
        _error(after),
        *times,
        times[1] / times[0] if times[0] and times[1] else None,
    )


def _kind(before: Evidence, after: Evidence) -> str:
    if before.verdict is not after.verdict:
        if after.verdict is Verdict.PASS:
            return "fixed"
        return "broken" if before.verdict is Verdict.PASS else "verdict"
    if before.verdict is not Verdict.PASS:
        return ""
    errors = _error(before), _error(after)
    if errors[0] is not None and errors[1] is not None and errors[1] > max(errors[0] * ERROR_RATIO, 1e-12):
        return "error"
    times = _number(before, "steady_ms"), _number(after, "steady_ms")
    if not times[0] or not times[1] or max(times[0], times[1]) < TIME_FLOOR_MS:
        return ""
    return "" if 1 / TIME_RATIO < times[1] / times[0] < TIME_RATIO else "time"


def _number(result: Evidence, name: str) -> float | None:
    value = result.detail.get(name)
    return float(value) if isinstance(value, int | float) else None


def _error(result: Evidence) -> float | None:
    comparison = result.detail.get("comparison")
    return float(comparison["max_rel_error"]) if isinstance(comparison, dict) else None
