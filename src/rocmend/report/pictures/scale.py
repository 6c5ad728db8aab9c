"""What the drawings and the lines of a terminal have in common: where an axis ends, how a value is written."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from rocmend.report.document import Axis, Bars, Plot, Span, Stacks, Tick


def axis_end(block: Bars | Stacks) -> float:
    """Return where the axis of a block ends: at its largest value; above 0."""
    if isinstance(block, Bars):
        values = [bar.value for bar in block.bars]
    else:
        values = [sum(part.value for part in stack.parts) for stack in block.stacks]
        values += [mark.value for mark in block.marks]
    return max((value for value in values if math.isfinite(value)), default=0.0) or 1.0


_SHORT_S = 0.1


def duration(span: Span, unit: str) -> str:
    """Return how long a span took: ``8 s``."""
    took = span.end - span.begin
    if unit == "s" and took < _SHORT_S:
        return f"{took * 1e3:.3g} ms"
    return f"{took:.3g} {unit}"


class Scale(NamedTuple):
    """An axis of a plot with its ends, from the first to the last value that is drawn.

    Attributes:
        low: Its lower end; its logarithm where the axis is logarithmic.
        high: Its upper end, above the lower one.
        log: Whether it is logarithmic.
        ticks: What is written at it, from low to high.
    """

    low: float
    high: float
    log: bool
    ticks: tuple[Tick, ...]

    def place(self, value: float) -> float | None:
        """Return where a value is, from 0 to 1; None where it is not on the axis."""
        if not _drawable(value, log=self.log):
            return None
        place = self._unbounded(value)
        return min(max(place, 0.0), 1.0) if -_ROUNDING <= place <= 1 + _ROUNDING else None

    def nearest(self, value: float) -> float:
        """Return where a value is, from 0 to 1; of one that is not on the axis, the end that it is beyond."""
        if not _drawable(value, log=self.log):
            return 1.0 if value == math.inf else 0.0
        return min(max(self._unbounded(value), 0.0), 1.0)

    def _unbounded(self, value: float) -> float:
        at = math.log10(value) if self.log else value
        return (at / 2 - self.low / 2) / (self.high / 2 - self.low / 2)  # halves: no overflow


_ROUNDING = 1e-9
_TICKS = 6
_LARGE = 10_000


def scales(block: Plot) -> tuple[Scale, Scale]:
    """Return the axes of a plot, wide enough for its points that can be drawn; an interval may end beyond them."""
    points = [
        point
        for series in block.series
        for point in series.points
        if _drawable(point.x, log=block.x.log) and _drawable(point.y, log=block.y.log)
    ]
    return _scale(block.x, [point.x for point in points]), _scale(block.y, [point.y for point in points])


def _scale(axis: Axis, values: Iterable[float]) -> Scale:
    found = [value for value in values if _drawable(value, log=axis.log)]
    if axis.log:
        low, high = (math.log10(end) for end in (min(found, default=1.0), max(found, default=10.0)))
        margin = max(0.03 * (high - low), 0.05)
        low, high = low - margin, high + margin
        ticks = axis.ticks or _log_ticks(low, high)
    else:
        step = _step(max([0.0, *found]) / 2 - min([0.0, *found]) / 2)
        low = step * math.floor(min([0.0, *found]) / step)
        high = step * math.ceil(max([step, *found]) / step)
        if not (math.isfinite(low) and math.isfinite(high)):  # near the largest number that there is
            low, high = min([0.0, *found]), max([1.0, *found])
        ticks = axis.ticks or _linear_ticks(low, high, step)
    made = Scale(low, high, axis.log, ())
    shown = [tick for tick in ticks if made.place(tick.value) is not None]
    every = -(-len(shown) // (_TICKS + 2)) or 1
    return made._replace(ticks=tuple(shown[::every]))


def _drawable(value: float, *, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def _step(half: float) -> float:
    """Return a round distance of which about six make the whole."""
    rough = half / _TICKS * 2
    if not math.isfinite(rough) or rough < 1e-300:
        return 1.0 if rough < 1 else rough
    power = 10.0 ** math.floor(math.log10(rough))
    return next((part * power for part in (1, 2, 5) if part * power >= rough), 10 * power)


def _linear_ticks(low: float, high: float, step: float) -> tuple[Tick, ...]:
    first, count = low / step, (high / 2 - low / 2) / step * 2
    if not (math.isfinite(first) and count < 4 * _TICKS):
        return (Tick(low, compact(low)), Tick(high, compact(high)))
    return tuple(Tick((round(first) + n) * step, compact((round(first) + n) * step)) for n in range(round(count) + 1))


def _log_ticks(low: float, high: float) -> tuple[Tick, ...]:
    decades = range(math.floor(low), math.ceil(high) + 1)
    for parts in ((1, 2, 5), (1, 3), (1,)):
        made = [part * 10.0**decade for decade in decades if abs(decade) < 300 for part in parts]
        inside = [value for value in made if low <= math.log10(value) <= high]
        if len(inside) <= _TICKS + 2:
            break
    return tuple(Tick(value, compact(value)) for value in inside)


def compact(value: float) -> str:
    """Return a number in few characters: ``0.25``, ``4096``, ``20 k``, ``1.5 M``."""
    if abs(value) < _LARGE:
        return f"{value:.4g}"
    for scale, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if scale <= abs(value) < 1e15:
            return f"{value / scale:.3g} {letter}"
    return f"{value:.3g}"


def written(value: float, axis: Axis) -> str:
    """Return a value as its axis writes it."""
    return next((tick.text for tick in axis.ticks if tick.value == value), f"{value:.4g}")
