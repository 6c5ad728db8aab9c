"""How two compared runs of a benchmark are laid out."""

from __future__ import annotations

from collections.abc import Sequence

from rocmend.bench.compare import Change, Changed
from rocmend.bench.comparison import busy_text
from rocmend.bench.stats import Difference
from rocmend.cli.views.bench import counts_text, escaped, overall_text
from rocmend.cli.views.bench_figures import TONES
from rocmend.cli.views.bench_sensors import MARK
from rocmend.core.units import count_text, figure_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import Block, Cell, Document, Section, Text, Tone, table
from rocmend.report.junit import Case, Suite

MOST_NAMED = 10
"""Cases named that only one of the two has, before the rest is counted."""


def changed_document(found: Changed) -> Document:
    """Lay out a comparison: the answer, a table by case, and what else differs."""
    summary, tone = _summary(found)
    measured = [change for change in found.changes if change.figure_a or change.figure_b]
    blocks: list[Block] = [*([_table(measured)] if measured else []), *_unhealthy(found)]
    blocks += _incomparable(found.changes)
    for label, names in ((found.a, found.only_a), (found.b, found.only_b)):
        if names:
            blocks.append(Text(f"Only in {escaped(label)}: {_cases(names)}.", Tone.MUTED))
    if found.neither:
        blocks.append(Text(f"Supported by neither: {_cases(found.neither)}.", Tone.MUTED))
    rows = [list(row) for row in found.differs]
    if found.device_a != found.device_b:
        rows.insert(0, ["device", found.device_a, found.device_b])
    if rows:
        made = table(["", "A", "B"], [[value or "not set" for value in row] for row in rows])
        blocks.append(Section("What else differs", (made,)))
    return Document(
        "B compared with A",
        summary,
        tone,
        tuple(blocks),
        f"A is {_named(found.a, found.run_a)}, B is {_named(found.b, found.run_b)}.",
    )


def _cases(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(f'`{name}`' for name in names[:MOST_NAMED])}{more}"


def _named(label: str, run: str) -> str:
    return f"{label} ({run})" if run and not label.startswith(run) else label


def _summary(found: Changed) -> tuple[str, Tone]:
    counts = counts_text([change.comparison for change in found.changes])
    text = f"B against A, {count_text(len(found.changes), 'case')}: {counts or 'nothing to compare'}"
    text += f"; {overall_text(found.overall)}." if found.overall else "."
    slower = sum(change.beyond for change in found.changes)
    lost = sum(change.lost for change in found.changes)
    if slower:
        text += f" {count_text(slower, 'case')} slower by more than {found.limit * 100:.3g} %."
    if lost:
        text += f" {count_text(lost, 'case')} lost the figure."
    if found.unhealthy:
        text += f" The machine of {' and of '.join(found.unhealthy)} was not healthy."
    if found.worse:
        return text, Tone.ERROR
    if found.unhealthy or found.count(Difference.SLOWER) or found.count(Difference.INCOMPARABLE):
        return text, Tone.WARNING
    return text, Tone.GOOD


def _table(measured: Sequence[Change]) -> Block:
    rows: list[list[str | Cell]] = []
    units = {change.unit for change in measured}
    several = len(units) > 1
    order = [Difference.SLOWER, Difference.FASTER, Difference.NONE, Difference.INCOMPARABLE]
    for change in sorted(
        measured,
        key=lambda change: (not change.lost, order.index(change.comparison.difference), change.comparison.ratio or 0.0),
    ):
        made = change.comparison
        tone = Tone.ERROR if change.beyond or change.lost else TONES.get(made.difference, Tone.PLAIN)
        rows.append(
            [
                _name(change),
                _figures(change) if several else _figures(change).removesuffix(f" {change.unit}"),
                "" if made.ratio is None else f"{made.ratio:.3f}x",
                "" if made.low is None or made.high is None else f"{made.low:.3f} to {made.high:.3f}",
                Cell(made.difference.value, tone),
            ]
        )
    return table(["case", "figure" if several else "".join(units), "speed", "95 % interval", ""], rows)


