"""What the drawings and the lines of a terminal have in common: where an axis ends, how a value is written."""

from __future__ import annotations

import math

from rocmend.report.document import Bars, Span, Stacks


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
