"""How options are laid out that were found by trying before a run."""

from __future__ import annotations

from rocmend.bench.calibration import Calibration, Tried
from rocmend.bench.records import BenchRun
from rocmend.bench.stats import Comparison, Difference
from rocmend.core.units import figure_text, time_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import Block, Card, Cell, Section, Tone, table

_TONES = {Difference.FASTER: Tone.GOOD, Difference.SLOWER: Tone.WARNING}


def calibrations(run: BenchRun) -> list[Block]:
    """Lay out what was found: a sentence for each setting, and behind it what was tried."""
    cards = tuple(map(_card, run.calibrations))
    return [Section("Found before the run", cards)] if cards else []


def _card(found: Calibration) -> Card:
    works = found.verdict is Verdict.PASS
    rows: list[list[str | Cell]] = [
        [
            Cell(f"{one.name}{', taken' if works and one.options == found.chosen else ''}"),
            Cell(_figure(one)) if one.verdict is Verdict.PASS else Cell(one.verdict.value, Tone.ERROR),
            _against(one, found),
            str(one.rounds),
        ]
        for one in found.tried
    ]
    names = [found.option, found.unit, f"against {found.compared_with}" if found.compared_with else "reason", "rounds"]
    device = found.subject.device_name or found.subject.device
    caption = f"{found.test}{f' on {device}' if device else ''}, {time_text(found.time_ms)} in all"
    return Card(
        f"{found.setting}: {found.text}.",
        Tone.INFO if works else Tone.WARNING,
        details=(table(names, rows, caption),) if rows else (),
        details_title="What was tried",
    )


def _figure(one: Tried) -> str:
    ends = (
        f", {figure_text(one.low)} to {figure_text(one.high)}" if one.low is not None and one.high is not None else ""
    )
    return f"{figure_text(one.figure)}{ends}"


def _against(one: Tried, found: Calibration) -> Cell:
    made: Comparison | None = one.comparison
    if one.verdict is not Verdict.PASS:
        return Cell(one.reason, Tone.MUTED)
    if made is None:
        out = found.compared_with and one.name != found.compared_with
        return Cell("out before the last round" if out else "", Tone.MUTED)
    return Cell(
        f"{made.ratio:.2f}x {made.difference.value}" if made.ratio else made.reason,
        _TONES.get(made.difference, Tone.PLAIN),
    )