def _figures(change: Change) -> str:
    a = f"{figure_text(change.figure_a)}{MARK if change.unhealthy_a else ''}"
    b = f"{figure_text(change.figure_b)}{MARK if change.unhealthy_b else ''}" if change.figure_b else "none"
    return f"{a} → {b} {change.unit}"


def _unhealthy(found: Changed) -> list[Block]:
    lines = [
        f"- {side} ({escaped(label)}): {escaped('; '.join(found.unhealthy[side]))}."
        for side, label in (("A", found.a), ("B", found.b))
        if side in found.unhealthy
    ]
    return (
        [Text(f"\\{MARK} Figures of a machine that was not healthy:\n\n" + "\n".join(lines), Tone.WARNING)]
        if lines
        else []
    )


def _name(change: Change) -> str:
    return f"{change.title} @ {change.setting}" if change.setting else change.title


def _incomparable(changes: Sequence[Change]) -> list[Block]:
    """List why cases can't be compared or show no difference, those with the same reason together."""
    reasons: dict[str, list[Change]] = {}
    busy: dict[str, list[Change]] = {}
    for change in changes:
        if change.comparison.reason and (change.busy_a or change.busy_b):
            side = "Both runs" if change.busy_a and change.busy_b else "A" if change.busy_a else "B"
            busy.setdefault(side, []).append(change)
        elif change.comparison.reason:
            reasons.setdefault(change.comparison.reason, []).append(change)
    lines = [_busy(side, alike, len(changes)) for side, alike in busy.items()]
    lines += [f"- {_several(alike)}: {escaped(reason)}" for reason, alike in reasons.items()]
    return [Section("Why not", (Text("\n".join(lines)),))] if lines else []


def _busy(side: str, alike: Sequence[Change], of: int) -> str:
    """Say that the machine of a run, or of both, was busy, and in which cases where not in all."""
    shares = [share for change in alike for share in (change.busy_a, change.busy_b) if share]
    named = "" if len(alike) == of else f"{_several(alike)}: "
    return f"- {named}{side}: {busy_text(shares)}; run again on an idle machine."


def _several(changes: Sequence[Change]) -> str:
    more = f" and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else ""
    return f"{', '.join(escaped(_name(change)) for change in changes[:MOST_NAMED])}{more}"


def junit_suite(found: Changed) -> Suite:
    """Return a comparison as a JUnit suite: a case slower than the limit is ``slow``, one without a figure failed.

    Where no case could be compared, the comparison itself is an error, so that the suite does not pass.
    """
    cases = tuple(map(_junit_case, found.changes))
    if found.nothing_compared:
        cases += (Case(f"{found.a} with {found.b}", "bench", 0.0, Verdict.INFRA, found.nothing_compared),)
    return Suite(cases, f"rocmend compare {found.a} {found.b}")


def _junit_case(change: Change) -> Case:
    made = change.comparison
    if change.lost:
        verdict, message = change.lost_by or Verdict.INFRA, f"no figure any more: {made.reason}"
        if verdict is Verdict.UNSUPPORTED:  # JUnit would call it skipped, and what was lost is a finding
            verdict = Verdict.INFRA
    elif change.beyond:
        verdict = Verdict.SLOW
        message = f"{made.ratio:.3f}x the speed ({made.low:.3f} to {made.high:.3f})"
    elif made.difference is Difference.INCOMPARABLE:
        verdict, message = Verdict.SKIPPED, made.reason
    else:
        verdict, message = Verdict.PASS, ""
    doubts = [reason for reason in dict.fromkeys((change.unhealthy_a, change.unhealthy_b)) if reason]
    message = "; ".join(filter(None, (message, *doubts)))
    suite = change.case.partition("/")[0]
    return Case(_name(change), f"bench.{suite}", 0.0, verdict, message)
