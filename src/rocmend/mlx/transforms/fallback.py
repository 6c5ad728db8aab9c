"""What holds for operations without rules of their own.

Reverse derivatives come from torch, which differentiates the operation's ``run``; forward derivatives from two reverse
ones; batching from a rule for all element-wise operations or, last, from one call for each item of the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.array import array, record, record_many
from rocmend.mlx.node import Node
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from rocmend.mlx.device import Stream

__all__ = ["VJP_OF", "vjp", "vmap"]


class _Call:
    """An operation with all that its ``run`` reads, comparable by value.

    Attributes:
        op: the operation.
        attrs, dyn, shape, dtype, outputs: as on the node.
        given: which outputs' cotangents are among the inputs; None for an operation with one output.
        wanted: places of the inputs that derivatives are taken with respect to.
        count: number of the operation's inputs.
    """

    __slots__ = ("attrs", "count", "dtype", "dyn", "given", "key", "op", "outputs", "shape", "wanted")

    def __init__(self, node: Node, wanted: tuple[int, ...], given: tuple[int, ...] | None) -> None:
        self.op: Primitive = node.op  # type: ignore[assignment]
        self.attrs, self.dyn, self.shape, self.dtype = node.attrs, node.dyn, node.shape, node.dtype
        self.outputs = node.outputs if self.op.outputs is not None else None
        self.wanted = wanted
        self.given = given
        self.count = len(node.inputs)
        self.key = (self.op, self.attrs, self.dyn, self.shape, self.dtype, self.outputs, wanted, given, self.count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Call) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def run(self, stream: Stream, tensors: Sequence[torch.Tensor]) -> Any:
        """Run the operation."""
        node = Node(self.op, (), self.attrs, self.dyn, self.shape, self.dtype, stream, None, -1)
        if self.outputs is not None:
            node.outputs = self.outputs
        return self.op.run(node, *tensors)


def _vjp_of(node: Node, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    import torch

    call: _Call = node.attrs
    inputs, cotangents = list(tensors[: call.count]), tensors[call.count :]
    # Where this is itself being differentiated its inputs ask for derivatives already.
    deeper = any(tensor.requires_grad for tensor in tensors)
    with torch.enable_grad():
        for place in call.wanted:
            # a node of its own, also where two inputs are one tensor
            inputs[place] = inputs[place].view_as(inputs[place]) if deeper else inputs[place].detach()
            if not inputs[place].requires_grad:
                inputs[place].requires_grad_(True)
        result = call.run(node.stream, inputs)
        values = [result] if call.given is None else [result[i] for i in call.given]
        pairs = [(v, c.to(v.dtype)) for v, c in zip(values, cotangents, strict=True) if v.requires_grad]
        if not pairs and call.op is VJP_OF:
            # derivatives of what is linear do not depend on where they are taken
            return tuple(torch.zeros_like(inputs[place]) for place in call.wanted)
        if not pairs:
            raise ValueError(
                f"[vjp] {call.op} has no derivative: no rule is written for it, and torch cannot differentiate it. "
                "Put stop_gradient around it if none is needed."
            )
        wanted = [inputs[place] for place in call.wanted]
        grads = torch.autograd.grad(
            [v for v, _ in pairs], wanted, [c for _, c in pairs], create_graph=deeper, allow_unused=True
        )
    return tuple(torch.zeros_like(x) if g is None else g for x, g in zip(wanted, grads, strict=True))


# Derivatives of another operation, by torch. Its inputs are that operation's and then cotangents; it has no rule
# itself, so that its derivatives are again found by torch, through torch's second derivatives.
VJP_OF = Primitive("VjpOf", _vjp_of, outputs=-1)


def vjp(node: Node, cotangent: Any, depends: set[int]) -> list[array | None]:
    """Record the derivatives of a node by torch."""
    wanted = tuple(
        place
        for place, child in enumerate(node.inputs)
        if id(child) in depends and child.shape is not None and child.dtype.is_inexact
    )
    if node.op.outputs is None:  # type: ignore[union-attr]
        given, cotangents = None, [cotangent] if node.dtype.is_inexact else []
    else:
        given = tuple(i for i, one in enumerate(cotangent) if one is not None and node.outputs[i][1].is_inexact)
        cotangents = [cotangent[i] for i in given]
    found: list[array | None] = [None] * len(node.inputs)
    if not wanted or not cotangents:
        return found
    inputs = (*node.inputs, *(one._n for one in cotangents))
    specs = [(node.inputs[place].shape, node.inputs[place].dtype) for place in wanted]
    grads = record_many(VJP_OF, inputs, specs, _Call(node, wanted, given), None, node.stream)
    for place, grad in zip(wanted, grads, strict=True):
        found[place] = grad
    return found


def vmap(node: Node, arrays: list[Any], axes: list[Any], size: int) -> Any:
    """Record a node's operation for a batch and return its values and their axes."""
    op: Primitive = node.op  # type: ignore[assignment]
    if op.elementwise and op.outputs is None:
        place, shape = axes[0], arrays[0]._n.shape
        if place is None or any(axis != place for axis in axes) or any(x._n.shape != shape for x in arrays):
            place, shape = 0, (size, *node.shape)
            arrays = [_aligned(x, axis, len(node.shape)) for x, axis in zip(arrays, axes, strict=True)]
        return record(op, tuple(x._n for x in arrays), shape, node.dtype, node.attrs, node.dyn, node.stream), place
    parts = []
    for i in range(size):
        inputs = tuple(
            x._n if axis is None else ops.take(x, i, axis=axis)._n for x, axis in zip(arrays, axes, strict=True)
        )
        parts.append(again(node, inputs))
    if op.outputs is None:
        return ops.stack(parts, axis=0), 0
    return tuple(ops.stack(list(values), axis=0) for values in zip(*parts, strict=True)), (0,) * len(node.outputs)


def again(node: Node, inputs: tuple[Node, ...]) -> Any:
    """Record a node's operation on other inputs of the same shapes."""
    op: Primitive = node.op  # type: ignore[assignment]
    if op.outputs is None:
        return record(op, inputs, node.shape, node.dtype, node.attrs, node.dyn, node.stream)
    return record_many(op, inputs, node.outputs, node.attrs, node.dyn, node.stream)


def _aligned(x: array, axis: int | None, ndim: int) -> array:
    """Return an operand with its batch first and as many axes behind as the result has; others as they are."""
    if axis is None:
        return x
    if axis:
        x = ops.moveaxis(x, axis, 0)
    shape = x._n.shape
    missing = ndim + 1 - len(shape)
    return ops.reshape(x, (shape[0], *(1,) * missing, *shape[1:])) if missing else x
