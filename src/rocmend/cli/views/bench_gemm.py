"""Rooflines of matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from rocmend.bench.records import BenchRun, Measured
from rocmend.bench.suites.gemm_cases import FASTEST, PEAK, bytes_of, short_dtype
from rocmend.report.document import Axis, Block, Plot, Point, Series, SeriesKind

_LEAST = 3
"""Products of a dtype that are drawn; fewer are read in the table."""


def rooflines(run: BenchRun) -> list[Block]:
    """Draw the speed of products over their arithmetic intensity, a plot for each dtype, with what bounds them."""
    timed = [result for result in run.results if result.figure is not None and "dtype" in result.case.parameters]
    plots: list[Block] = []
    for dtype in dict.fromkeys(short_dtype(result.case) for result in timed):
        mine = [result for result in timed if short_dtype(result.case) == dtype]
        if len({result.case.id for result in mine}) >= _LEAST:
            plots.append(_plot(dtype, mine))
    return plots


def _intensity(result: Measured) -> float:
    return result.case.work / bytes_of(result.case)


def _plot(dtype: str, results: Sequence[Measured]) -> Plot:
    series = []
    for setting in dict.fromkeys(result.setting.id for result in results):
        points = tuple(
            Point(_intensity(result), result.figure or 0.0, result.case.title, result.interval or ())
            for result in results
            if result.setting.id == setting
        )
        series.append(Series(setting, points, SeriesKind.POINTS))
    unit = results[0].case.unit
    return Plot(
        Axis("Arithmetic intensity", "operations per byte", log=True),
        Axis("Speed", unit, log=True),
        (*_roof(results), *series),
        f"Roofline, {dtype}",
    )


def _roof(results: Sequence[Measured]) -> tuple[Series, ...]:
    """Return what bounds the products: memory, rising, then arithmetic; nothing where neither is known."""
    bounds = [(bound, _intensity(result)) for result in results for bound in result.bounds]
    tops = [bound for bound, _ in bounds if bound.name in {PEAK, FASTEST}]
    slopes = [bound.figure / intensity for bound, intensity in bounds if bound.name not in {PEAK, FASTEST}]
    top = max((bound.figure for bound in tops), default=0.0)
    name = tops[0].name if tops else ""
    low, high = min(map(_intensity, results)), max(map(_intensity, results))
    if not slopes:
        return (Series(name, (Point(low, top), Point(high, top)), SeriesKind.LIMIT),) if tops else ()
    slope = max(slopes)
    if not tops:
        return (Series("memory bandwidth", (Point(low, slope * low), Point(high, slope * high)), SeriesKind.LIMIT),)
    ridge = top / slope
    points = [Point(low, min(top, slope * low)), Point(high, min(top, slope * high))]
    if low < ridge < high:
        points.insert(1, Point(ridge, top))
    return (Series(f"memory bandwidth and {name}", tuple(points), SeriesKind.LIMIT),)
