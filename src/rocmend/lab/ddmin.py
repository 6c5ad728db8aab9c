"""Delta debugging: the smallest part of a difference that still has the effect.

Source: A. Zeller, R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, IEEE TSE 28 (2002), ddmin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def ddmin(items: Sequence[T], has_effect: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return a 1-minimal part of items with the effect: take any one out of it, and the effect is gone.

    Args:
        items: All items; together they have the effect.
        has_effect: Whether a part, in the order of ``items``, has it. Asked once for each part.

    Raises:
        ValueError: All items together do not have the effect.
    """
    known: dict[tuple[int, ...], bool] = {}

    def test(part: Sequence[int]) -> bool:
        key = tuple(part)
        if key not in known:
            known[key] = has_effect(tuple(items[index] for index in key))
        return known[key]

    current = list(range(len(items)))
    if not test(current):
        raise ValueError("all items together do not have the effect")
    pieces = 2
    while len(current) >= 2:
        parts = _split(current, pieces)
        smaller = next((part for part in parts if test(part)), None)
        if smaller is not None:
            current, pieces = smaller, 2
            continue
        rests = [[index for index in current if index not in set(part)] for part in parts]
        smaller = next((rest for rest in rests if test(rest)), None) if pieces > 2 else None
        if smaller is not None:
            current, pieces = smaller, max(pieces - 1, 2)
        elif pieces >= len(current):
            break
        else:
            pieces = min(len(current), pieces * 2)
    if len(current) == 1 and test([]):
        current = []
    return tuple(items[index] for index in current)


def _split(items: list[int], pieces: int) -> list[list[int]]:
    """Split into as many parts of near equal size, none of them empty."""
    bounds = [round(number * len(items) / pieces) for number in range(pieces + 1)]
    return [items[begin:end] for begin, end in pairwise(bounds) if end > begin]
