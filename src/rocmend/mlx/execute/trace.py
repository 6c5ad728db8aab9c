"""Recognising a step that was seen before.

A program that generates text or trains records the same nodes at every step. The tape of a thread holds what was
recorded since the last evaluation; a ``Signature`` is all of it that a plan depends on, gathered by a few passes that
run in C: about 0.3 µs a node, and 0.1 µs where recording is accelerated. A plan made for a signature holds for every
tape with an equal one.
"""

from __future__ import annotations

from itertools import chain
from operator import attrgetter, itemgetter
from sys import getrefcount
from typing import TYPE_CHECKING, Any

from rocmend.mlx.accelerated import native

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["ALONE", "OWNED", "SHARED", "Tape", "seen"]

# Values of ``Node.pos`` outside a tape. OWNED: nothing else sees the buffer, so it may be written to once no handle
# holds the node. SHARED: it may be seen from elsewhere.
SHARED = -1
OWNED = -3  # hash(-1) == hash(-2)

# What ``getrefcount`` says, mapped over a list, of an object that only the list holds.
ALONE = next(map(getrefcount, [object()]))

_op = attrgetter("op")
_attrs = attrgetter("attrs")
_dtype = attrgetter("dtype")
_shape = attrgetter("shape")
_stream = attrgetter("stream")
_inputs = attrgetter("inputs")
_pos = attrgetter("pos")
_data = attrgetter("data")
_dyn = attrgetter("dyn")


class Tape:
    """The nodes of a tape and what is read off them.

    Attributes:
        nodes: in the order of recording.
        links: the inputs of all nodes, one after another.
        structure: what must be equal for a plan to hold, but for shapes and changing integers.
        shapes: of each node.
        held: how many references each node has. Where two tapes have equal structure, equal counts mean that the same
            nodes are held by handles.
        older: the links from before the tape that are not computed yet.
    """

    __slots__ = ("held", "links", "nodes", "older", "shapes", "structure")

    def __init__(self, nodes: list[Node], roots: list[Node]) -> None:
        self.nodes = nodes
        self.held: list[int]
        self.links: list[Node]
        self.older: list[Node]
        self.shapes: list[tuple[int, ...]]
        self.structure: tuple[list[Any], ...]
        if native is not None:
            self.held, self.links, self.shapes, self.structure, self.older = native.scan(nodes, roots, ALONE)
            return
        self.held = list(map(getrefcount, nodes))
        inputs = list(map(_inputs, nodes))
        self.links = list(chain.from_iterable(inputs))
        self.shapes = list(map(_shape, nodes))
        self.structure = (
            list(map(_op, nodes)),
            list(map(len, inputs)),
            list(map(_pos, self.links)),
            list(map(_attrs, nodes)),
            list(map(_dtype, nodes)),
            list(map(_stream, nodes)),
            list(map(_pos, roots)),
        )
        self.older = [link for link in self.links if link.data is None and link.pos < 0]

    def outside(self) -> list[int]:
        """Return the places in ``links`` of values that were there before the tape began."""
        return [place for place, position in enumerate(self.structure[2]) if position < 0]

    def dyn(self) -> list[tuple[int, ...] | None]:
        """Return the changing integers of each node."""
        return list(map(_dyn, self.nodes))


def hold(nodes: tuple[Node, ...], addresses: list[int]) -> bool:
    """Return whether the values of nodes are the objects of these ids."""
    if native is not None:
        return bool(native.holding(nodes, addresses))
    return list(map(id, map(_data, nodes))) == addresses


def picker(places: list[int]) -> Any:
    """Return a function that picks some items of a list as a tuple, however few they are."""
    if not places:
        return lambda _: ()
    if len(places) == 1:
        place = places[0]
        return lambda items: (items[place],)
    return itemgetter(*places)


def seen(nodes: list[Node], *, owned: frozenset[int] = frozenset()) -> None:
    """Take nodes off the tape: their places mean nothing any more.

    Args:
        nodes: of a tape that was evaluated.
        owned: places of the nodes whose buffers nothing else sees.
    """
    if native is not None:
        native.seen(nodes, SHARED)
    else:
        for node in nodes:
            node.pos = SHARED
    for place in owned:
        nodes[place].pos = OWNED
