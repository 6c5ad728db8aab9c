"""What is faster: two settings of a run, or two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rocmend.bench.comparison import Overall, busy_share, compared, overall, together, unusable
from rocmend.bench.records import BenchRun, Measured, row_of
from rocmend.bench.sides import Side
from rocmend.bench.stats import Comparison, Difference
from rocmend.core.verdict import Verdict

_NOT_LOST = {Verdict.PASS, Verdict.SKIPPED}


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """A case in A and in B.

    Attributes:
        case: Its id.
        title: What a table calls it.
        setting: The setting, where several are compared; that of B where it differs.
        unit: The figures' unit.
        comparison: B against A.
        figure_a: A's figure.
        figure_b: B's.
        lost: A has a figure, and B failed to get one.
        beyond: B is slower by more than the limit, by all of its interval.
        lost_by: How B failed, where it lost its figure.
        unhealthy_a: Why A's machine was not healthy; empty where nothing is known against it.
        unhealthy_b: Why B's was not.
        busy_a: Share of the time that A waited for a processor, where it is too large to compare A; else 0.
        busy_b: The same of B.
    """

    case: str
    title: str
    setting: str
    unit: str
    comparison: Comparison
    figure_a: float | None = None
    figure_b: float | None = None
    lost: bool = False
    beyond: bool = False
    lost_by: Verdict | None = None
    unhealthy_a: str = ""
    unhealthy_b: str = ""
    busy_a: float = 0.0
    busy_b: float = 0.0


class Changed(msgspec.Struct, frozen=True, omit_defaults=True):
    """A whole comparison.

    Attributes:
        a: Label of the first.
        b: Label of the second.
        device_a: Where A ran.
        device_b: Where B ran.
        changes: By case, in A's order.
        overall: Over all cases that can be compared; None where none can.
        only_a: Cases that B lacks.
        only_b: Cases that A lacks.
        neither: Cases that neither supports: nothing is compared, and nothing was lost.
        differs: What else differs: name, in A, in B.
        limit: How much slower is a finding, as a share.
        run_a: Id of A's run; empty where it is a file.
        run_b: Id of B's run.
    """

    a: str
    b: str
    device_a: str
    device_b: str
    changes: tuple[Change, ...]
    overall: Overall | None
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    differs: tuple[tuple[str, str, str], ...]
    limit: float
    run_a: str = ""
    run_b: str = ""
    neither: tuple[str, ...] = ()

    @property
    def nothing_compared(self) -> str:
        """Why no case could be compared; empty where one could."""
        if self.count(Difference.INCOMPARABLE) < len(self.changes):
            return ""
        reasons = dict.fromkeys(change.comparison.reason for change in self.changes)
        return f"no case could be compared: {next(iter(reasons), 'neither supports any')}"

    @property
    def worse(self) -> tuple[Change, ...]:
        """Cases that are slower than the limit, or lost their figure."""
        return tuple(change for change in self.changes if change.beyond or change.lost)

    @property
    def clean(self) -> bool:
        """Something could be compared, and nothing is worse."""
        return not (self.worse or self.nothing_compared)

    @property
    def unhealthy(self) -> dict[str, tuple[str, ...]]:
        """What makes figures of A and of B doubtful: the reasons why their machines were not healthy, by side."""
        sides = {"A": [one.unhealthy_a for one in self.changes], "B": [one.unhealthy_b for one in self.changes]}
        return {side: tuple(dict.fromkeys(filter(None, reasons))) for side, reasons in sides.items() if any(reasons)}

    def count(self, difference: Difference) -> int:
        """Return how many cases came out so."""
        return sum(change.comparison.difference is difference for change in self.changes)


def matched(run: BenchRun, setting: str) -> list[tuple[Measured, Measured]]:
    """Return the measurements of a run's first setting with those of another one, by case."""
    by = {(item.case.id, item.setting.id): item for item in run.results}
    first = run.settings[0].id
    cases = dict.fromkeys(item.case.id for item in run.results)
    return [(by[case, first], by[case, setting]) for case in cases if (case, first) in by and (case, setting) in by]


def compared_in(run: BenchRun) -> dict[tuple[str, str], Comparison]:
    """Return each setting of a run compared with the first one, by case and setting: all of them made together."""
    pairs = [pair for setting in run.settings[1:] for pair in matched(run, setting.id)]
    made = together([compared(a, b) for a, b in pairs])
    return {(b.case.id, b.setting.id): one for (_, b), one in zip(pairs, made, strict=True)}


