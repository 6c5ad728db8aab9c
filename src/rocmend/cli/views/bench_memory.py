"""Bandwidth of memory over the size of what is moved: tables and plots."""

from __future__ import annotations

from rocmend.bench.records import BenchRun, Measured
from rocmend.cli.views.bench_sensors import mark
from rocmend.core.units import figure_text, size_text
from rocmend.core.verdict import Verdict
from rocmend.report.document import Axis, Block, Cell, Plot, Point, Series, Table, Tick, Tone, table

_PLOTS = (("device", "Memory of the device"), ("link", "Between host and device"), ("peer", "Between GPUs"),
          ("host", "Memory of the host"))  # fmt: skip
_LEAST = 3
"""Sizes that a line is drawn through."""


def bandwidth_tables(run: BenchRun) -> list[Table]:
    """Lay out bandwidth: a table for each memory, a row for each test, a column for each size; none of few sizes."""
    made = []
    for where, caption in _PLOTS:
        mine = [result for result in run.results if result.case.parameters.get("where") == where]
        sizes = sorted({_size(result) for result in mine})
        if len(run.settings) == 1 and len(sizes) >= _LEAST:
            rows: dict[str, dict[int, Cell]] = {}
            for result in mine:
                rows.setdefault(_name(result), {})[_size(result)] = _cell(result)
            cells: list[list[str | Cell]] = [
                [name, *(found.get(size, Cell("not run", Tone.MUTED)) for size in sizes)]
                for name, found in rows.items()
            ]
            made.append(table(["", *map(size_text, sizes)], cells, f"{caption}, GB/s by size of an array"))
    sized = sum(len(row) - 1 for one in made for row in one.rows)
    return made if sized >= len(run.results) else []


def _cell(result: Measured) -> Cell:
    if result.summary is None:
        quiet = result.verdict in {Verdict.SKIPPED, Verdict.UNSUPPORTED}
        return Cell(result.verdict.value, Tone.MUTED if quiet else Tone.ERROR)
    return Cell(f"{figure_text(result.figure, digits=3)}{mark(result)}")


def _size(result: Measured) -> int:
    return int(result.case.parameters["bytes"])


def _name(result: Measured) -> str:
    """Return what is done, without where and with how much."""
    values = result.case.parameters
    return result.case.title.removesuffix(size_text(_size(result))).rstrip(" ,").removeprefix(f"{values['where']} ")


def bandwidths(run: BenchRun) -> list[Block]:
    """Draw bandwidth over size: a plot for each memory, a line for each test."""
    timed = [result for result in run.results if result.figure is not None]
    plots: list[Block] = []
    for where, caption in _PLOTS:
        mine = [result for result in timed if result.case.parameters["where"] == where]
        sizes = sorted(set(map(_size, mine)))
        if len(sizes) >= _LEAST:
            ticks = tuple(Tick(size, size_text(size)) for size in sizes)
            plots.append(
                Plot(Axis("Size of an array", log=True, ticks=ticks), Axis("Bandwidth", "GB/s"), _lines(mine), caption)
            )
    return plots


def _lines(results: list[Measured]) -> tuple[Series, ...]:
    lines: dict[str, list[Point]] = {}
    for result in results:
        size = _size(result)
        point = Point(size, result.figure or 0.0, size_text(size), result.interval or ())
        lines.setdefault(_name(result), []).append(point)
    return tuple(Series(name, tuple(points)) for name, points in lines.items())
