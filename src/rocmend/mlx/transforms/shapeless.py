"""Traces for other shapes: the body recorded again with what its operations say of their shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.node import Node
from rocmend.mlx.primitive import ITEM
from rocmend.mlx.transforms.infer import inferred
from rocmend.mlx.transforms.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["reshaped"]


def reshaped(trace: Trace, inputs: Sequence[Node]) -> Trace:
    """Return a trace like another one, for inputs of other shapes.

    Args:
        trace: as it was recorded.
        inputs: the arrays of a call, of the same number, types and numbers of axes.

    Raises:
        ValueError: an operation of the body cannot say its shape for others.
    """
    new: dict[int, Node] = {id(node): node for node in trace.constants}
    if trace.used is not None:
        inputs = [inputs[at] for at in trace.used]
    for old, given in zip(trace.inputs, inputs, strict=True):
        new[id(old)] = Node(None, (), None, None, given.shape, old.dtype, old.stream, None, -1)
    body = []
    for node in trace.nodes:
        made = _again(node, tuple(new[id(child)] for child in node.inputs))
        new[id(node)] = made
        body.append(made)
    alike = all((a.attrs, a.dyn) == (b.attrs, b.dyn) for a, b in zip(trace.nodes, body, strict=True))
    return Trace(
        [new[id(node)] for node in trace.inputs], trace.constants, body, [new[id(node)] for node in trace.outputs],
        tree=trace.tree, captured=trace.captured, stream=trace.stream, kin=trace.kin if alike else None,
        used=trace.used,
    )  # fmt: skip


def _again(node: Node, inputs: tuple[Node, ...]) -> Node:
    """Return a node like another one, of other inputs."""
    op: Any = node.op
    attrs, dyn, shape = node.attrs, node.dyn, node.shape
    if op is ITEM:
        shape = inputs[0].outputs[attrs][0]
    elif any(_kind(a) != _kind(b) for a, b in zip(inputs, node.inputs, strict=True)):
        shape, attrs, dyn = inferred(node, inputs)
    made = Node(op, inputs, attrs, dyn, shape, node.dtype, node.stream, None, -1)
    if op.outputs is not None:
        made.outputs = node.outputs
    return made


def _kind(node: Node) -> Any:
    return node.outputs if node.shape is None else node.shape