def run_data(run: BenchRun) -> dict[str, Any]:
    """Return a run as JSON values, each setting compared with the first one; ``BenchRun`` can be read from it."""
    rows = [
        {"case": case, "setting": setting, "against": run.settings[0].id, **msgspec.to_builtins(one)}
        for (case, setting), one in compared_in(run).items()
    ]
    return {**msgspec.to_builtins(run), "results": [row_of(item) for item in run.results], "comparisons": rows}


def changes_between(a: Side, b: Side, *, limit: float, across: bool = False) -> Changed:
    """Compare two runs, or two settings.

    Args:
        a: The first.
        b: The second.
        limit: How much slower is a finding, as a share.
        across: Two devices are to be compared.
    """
    by_case = len(a.settings) == 1 and len(b.settings) == 1
    first, second = (_keyed(side.results, by_case=by_case) for side in (a, b))
    both = {key: (first[key], second[key]) for key in first if key in second}
    neither = [key for key, pair in both.items() if {one.verdict for one in pair} == {Verdict.UNSUPPORTED}]
    pairs = [pair for key, pair in both.items() if key not in neither]
    found = [_compared(*pair, across=across) for pair in pairs]
    changes = tuple(
        _change(*pair, one, limit, by_case=by_case) for pair, one in zip(pairs, together(found), strict=True)
    )
    return Changed(
        a=a.label,
        b=b.label,
        device_a=a.device,
        device_b=b.device,
        changes=changes,
        overall=overall(found),
        only_a=tuple(" @ ".join(key) for key in first if key not in second),
        only_b=tuple(" @ ".join(key) for key in second if key not in first),
        differs=_differs(a, b, by_case=by_case),
        limit=limit,
        run_a=a.run,
        run_b=b.run,
        neither=tuple(" @ ".join(key) for key in neither),
    )


def _keyed(results: Sequence[Measured], *, by_case: bool) -> dict[tuple[str, ...], Measured]:
    return {(item.case.id,) if by_case else (item.case.id, item.setting.id): item for item in results}


def _compared(a: Measured, b: Measured, *, across: bool) -> Comparison:
    found = compared(a, b, across=across, sides=("A", "B"))
    doubts = [f"{side}: {reason}" for side, reason in (("A", unusable(a)), ("B", unusable(b))) if reason]
    if found.reason and found.reason in {unusable(a), unusable(b)}:
        found = msgspec.structs.replace(found, reason="; ".join(doubts))
    return found


def _change(a: Measured, b: Measured, found: Comparison, limit: float, *, by_case: bool) -> Change:
    lost = a.summary is not None and b.verdict not in _NOT_LOST
    return Change(
        case=a.case.id,
        title=a.case.title or a.case.id,
        setting="" if by_case else b.setting.id,
        unit=a.case.unit,
        comparison=found,
        figure_a=a.figure,
        figure_b=b.figure,
        lost=lost,
        lost_by=b.verdict if lost else None,
        beyond=found.difference is Difference.SLOWER and found.high is not None and found.high < 1 - limit,
        unhealthy_a=a.unhealthy,
        unhealthy_b=b.unhealthy,
        busy_a=busy_share(a),
        busy_b=busy_share(b),
    )


def _differs(a: Side, b: Side, *, by_case: bool) -> tuple[tuple[str, str, str], ...]:
    """Return what differs besides the figures: versions, the machine, what the settings set."""
    rows: list[tuple[str, str, str]] = []
    for one, other in ((a.versions, b.versions), (a.machine, b.machine), (a.conditions, b.conditions)):
        rows += _unlike(one, other)
    if by_case:
        (first,), (second,) = a.settings.values(), b.settings.values()
        if first.id != second.id:
            rows.append(("setting", first.id, second.id))
        rows += _unlike(first.env, second.env)
        rows += _unlike(first.options, second.options)
    else:
        for name in a.settings.keys() & b.settings.keys():
            rows += _unlike(a.settings[name].env, b.settings[name].env)
            rows += _unlike(a.settings[name].options, b.settings[name].options)
    return tuple(dict.fromkeys(rows))


def _unlike(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (name, "" if a.get(name) is None else str(a[name]), "" if b.get(name) is None else str(b[name]))
        for name in dict.fromkeys((*a, *b))
        if a.get(name) != b.get(name)
    ]
