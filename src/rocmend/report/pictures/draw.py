"""Blocks drawn: labels are text that wraps and can be copied, lengths and places are SVG.

The pictures take their colours from the page's CSS variables, and say in words whatever a colour says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from markupsafe import Markup

from rocmend.report.document import (
    Bar,
    Bars,
    Picture,
    Plot,
    Range,
    Ranges,
    Stack,
    Stacks,
    Timeline,
    TimelineRow,
    Topology,
)
from rocmend.report.pictures.markup import box, drawing, element, percent, share
from rocmend.report.pictures.plot import plot
from rocmend.report.pictures.scale import axis_end, duration

_THICK, _THIN = 16, 8
_DEVICES_A_ROW = 4
_LETTER = 7.5
"""Pixels, with some to spare, of a letter of a label."""
_WIDTHS = {0: 300, 680: 680, 1040: 1040}
"""Widths of a picture that its style sheet tells apart, each with the least that there is."""
_NEVER = 9999
_DEVICE_HEIGHT, _HOST_HEIGHT, _WIRE, _GAP, _BETWEEN_HOSTS = 40, 26, 16, 8, 18


def draw(block: Picture) -> Markup:
    """Return the picture as HTML with SVG in it."""
    return Markup().join(_DRAWN[type(block)](block))


def _row(label: str, text: str, *drawn: str, kind: str = "") -> Markup:
    named = element("span", {}, label)
    valued = element("b", {"class": kind} if kind else {}, text)
    return element("div", {"class": "row"}, element("p", {}, named, *([" ", valued] if text else [])), *drawn)


def _bars(block: Bars) -> list[Markup]:
    end = axis_end(block)
    return [_row(bar.label, bar.text, _length(bar, end), kind=bar.tone) for bar in block.bars]


def _length(bar: Bar, end: float) -> Markup:
    track = box(0, 100, 0, _THICK, "track")
    return drawing(
        bar.label, _THICK, track, box(0, share(bar.value, end), 0, _THICK, f"fill {bar.tone}"), text=bar.text
    )


def _ranges(block: Ranges) -> list[Markup]:
    return [_range(one) for one in block.ranges]


def _range(one: Range) -> Markup:
    at = share(one.value - one.low, one.high - one.low)
    needle = element(
        "svg", {"x": percent(at), "width": 1, "height": _THICK, "overflow": "visible"},
        element("rect", {"x": -2, "width": 4, "height": _THICK, "rx": 2, "class": "needle"}),
    )  # fmt: skip
    drawn = drawing(
        one.label,
        _THICK,
        box(0, 100, 4, _THIN, "track"),
        box(0, at, 4, _THIN, f"fill {one.tone}"),
        needle,
        text=f"{one.text}, between {one.low_text} and {one.high_text}",
    )
    ends = element("p", {"class": "axis"}, element("span", {}, one.low_text), " ", element("span", {}, one.high_text))
    return _row(one.label, one.text, drawn, ends, kind=one.tone)


def _stacks(block: Stacks) -> list[Markup]:
    end = axis_end(block)
    return [*(_stack(stack, end) for stack in block.stacks), *(_mark(mark, end) for mark in block.marks)]


def _stack(stack: Stack, end: float) -> Markup:
    at, drawn, named = 0.0, [box(0, 100, 0, 24, "track")], []
    for number, part in enumerate(stack.parts):
        width = min(share(part.value, end), 100 - at)
        kind = f"part-{number % 4} {part.tone}"
        drawn.append(box(at, width, 0, 24, kind))
        swatch = element("svg", {"class": "swatch", "width": 12, "height": 12, "aria-hidden": "true"},
                         box(0, 100, 0, 12, kind))  # fmt: skip
        value = element("b", {}, part.text.replace(" ", "\N{NO-BREAK SPACE}"))
        named.append(element("li", {}, swatch, " ", part.label, " ", value))
        at += width
    text = ", ".join(f"{part.label} {part.text}" for part in stack.parts)
    legend = element("ul", {"class": "legend"}, *named)
    return _row(stack.label, "", drawing(stack.label, 24, *drawn, text=text), legend)


def _mark(mark: Bar, end: float) -> Markup:
    return _row(mark.label, mark.text, drawing(mark.label, _THIN, box(0, share(mark.value, end), 0, _THIN,
                                               f"fill {mark.tone}"), text=mark.text), kind=mark.tone)  # fmt: skip


def _topology(block: Topology) -> list[Markup]:
    parts: list[Markup] = []
    y = 0
    for host in block.hosts:
        parts.append(_boxed(host.label, "", _Frame(0, 100, y, _HOST_HEIGHT), "host"))
        y += _HOST_HEIGHT
        for first in range(0, len(host.devices), _DEVICES_A_ROW):
            gap = _GAP if first else _WIRE
            width = 100 / min(len(host.devices), _DEVICES_A_ROW)
            for place, device in enumerate(host.devices[first : first + _DEVICES_A_ROW]):
                if not first:
                    middle = percent((place + 0.5) * width)
                    wire = {"x1": middle, "x2": middle, "y1": y, "y2": y + _WIRE, "class": f"wire {device.tone}"}
                    parts.append(element("line", wire))
                frame = _Frame(place * width + 0.5, width - 1, y + gap, _DEVICE_HEIGHT)
                parts.append(_boxed(device.label, device.text, frame, f"device {device.tone}"))
            y += gap + _DEVICE_HEIGHT
        y += _BETWEEN_HOSTS
    text = "; ".join(
        f"{host.label}: {', '.join(f'{device.label} {device.text}' for device in host.devices)}" for host in block.hosts
    )
    fabric = [element("p", {"class": "fabric"}, block.fabric)] if block.fabric else []
    return [drawing(block.caption or "Topology", max(y - _BETWEEN_HOSTS, 1), *parts, text=text), *fabric]


class _Frame(NamedTuple):
    """Where a box is: x and width in per cent, y and height in pixels."""

    x: float
    width: float
    y: float
    height: float


def _boxed(label: str, text: str, frame: _Frame, kind: str) -> Markup:
    middle = {"x": "50%", "text-anchor": "middle"}
    lines = [element("text", {**middle, "y": 17, "class": "name"}, label)]
    if text:
        lines.append(element("text", {**middle, "y": 32}, text))
    shape = element("rect", {"width": "100%", "height": frame.height, "rx": 4, "class": kind})
    place = {"x": percent(frame.x), "width": percent(frame.width), "y": frame.y, "height": frame.height}
    return element("svg", place, shape, *lines)


def _timeline(block: Timeline) -> list[Markup]:
    ends = element("span", {}, "0"), " ", element("span", {}, f"{block.length:.3g} {block.unit}")
    rows = [_phases(row, block) for row in block.rows]
    return [*rows, element("p", {"class": "axis"}, *ends)] if rows else []


def _phases(row: TimelineRow, block: Timeline) -> Markup:
    drawn, fits = [box(0, 100, 0, 26, "track")], 0
    for span in row.spans:
        took = f"{span.name} {duration(span, block.unit)}"
        begin, width = share(span.begin, block.length), share(span.end - span.begin, block.length)
        shape = element("rect", {"width": "100%", "height": 26, "class": f"phase {span.tone}"})
        edge = element("rect", {"width": 2, "height": 26, "class": f"edge {span.tone}"})
        labelled = _labelled_from(took, width)
        fits = max(fits, labelled)
        kind = f"{span.tone} from-{labelled}" if labelled else span.tone.value
        name = [element("text", {"x": 7, "y": 17, "class": kind}, took)] if labelled != _NEVER else []
        place = {"x": percent(begin), "width": percent(width), "height": 26}
        drawn.append(element("svg", place, element("title", {}, took), shape, edge, *name))
    text = ", ".join(f"{span.name} {duration(span, block.unit)}" for span in row.spans) or "nothing ran"
    kind = row.spans[-1].tone.value if row.spans else "muted"
    names = [element("p", {"class": f"names until-{fits}"}, text)] if fits else []  # where not all are in the picture
    return _row(row.label, row.ending, drawing(row.label, 26, *drawn, text=text), *names, kind=kind)


def _labelled_from(text: str, per_cent: float) -> int:
    """Return from which width of the picture, in pixels, a span's label fits; 0 where it does on a phone."""
    needed = (len(text) * _LETTER + 10) * 100 / max(per_cent, 0.1)
    return next((name for name, width in _WIDTHS.items() if needed <= width), _NEVER)


_DRAWN: dict[type, Callable[[Any], list[Markup]]] = {
    Bars: _bars,
    Ranges: _ranges,
    Stacks: _stacks,
    Topology: _topology,
    Timeline: _timeline,
    Plot: plot,
}
