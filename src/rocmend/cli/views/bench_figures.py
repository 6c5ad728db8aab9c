"""How figures of a benchmark are written, and the tables that they stand in."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rocmend.bench.case import UNITS, Case
from rocmend.bench.compare import compared_in
from rocmend.bench.records import BenchRun, Measured
from rocmend.bench.stats import Comparison, Difference
from rocmend.cli.views.bench_memory import bandwidth_tables
from rocmend.cli.views.bench_sensors import label, mark
from rocmend.core.units import figure_text, share_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import Cell, Section, Table, Tone, table

TONES = {Difference.FASTER: Tone.GOOD, Difference.SLOWER: Tone.WARNING}
QUIET = {Verdict.SKIPPED, Verdict.UNSUPPORTED}
WIDE = 0.3
"""Half an interval over the figure from which on its ends are shown: it need not lie evenly around the figure."""
UNCERTAIN = 100
"""Where an end of the interval is so many times the figure, or the figure so many times an end, ends mean nothing."""
_MOST_DIGITS = 5


def figures(run: BenchRun) -> list[Table]:
    """Lay out the figures, a table for each unit: of memory a column for each size, else for each setting."""
    found = bandwidth_tables(run) if run.suite == "memory" else []
    return found or list(_tables(run))


def intervals(run: BenchRun) -> list[Section]:
    """Lay out the figures with their intervals, where the tables that come first have none."""
    if run.suite != "memory" or not bandwidth_tables(run):
        return []
    return [Section("Figures with intervals", tuple(_tables(run)), folded=True, detail=True)]


def _tables(run: BenchRun) -> Iterator[Table]:
    by = {(item.case.id, item.setting.id): item for item in run.results}
    made = compared_in(run)
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in {item.case.id: item.case for item in run.results}.values():
        prefix = label(case).partition(" ")[0] if run.suite == "gemm" else ""  # the dtype
        groups.setdefault((prefix, case.unit), []).append(case)
    for (prefix, unit), cases in groups.items():
        settings = [
            setting
            for setting in run.settings
            if any((one := by.get((case.id, setting.id))) is None or one.verdict not in QUIET for case in cases)
        ]
        rows: list[list[str | Cell]] = []
        for case in cases:
            keys = [(case.id, setting.id) for setting in settings or run.settings]
            first = by.get(keys[0])
            against = made if first is not None and first.summary is not None else {}
            cells = [_cell(by.get(key), against.get(key)) for key in keys]
            rows.append([label(case).removeprefix(f"{prefix} "), *cells])
        names = [setting.id for setting in settings or run.settings]
        better = "" if UNITS[unit].better == "higher" else ", less is better"
        caption = f"{f'{prefix}, ' if prefix else ''}{unit}{better}, with 95 % intervals"
        if len(groups) > 1 and len(settings) < len(run.settings):
            caption += _left_out([setting.id for setting in run.settings if setting not in settings])
        heads = [unit] if names == ["default"] else names
        yield table(
            ["", *heads],
            rows,
            f"{caption}{_bound_words([by.get((case.id, name)) for case in cases for name in names])}",
        )


def _left_out(names: list[str]) -> str:
    return f"; {', '.join(names)}: unsupported" if names else ""


def _bound_words(items: list[Measured | None]) -> str:
    names = dict.fromkeys(item.bounds[0].name for item in items if item is not None and item.bounds)
    return f"; in parentheses the share of the {' or the '.join(names)}" if names else ""


def _cell(item: Measured | None, found: Comparison | None) -> Cell:
    if item is None:
        return Cell("not run", Tone.MUTED)
    if item.summary is None:
        return Cell(item.verdict.value, Tone.MUTED if item.verdict in QUIET else Tone.ERROR)
    text = f"{interval_text(item)}{mark(item)}{of_bound(item, ' (', ')')}"
    if found is None:
        return Cell(text)
    return Cell(text, TONES.get(found.difference, Tone.PLAIN), note=difference_text(found))


def difference_text(found: Comparison) -> str:
    """Return a comparison in a few words: ``0.83x slower``."""
    if found.ratio is None or found.difference is Difference.NONE:
        return found.difference.value
    ratio = f"{found.ratio:.2f}" if found.ratio >= 0.095 else f"{found.ratio:.2g}"
    return f"{ratio}x {found.difference.value}"


def interval_text(item: Measured) -> str:
    """Return a figure with half its interval: ``32.70 ±0.21``; with both ends where it is wide."""
    ends, figure = item.interval, item.figure
    if ends is None or figure is None:
        return figure_text(figure)
    half = max(ends[1] - figure, figure - ends[0])
    if ends[1] > UNCERTAIN * figure or figure > UNCERTAIN * ends[0]:
        return f"{figure_text(figure, digits=2)}, uncertain"
    if half > WIDE * figure:
        return f"{figure_text(figure, digits=3)}, {figure_text(ends[0], digits=2)} to {figure_text(ends[1], digits=2)}"
    return spread_text(figure, half)


def spread_text(figure: float, half: float) -> str:
    """Return a figure with as many digits as its spread, which has two, allows: ``32.70 ±0.21``."""
    if figure <= 0 or not math.isfinite(half):
        return figure_text(figure)
    digits = _MOST_DIGITS - 1 - math.floor(math.log10(figure))
    if half > 0:
        digits = min(digits, 1 - math.floor(math.log10(half)))
    shown = max(digits, 0)
    half = max(round(half, digits), 10.0**-digits)
    return f"{round(figure, digits):,.{shown}f} ±{half:,.{shown}f}"


def of_bound(item: Measured, before: str = "", after: str = "") -> str:
    """Return the share of the tightest bound that a figure reaches; nothing where there is none."""
    figure = item.figure
    limits = [bound.figure for bound in item.bounds if bound.figure > 0]
    if figure is None or not limits:
        return ""
    higher = UNITS[item.case.unit].better == "higher"
    return f"{before}{share_text(figure / min(limits) if higher else max(limits) / figure)}{after}"
