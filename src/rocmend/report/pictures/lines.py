"""Pictures in a terminal: bars to scale, with their figures beside or below them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from rocmend.report.document import (
    Bars,
    Picture,
    Plot,
    Ranges,
    SeriesKind,
    Span,
    Stack,
    Stacks,
    Timeline,
    Tone,
    Topology,
)
from rocmend.report.pictures.markup import share
from rocmend.report.pictures.scale import Scale, axis_end, duration, scales

_FILLS = ("█", "▒", "▓", "░")
_PHASES = ("█", "▒")
_WIDEST_LABEL = 28
_LEAST_BAR = 16
_MARKERS = "●▲■◆✚✖○△□◇"
_LIMIT = "╌"
_ROWS = 14
_WIDEST_PLOT = 72


class Line(NamedTuple):
    """A line of a picture.

    Attributes:
        parts: Its texts with their tones.
        wraps: It is words, which may be broken; a bar may not.
        indent: Columns before it.
    """

    parts: tuple[tuple[str, Tone], ...]
    wraps: bool = False
    indent: int = 0


def lines(block: Picture, room: int) -> Iterator[Line]:
    """Yield a picture's lines, its caption left out.

    Args:
        block: The picture.
        room: Columns that there are.
    """
    yield from _LINES[type(block)](block, room)


def _bars(block: Bars, room: int) -> Iterator[Line]:
    end = axis_end(block)
    label = max((len(bar.label) for bar in block.bars), default=0)
    left = room - label - max((len(bar.text) for bar in block.bars), default=0) - 4
    beside = label <= _WIDEST_LABEL and left >= _LEAST_BAR  # else the words stand on a line of their own
    width = min(left, 40) if beside else max(_LEAST_BAR, min(room - 2, 60))
    for bar in block.bars:
        drawn = "█" * (max(1, round(share(bar.value, end) / 100 * width)) if bar.value > 0 else 0)
        if beside:
            shape = (drawn.ljust(width, "░"), bar.tone)
            yield Line(((bar.label.ljust(label) + "  ", Tone.PLAIN), shape, (f"  {bar.text}", bar.tone)))
        else:
            yield Line(((f"{bar.label}: {bar.text}", bar.tone),), wraps=True)
            yield Line(((drawn, bar.tone),), indent=2)


def _ranges(block: Ranges, room: int) -> Iterator[Line]:
    width = max(_LEAST_BAR, min(40, room // 2))
    for one in block.ranges:
        at = round(share(one.value - one.low, one.high - one.low) / 100 * (width - 1))
        yield Line(((f"{one.label}: {one.text} ({one.low_text} to {one.high_text})", one.tone),), wraps=True)
        yield Line((("─" * at + "●" + "─" * (width - 1 - at), one.tone),), indent=2)


def _stacks(block: Stacks, room: int) -> Iterator[Line]:
    end, width = axis_end(block), max(_LEAST_BAR, min(room - 2, 60))
    for stack in block.stacks:
        yield Line(((stack.label, Tone.PLAIN),), wraps=True)
        yield from _stack(stack, end, width)
    for mark in block.marks:
        yield Line(((f"{mark.label}: {mark.text}", mark.tone),), wraps=True)
        yield Line((("━" * max(1, round(share(mark.value, end) / 100 * width)), mark.tone),), indent=2)


def _stack(stack: Stack, end: float, width: int) -> Iterator[Line]:
    drawn, at, named = [], 0.0, []
    for number, part in enumerate(stack.parts):
        begin, at = at, min(at + share(part.value, end) / 100 * width, width)
        fill = _FILLS[number % len(_FILLS)]
        drawn.append((fill * (round(at) - round(begin)), part.tone))
        named.append(f"{fill} {part.label} {part.text}")
    yield Line(tuple(drawn), indent=2)
    yield Line(((", ".join(named), Tone.MUTED),), wraps=True, indent=2)


def _topology(block: Topology, room: int) -> Iterator[Line]:
    del room
    label = max((len(device.label) for host in block.hosts for device in host.devices), default=0)
    for host in block.hosts:
        yield Line(((host.label, Tone.PLAIN),), wraps=True)
        for number, device in enumerate(host.devices, 1):
            branch = "└─ " if number == len(host.devices) else "├─ "
            yield Line(((branch + device.label.ljust(label) + "  " + device.text, device.tone),), wraps=True, indent=2)
    if block.fabric:
        yield Line(((block.fabric, Tone.PLAIN),), wraps=True)


def _timeline(block: Timeline, room: int) -> Iterator[Line]:
    """Yield each row as a bar to scale, with the names of its spans below."""
    width = max(20, room - 2)
    for row in block.rows:
        yield Line(((f"{row.label}: {row.ending}" if row.ending else row.label, Tone.PLAIN),), wraps=True)
        if not row.spans:
            continue
        drawn = []
        for number, columns in enumerate(_widths(row.spans, block.length, width)):
            span = row.spans[number // 2]
            drawn.append((" " * columns if number % 2 == 0 else _PHASES[number // 2 % 2] * columns, span.tone))
        yield Line(tuple(drawn), indent=2)
        names = (
            f"{_PHASES[number % 2]} {span.name} {duration(span, block.unit)}" for number, span in enumerate(row.spans)
        )
        yield Line(((", ".join(names), Tone.MUTED),), wraps=True, indent=2)


def _widths(spans: Sequence[Span], length: float, room: int) -> list[int]:
    """Return for each span the columns before it and its own, at least one, together no more than the room."""
    widths, at = [], 0
    for left, span in zip(range(len(spans), 0, -1), spans, strict=True):
        last = max(at, room - left)  # each span still to come needs a column
        begin = min(max(at, round(span.begin / length * room)), last)
        end = min(max(begin + 1, round(span.end / length * room)), last + 1)
        if begin >= room:
            widths += [0, 0]
            continue
        widths += [begin - at, end - begin]
        at = end
    return widths


def _plot(block: Plot, room: int) -> Iterator[Line]:
    """Yield a grid of characters with the values of its axes, then what its markers stand for."""
    across, up = scales(block)
    margin = max((len(tick.text) for tick in up.ticks), default=0) + 1
    width = max(8, min(room - margin - 2, _WIDEST_PLOT))
    grid = [[" "] * width for _ in range(_ROWS)]
    numbers = [number for number, series in enumerate(block.series) if series.kind is not SeriesKind.LIMIT]
    marks = {number: _MARKERS[place % len(_MARKERS)] for place, number in enumerate(numbers)}
    for number, series in sorted(enumerate(block.series), key=lambda item: item[0] in marks):
        found = [(across.place(point.x), up.place(point.y)) for point in series.points]
        places = [(x, y) for x, y in found if x is not None and y is not None]
        for x, y in places if number in marks else _between(places, width):
            grid[_ROWS - 1 - round(y * (_ROWS - 1))][round(x * (width - 1))] = marks.get(number, _LIMIT)
    yield Line(((block.y.title, Tone.MUTED),), wraps=True)
    labels = {_ROWS - 1 - round((up.place(tick.value) or 0) * (_ROWS - 1)): tick.text for tick in up.ticks}
    for number, row in enumerate(grid):
        text = "".join(row).rstrip()
        edge = "┤" if number in labels else "│"
        yield Line(((labels.get(number, "").rjust(margin) + edge, Tone.MUTED), (text, Tone.PLAIN)))
    yield Line(((" " * margin + "└" + "─" * width, Tone.MUTED),))
    yield Line(((" " * (margin + 1) + _below(across, width), Tone.MUTED),))
    yield Line(((block.x.title, Tone.MUTED),), wraps=True, indent=margin + 1)
    yield from _legend(
        [f"{marks.get(number, _LIMIT * 2)} {series.name}" for number, series in enumerate(block.series)], room
    )


def _legend(names: Sequence[str], room: int) -> Iterator[Line]:
    """Yield what the marks stand for, as many on a line as there is room for."""
    line = ""
    for name in names:
        longer = f"{line}   {name}" if line else name
        if line and len(longer) > room:
            yield Line(((line, Tone.PLAIN),), wraps=True)
            longer = name
        line = longer
    yield Line(((line, Tone.PLAIN),), wraps=True)


def _between(places: Sequence[tuple[float, float]], width: int) -> Iterator[tuple[float, float]]:
    """Yield places on the lines from each place to the next, one a column."""
    for (x, y), (x_next, y_next) in pairwise(places):
        count = max(1, round(abs(x_next - x) * width), round(abs(y_next - y) * _ROWS))
        yield from ((x + (x_next - x) * n / count, y + (y_next - y) * n / count) for n in range(count + 1))


def _below(axis: Scale, width: int) -> str:
    """Return the values of the horizontal axis, each below its place, those left out that would touch."""
    text = ""
    for tick in axis.ticks:
        begin = round((axis.place(tick.value) or 0) * (width - 1)) - len(tick.text) // 2
        begin = max(0, min(begin, width - len(tick.text)))
        if begin >= len(text) + (2 if text else 0):
            text = text.ljust(begin) + tick.text
    return text


_LINES: dict[type, Callable[[Any, int], Iterator[Line]]] = {
    Bars: _bars,
    Ranges: _ranges,
    Stacks: _stacks,
    Topology: _topology,
    Timeline: _timeline,
    Plot: _plot,
}
