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
    rows: list[list[str | Cell]] = [
        [
            Cell(f"{one.name}{', taken' if one.options == found.chosen else ''}"),
            Cell(_figure(one)) if one.verdict is Verdict.PASS else Cell(one.verdict.value, Tone.ERROR),
            _against(one, found),
            one.reason or str(one.rounds),
        ]
        for one in found.tried
    ]
    names = [found.option, found.unit, f"against {found.compared_with}", "rounds"]
    device = found.subject.device_name or found.subject.device
    caption = f"{found.test}{f' on {device}' if device else ''}, {time_text(found.time_ms)} in all"
    works = any(one.verdict is Verdict.PASS for one in found.tried)
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
    if one.name == found.compared_with or made is None:
        return Cell("" if made is None and one.name == found.compared_with else "out before the last round", Tone.MUTED)
    return Cell(
        f"{made.ratio:.2f}x {made.difference.value}" if made.ratio else made.reason,
        _TONES.get(made.difference, Tone.PLAIN),
    )
