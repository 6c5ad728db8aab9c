"""What transformations share: tracing a function, and walking what it recorded.

A transformation calls a function on handles of fresh nodes, *primals*, and then walks the graph between the function's
outputs and them. ``IDENTITY`` nodes are primals that can be computed (derivatives); a *placeholder* is a node with no
operation and no value, which stands for another value at each use (batching and compiling): computing it is an error.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.node import Node, current
from rocmend.mlx.primitive import IDENTITY, ITEM, STOP_GRADIENT, Primitive

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "CUSTOM", "apart", "between", "items_of", "placeholder", "primal", "results",
    "sources", "tracing",
]  # fmt: skip


def _same(node: Node, primals: Any, output: Any, cotangent: Any) -> Any:
    return (cotangent,)


def _moved(node: Node, primals: Any, tangents: Any, output: Any) -> Any:
    return tangents[0]


IDENTITY.vjp, IDENTITY.jvp = _same, _moved


def _outputs(node: Node, *tensors: Any) -> Any:
    return tensors[node.attrs.count :]


# A call of a function with rules of its own. Its inputs are the arguments and, after them, what the function returned;
# its outputs are the latter. ``attrs`` is the call (``custom.Call``), whose rules replace those of the body.
CUSTOM = Primitive("CustomTransforms", _outputs, outputs=-1)


def primal(x: array) -> array:
    """Return a handle of a fresh node of the same value, which derivatives are taken with respect to."""
    node = x._n
    return record(IDENTITY, (node,), node.shape, node.dtype, None, None, node.stream)


def placeholder(shape: tuple[int, ...], like: Node) -> array:
    """Return a handle of a fresh node that has no value."""
    return wrap(Node(None, (), None, None, shape, like.dtype, like.stream, None, -1))


@contextmanager
def tracing() -> Iterator[None]:
    """Keep what is recorded in one piece: computed nodes keep their inputs, compiled functions are traced through."""
    state = current.state
    state.tracing += 1
    try:
        yield
    finally:
        state.tracing -= 1


class Tape(list[Node]):
    """The tape while a function is traced: an evaluation leaves it as it is."""


@contextmanager
def apart() -> Iterator[list[Node]]:
    """Trace, and record on a tape of its own: what is recorded is a pattern, and not itself to be computed."""
    state = current.state
    before = state.tape
    state.tape = tape = Tape()
    try:
        with tracing():
            yield tape
    finally:
        for node in tape:
            node.pos = -1  # its place on this tape means nothing any more
        if type(before) is Tape:
            before += tape  # within another pattern: what does not depend on this one's arguments is part of that
        state.tape = before


def sources(node: Node) -> Sequence[Node]:
    """Return the inputs of a node that transformations follow."""
    if node.op is CUSTOM:
        return node.inputs[: node.attrs.count]
    return node.inputs


def between(
    outputs: Iterable[Node], primals: Iterable[Node], *, through_stops: bool = False
) -> tuple[list[Node], set[int]]:
    """Return the nodes that outputs need and that depend on primals, each after its inputs; and the ids of all that do.

    Args:
        outputs: where to begin.
        primals: where to stop; they depend on themselves and are not among the nodes.
        through_stops: also follow ``stop_gradient``.
    """
    depends = {id(node) for node in primals}
    seen = set(depends)
    order: list[Node] = []
    stack: list[Node | None] = list(outputs)
    while stack:
        node = stack.pop()
        if node is None:  # the next one's inputs are done
            node = stack.pop()
            assert node is not None  # noqa: S101  # pushed as a pair
            if any(id(child) in depends for child in sources(node)):
                depends.add(id(node))
                order.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        if not node.inputs or (node.op is STOP_GRADIENT and not through_stops):
            continue
        stack += (node, None)
        stack += [child for child in reversed(sources(node)) if id(child) not in seen]
    return order, depends


def items_of(whole: Node) -> tuple[array, ...]:
    """Return handles of all values of an operation with several outputs."""
    return tuple(
        record(ITEM, (whole,), shape, dtype, index, None, whole.stream)
        for index, (shape, dtype) in enumerate(whole.outputs)
    )


def results(node: Node) -> Any:
    """Return what a node computes, as rules take it: a handle, or a tuple of them where it has several outputs."""
    return wrap(node) if node.op is None or node.op.outputs is None else items_of(node)
