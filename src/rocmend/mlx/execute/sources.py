"""Values from before a tape, while it is computed: brought to the device when first needed, let go after the last use.

A value on another device is copied once, however many operations read it. A large value that nothing but the tape
holds, a weight that is being quantized for example, goes as soon as the last operation that reads it has run.
"""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.execute import interpreter
from rocmend.mlx.execute.trace import ALONE, SHARED
from rocmend.mlx.node import Node

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rocmend.mlx.execute.trace import Tape

__all__ = ["Releases", "Sources", "references", "settled"]

WORTH_BYTES = 1 << 26
"""Of values that only the tape holds, for which they are watched."""


class Sources:
    """Which values from before are not on the device yet.

    Attributes:
        waiting: of each place in ``values`` that waits: all places that wait for the same value.
    """

    def __init__(self, tape: Tape, outside: Iterable[int], values: list[Any], device: torch.device) -> None:
        """Put the values that are on the device into their places."""
        self.waiting: dict[int, list[int]] = {}
        self._tape, self._values, self._device = tape, values, device
        links, count = tape.links, len(tape.nodes)
        alike: dict[int, list[int]] = {}
        for place in outside:
            value = links[place].data
            if type(value) is tuple or value.device == device:
                values[count + place] = value
            else:
                group = alike.setdefault(id(links[place]), [])
                group.append(count + place)
                self.waiting[count + place] = group

    def bring(self, places: Sequence[int]) -> list[int]:
        """Bring what an operation needs to the device, and return the places that have a value now."""
        arrived: list[int] = []
        for place in places:
            group = self.waiting.get(place)
            if group is not None:
                moved = interpreter.moved(self._tape.links[place - len(self._tape.nodes)].data, self._device)
                for one in group:
                    self._values[one] = moved
                    del self.waiting[one]
                arrived += group
        return arrived


def settled(tape: Tape, wanted: Sequence[bool], kept: Iterable[int], lazy: Iterable[int]) -> frozenset[int]:
    """Return the links that nothing reads again once the tape is computed.

    A node that is neither kept nor read by settled ones alone may be computed again later, from its inputs.

    Args:
        tape: a tape.
        wanted: of each place whether it is computed.
        kept: places of the nodes that get a value.
        lazy: places of nodes that are held and stay to be computed.
    """
    kept, lazy = set(kept), set(lazy)
    only_settled = [True] * len(tape.nodes)
    links = len(tape.links)
    found = set()
    for place in range(len(tape.nodes) - 1, -1, -1):
        inputs = tape.nodes[place].inputs
        links -= len(inputs)
        fine = wanted[place] and place not in lazy and (place in kept or only_settled[place])
        for number, child in enumerate(inputs, links):
            if child.pos < 0:
                if fine:
                    found.add(number)
            elif not fine:
                only_settled[child.pos] = False
    return frozenset(found)


class Releases:
    """The large values from before that go while a tape is computed.

    Attributes:
        any: whether there are some.
    """

    def __init__(self, tape: Tape, outside: Iterable[int], settled: frozenset[int]) -> None:
        self._tape = tape
        groups: dict[int, list[int]] = {}
        for place in outside:
            groups.setdefault(id(tape.links[place]), []).append(place)
        self._left: dict[int, list[int]] = {}  # of each link that is watched: those of its node that are still needed
        total = 0
        for places in groups.values():
            held = references(tape, places[:1])[0]
            data = tape.links[places[0]].data
            # once in links and once in the inputs of its reader for each of these
            if settled.issuperset(places) and held - 2 * len(places) == ALONE and type(data) is torch.Tensor:
                total += data.nbytes
                self._left.update(dict.fromkeys(places, places))
        if total < WORTH_BYTES:
            self._left.clear()
        self.any = bool(self._left)
        self._gone = False
        self._readers = self._read_by() if self.any else {}

    def _read_by(self) -> dict[int, Node]:
        found, link = {}, 0
        for node in self._tape.nodes:
            for place in range(link, link + len(node.inputs)):
                if place in self._left:
                    found[place] = node
            link += len(node.inputs)
        return found

    def after(self, free: Iterable[int]) -> None:
        """Let go of the values of which these were the last places needed."""
        links, count = self._tape.links, len(self._tape.nodes)
        for one in free:
            places = self._left.pop(one - count, None)
            if places is None or any(place in self._left for place in places):
                continue
            node = links[places[0]]
            empty = torch.empty(0, dtype=node.data.dtype)
            substitute = Node(None, (), None, None, node.shape, node.dtype, node.stream, empty, SHARED)
            for place in places:
                links[place] = substitute
                reader = self._readers.pop(place)
                reader.inputs = tuple(substitute if child is node else child for child in reader.inputs)
                del reader
            self._gone = True
            del node

    def failed(self, values: Sequence[Any]) -> None:
        """Keep what was computed before an error: what it was computed from may be gone."""
        if self._gone:
            for node, value in zip(self._tape.nodes, values, strict=False):
                if value is not None and node.data is None:
                    node.data = value


def references(tape: Tape, places: Sequence[int]) -> list[int]:
    """Return how many references each of some links' nodes has."""
    links = tape.links
    return list(map(getrefcount, [links[place] for place in places]))
