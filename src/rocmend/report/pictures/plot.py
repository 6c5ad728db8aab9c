"""A plot drawn: series on two axes. Each has a marker of its own as well as a colour."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from rocmend.report.document import Plot, Point, Series, SeriesKind
from rocmend.report.pictures.markup import drawing, element, percent
from rocmend.report.pictures.scale import Scale, scales, written

_HEIGHT, _TOP, _LABELS = 280, 10, 24
_COLOURS, _SHAPES = 6, 6
_SHORT = 5
"""Characters of a tick that may reach beyond the drawing: it is centred at the edge too."""
_MARGIN = 7
"""Room for markers at the left and right edge, in per cent of the width that a phone has."""
_LETTER = 7.5
_FEW = 6
"""Points of a series up to which a reader who does not see the picture is read each; the table has all."""


class _Area(NamedTuple):
    """The axes, and where they lie in the drawing."""

    across: Scale
    up: Scale

    def x(self, value: float) -> float | None:
        """Return where a value of x is, in per cent."""
        place = self.across.place(value)
        return None if place is None else 1.5 + place * 97

    def y(self, value: float) -> float | None:
        """Return where a value of y is, in pixels."""
        place = self.up.place(value)
        return None if place is None else _TOP + (1 - place) * (_HEIGHT - _TOP)


def plot(block: Plot) -> list[Markup]:
    """Return the plot: its legend, the values of the vertical axis, and the drawing."""
    area = _Area(*scales(block))
    numbered = _numbered(block.series)
    inside = [*_grid(area), *(mark for number, series in numbered for mark in _series(number, series, area))]
    text = "; ".join(_said(series, block) for series in block.series)
    title = block.caption or f"{block.y.title} over {block.x.title}"
    room = round(max((len(tick.text) for tick in area.up.ticks), default=1) * _LETTER) + 8
    values = [
        element("text", {"x": room - 6, "y": (area.y(tick.value) or 0) + 4, "text-anchor": "end"}, tick.text)
        for tick in area.up.ticks
    ]
    side = element("svg", {"width": room, "height": _HEIGHT + _LABELS, "aria-hidden": "true"}, *values)
    return [
        element("ul", {"class": "legend"}, *(_named(number, series) for number, series in numbered)),
        element("p", {"class": "axis"}, block.y.title),
        element("div", {"class": "plotted"}, side, drawing(title, _HEIGHT + _LABELS, *inside, text=text)),
        element("p", {"class": "axis along"}, block.x.title),
    ]


def _numbered(series: Sequence[Series]) -> list[tuple[int, Series]]:
    """Return each series with the number of its colour and marker; a limit takes none."""
    count = itertools.count()
    return [(-1 if one.kind is SeriesKind.LIMIT else next(count), one) for one in series]


def _colour(number: int) -> str:
    return f"series-{number % _COLOURS}" if number >= 0 else "bound"


def _grid(area: _Area) -> list[Markup]:
    drawn = []
    for tick in area.up.ticks:
        y = area.y(tick.value)
        drawn.append(element("line", {"x1": "0%", "x2": "100%", "y1": y, "y2": y, "class": "grid"}))
    for number, tick in enumerate(area.across.ticks):
        x = area.x(tick.value) or 0.0
        place = percent(x)
        edge = len(tick.text) > _SHORT and not _MARGIN <= x <= 100 - _MARGIN
        anchor = ("start" if x < _MARGIN else "end") if edge else "middle"
        kind = "odd" if number % 2 else "even"
        drawn += [
            element("line", {"x1": place, "x2": place, "y1": _TOP, "y2": _HEIGHT, "class": "grid"}),
            element("text", {"x": place, "y": _HEIGHT + 17, "text-anchor": anchor, "class": kind}, tick.text),
        ]
    drawn.append(element("line", {"x1": "0%", "x2": "100%", "y1": _HEIGHT, "y2": _HEIGHT, "class": "base"}))
    return drawn


def _series(number: int, series: Series, area: _Area) -> list[Markup]:
    colour = _colour(number)
    placed = [(x, y, point) for point in series.points if (x := area.x(point.x)) is not None
              and (y := area.y(point.y)) is not None]  # fmt: skip
    drawn = []
    if series.kind is not SeriesKind.POINTS:
        if series.kind is SeriesKind.LINE:
            placed.sort(key=lambda item: item[0])
        kind = f"{colour} {series.kind}"
        drawn += [
            element("line", {"x1": percent(x), "y1": y, "x2": percent(next_x), "y2": next_y, "class": kind})
            for (x, y, _), (next_x, next_y, _) in pairwise(placed)
        ]
    if series.kind is SeriesKind.LIMIT:
        return drawn
    for x, y, point in placed:
        drawn += _interval(x, point, area, colour)
        place = {"x": percent(x), "y": y, "width": 1, "height": 1, "overflow": "visible"}
        title = element("title", {}, f"{series.name}: {point.text or f'{point.x:.4g}'}, {point.y:.4g}")
        drawn.append(element("svg", place, title, _marker(number, colour)))
    return drawn


def _interval(x: float, point: Point, area: _Area, colour: str) -> list[Markup]:
    if not point.interval:
        return []
    ends = min(point.interval), max(point.interval)
    low, high = (_TOP + (1 - area.up.nearest(end)) * (_HEIGHT - _TOP) for end in ends)
    place = percent(x)
    drawn = [element("line", {"x1": place, "x2": place, "y1": low, "y2": high, "class": f"{colour} whisker"})]
    for end, y, path in ((ends[0], low, "M-4-5 0 0 4-5"), (ends[1], high, "M-4 5 0 0 4 5")):
        if area.up.place(end) is None:  # an arrow says that it goes on
            where = {"x": place, "y": y, "width": 1, "height": 1, "overflow": "visible"}
            arrow = element("path", {"d": path, "class": f"{colour} whisker", "fill": "none"})
            drawn.append(element("svg", where, element("title", {}, f"goes on to {end:.4g}"), arrow))
    return drawn


def _marker(number: int, colour: str) -> Markup:
    """Return the marker of a series around 0, 0: six shapes, filled, then hollow."""
    shape = number % _SHAPES
    kind = f"{colour} marker{' hollow' if number // _SHAPES % 2 else ''}"
    if shape == 0:
        return element("circle", {"r": 4.5, "class": kind})
    paths = (
        "",
        "M0-5.5 5 4H-5Z",
        "M-4-4H4V4H-4Z",
        "M0-6 5.5 0 0 6-5.5 0Z",
        "M-5.5 0H5.5M0-5.5V5.5",
        "M-4-4 4 4M4-4-4 4",
    )
    return element("path", {"d": paths[shape], "class": kind})


def _named(number: int, series: Series) -> Markup:
    colour = _colour(number)
    drawn = []
    if series.kind is not SeriesKind.POINTS:
        drawn.append(element("line", {"x1": 0, "x2": 24, "y1": 7, "y2": 7, "class": f"{colour} {series.kind}"}))
    if series.kind is not SeriesKind.LIMIT:
        drawn.append(element("g", {"transform": "translate(12 7)"}, _marker(number, colour)))
    swatch = {"class": "swatch", "width": 24, "height": 14, "aria-hidden": "true"}
    return element("li", {}, element("svg", swatch, *drawn), " ", series.name)


def _said(series: Series, block: Plot) -> str:
    """Return a series in words: each point where they are few, else its ends."""
    points = sorted(series.points, key=lambda point: point.x)
    if not points:
        return f"{series.name}: no points"
    shown = points if len(points) <= _FEW else [points[0], points[-1]]
    each = ", ".join(
        f"{written(point.y, block.y)} {block.y.unit} at {point.text or f'{written(point.x, block.x)} {block.x.unit}'}"
        for point in shown
    )
    return (
        f"{series.name}: {each}" if shown is points else f"{series.name}, {len(points)} points, first and last: {each}"
    )
