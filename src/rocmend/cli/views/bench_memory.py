"""Bandwidth of memory over the size of what is moved."""

from __future__ import annotations

from rocmend.bench.records import BenchRun, Measured
from rocmend.core.units import size_text
from rocmend.report.document import Axis, Block, Plot, Point, Series, Tick

_PLOTS = (("device", "Memory of the device"), ("link", "Between host and device"), ("peer", "Between GPUs"),
          ("host", "Memory of the host"))  # fmt: skip
_LEAST = 3
"""Sizes that a line is drawn through."""


def bandwidths(run: BenchRun) -> list[Block]:
    """Draw bandwidth over size: a plot for each memory, a line for each test."""
    timed = [result for result in run.results if result.figure is not None]
    plots: list[Block] = []
    for where, caption in _PLOTS:
        mine = [result for result in timed if result.case.parameters["where"] == where]
        sizes = sorted({int(result.case.parameters["bytes"]) for result in mine})
        if len(sizes) >= _LEAST:
            ticks = tuple(Tick(size, size_text(size)) for size in sizes)
            plots.append(
                Plot(Axis("Size of an array", log=True, ticks=ticks), Axis("Bandwidth", "GB/s"), _lines(mine), caption)
            )
    return plots


def _lines(results: list[Measured]) -> tuple[Series, ...]:
    lines: dict[str, list[Point]] = {}
    for result in results:
        values = result.case.parameters
        size = int(values["bytes"])
        name = result.case.title.removesuffix(size_text(size)).rstrip(" ,").removeprefix(f"{values['where']} ")
        lines.setdefault(name, []).append(Point(size, result.figure or 0.0, size_text(size), result.interval or ()))
    return tuple(Series(name, tuple(points)) for name, points in lines.items())
