"""The order in which a tape is computed: as it was recorded, or value by value where that needs far less memory.

A program that builds a model and quantizes it records all weights first, then all quantized ones. Computed in that
order, all weights are there at once. What is wanted is then computed one value after another, each with all that it
needs, as MLX does. A step of generation or training is computed as it was recorded, which is how its buffers are
written in place and its calls joined.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rocmend.mlx.primitive import ITEM

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocmend.mlx.node import Node

__all__ = ["order_of", "peak_of"]

WORTH_BYTES = 1 << 26
"""Saved memory for which the order is changed."""
WORTH_SHARE = 0.8
"""Of the peak as recorded: what another order must stay below."""


def order_of(nodes: Sequence[Node], wanted: Sequence[bool], roots: Sequence[int], kept: Iterable[int]) -> list[int]:
    """Return the places of the wanted nodes of a tape, each after its inputs.

    Args:
        nodes: of the tape.
        wanted: of each place whether it is to be computed.
        roots: places of the values that were asked for.
        kept: places whose values stay.
    """
    recorded = [place for place, needed in enumerate(wanted) if needed]
    if sum(_bytes_of(nodes[place]) for place in recorded) < WORTH_BYTES:
        return recorded
    if any(nodes[place].op.meets for place in recorded):  # type: ignore[union-attr]  # with others, who order alike
        return recorded
    kept = frozenset(kept)
    found = _value_by_value(nodes, roots)
    peak = peak_of(nodes, recorded, kept)
    other = peak_of(nodes, found, kept)
    return found if peak - other >= WORTH_BYTES and other < WORTH_SHARE * peak else recorded


def _value_by_value(nodes: Sequence[Node], roots: Sequence[int]) -> list[int]:
    """Return the places of ``roots`` and all that they need, depth first."""
    order: list[int] = []
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        place, ready = stack.pop()
        if ready:
            order.append(place)
        elif place not in seen:
            seen.add(place)
            stack.append((place, True))
            stack += [(child.pos, False) for child in reversed(nodes[place].inputs) if child.pos >= 0]
    return order


def peak_of(nodes: Sequence[Node], order: Sequence[int], kept: frozenset[int]) -> int:
    """Return the most bytes that values of a tape take at once in an order, by their shapes.

    Args:
        nodes: of the tape.
        order: places, each after its inputs.
        kept: places whose values stay.
    """
    storage: dict[int, int] = {}  # of a place: the place whose memory its value is in
    last: dict[int, int] = {}  # of a storage: the number of the step that needs it last
    for number, place in enumerate(order):
        node = nodes[place]
        source = node.inputs[0].pos if node.inputs else -1
        views = node.op is ITEM or node.op.view  # type: ignore[union-attr]
        storage[place] = (storage[source] if source >= 0 else -1) if views else place
        last[storage[place]] = number
        for child in node.inputs:
            if child.pos >= 0:
                last[storage[child.pos]] = number
    for place in kept:
        if place in storage:
            last[storage[place]] = len(order)
    dying: dict[int, list[int]] = {}
    for place, number in last.items():
        dying.setdefault(number, []).append(place)
    now = most = 0
    for number, place in enumerate(order):
        if storage[place] == place:
            now += _bytes_of(nodes[place])
            most = max(most, now)
        now -= sum(_bytes_of(nodes[gone]) for gone in dying.get(number, ()) if gone >= 0)
    return most


def _bytes_of(node: Node) -> int:
    if node.op is ITEM or node.op.view:  # type: ignore[union-attr]
        return 0
    if node.shape is None:
        return sum(math.prod(shape) * dtype.size for shape, dtype in node.outputs)
    return int(math.prod(node.shape)) * node.dtype.size
