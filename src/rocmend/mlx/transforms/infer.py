"""Shapes of operations for other inputs than they were recorded for, where that can be said.

Element-wise operations broadcast. Operations that know no shape but those of their inputs are asked, on torch's *meta*
device, where nothing is computed. What reads its own shape has a rule here or cannot be inferred.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import broadcast_shapes, shape_text
from rocmend.mlx.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["inferred"]

Shape = tuple[int, ...]
# shape, attrs and dyn
Found = tuple[Any, Any, Any]

_rules: dict[str, Callable[[Node, tuple[Node, ...]], Found]] = {}


def _unknown(name: str) -> ValueError:
    return ValueError(
        f"[Primitive::output_shapes] {name} cannot infer output shapes. Compile the function without shapeless=True."
    )


def inferred(node: Node, inputs: tuple[Node, ...]) -> Found:
    """Return what a node is for inputs of other shapes.

    Args:
        node: with one output.
        inputs: of the numbers of axes and types of the node's.

    Raises:
        ValueError: that cannot be said, or the shapes do not fit.
    """
    op = node.op
    assert op is not None  # noqa: S101  # leaves have no inputs to differ
    rule = _rules.get(op.name)
    if rule is not None:
        return rule(node, inputs)
    if op.elementwise:
        return broadcast_shapes(*(child.shape for child in inputs)), node.attrs, node.dyn
    return _asked(node, inputs), node.attrs, node.dyn


def _asked(node: Node, inputs: tuple[Node, ...]) -> Shape:
    """Run an operation where nothing is computed. It sees no shape of its own, and cannot give an old one back."""
    op: Any = node.op
    if op.outputs is not None or any(child.shape is None for child in inputs):
        raise _unknown(op.name)
    blind = Node(op, (), node.attrs, node.dyn, None, node.dtype, node.stream, None, -1)
    tensors = [torch.empty(child.shape, dtype=child.dtype.storage, device="meta") for child in inputs]
    try:
        with torch.no_grad():
            shape = tuple(op.run(blind, *tensors).shape)
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError):
        raise _unknown(op.name) from None
    return shape


def _rule(*names: str) -> Callable[[Callable[[Node, tuple[Node, ...]], Any]], None]:
    """Register a function that returns a shape, or a shape, ``attrs`` and ``dyn``."""

    def keep(function: Callable[[Node, tuple[Node, ...]], Any]) -> None:
        def rule(node: Node, inputs: tuple[Node, ...]) -> Found:
            found = function(node, inputs)
            if len(found) == 3 and isinstance(found[0], tuple):
                return found  # type: ignore[no-any-return]
            return tuple(found), node.attrs, node.dyn

        for name in names:
            _rules[name] = rule

    return keep


@_rule(
    "Contiguous", "CumMax", "CumMin", "CumProd", "CumSum", "Flip", "FullLike", "Hadamard", "LayerNorm",
    "LogCumSumExp", "RMSNorm", "RoPE", "Scatter", "Softmax", "Sort", "ArgSort",
)  # fmt: skip
def _like_first(node: Node, inputs: tuple[Node, ...]) -> Shape:
    return inputs[0].shape  # type: ignore[no-any-return]


@_rule("SumLike")
def _summed(node: Node, inputs: tuple[Node, ...]) -> Shape:
    shape: Shape = inputs[1].shape
    if broadcast_shapes(shape, inputs[0].shape) != inputs[0].shape:
        raise ValueError(f"[sum] {shape_text(inputs[0].shape)} cannot be summed to {shape_text(shape)}.")
    return shape


@_rule("Sum", "Prod", "Mean", "Max", "Min", "All", "Any")
def _reduced(node: Node, inputs: tuple[Node, ...]) -> Shape:
    axes, keepdims = node.attrs[:2]
    sizes = enumerate(inputs[0].shape)
    return tuple(1 if i in axes else size for i, size in sizes if keepdims or i not in axes)


@_rule("ArgReduce")
def _arg_reduced(node: Node, inputs: tuple[Node, ...]) -> Shape:
    axis, keepdims = node.attrs[:2]
    shape: Shape = inputs[0].shape
    if axis is None:
        return (1,) * len(shape) if keepdims else ()
    return (*shape[:axis], *((1,) if keepdims else ()), *shape[axis + 1 :])


@_rule("Convolution")
def _convolved(node: Node, inputs: tuple[Node, ...]) -> Shape:
    x, weight = inputs[0].shape, inputs[1].shape
    o = node.attrs
    if x[-1] != weight[-1] * o.groups:
        raise ValueError(f"[conv] {x[-1]} channels do not fit a weight of shape {shape_text(weight)}.")
    sizes = zip(x[1:-1], weight[1:-1], o.low, o.high, o.kernel, o.input, o.stride, strict=True)
    return (
        x[0],
        *(
            ((size - 1) * spread + 1 + low + high - (taps - 1) * dilation - 1) // stride + 1
            for size, taps, low, high, dilation, spread, stride in sizes
        ),
        weight[0],
    )


@_rule("Broadcast")
def _broadcast(node: Node, inputs: tuple[Node, ...]) -> Shape:
    shape: Shape = node.shape
    if broadcast_shapes(inputs[0].shape, shape) != shape:
        raise ValueError(
            f"[broadcast_to] {shape_text(inputs[0].shape)} does not broadcast to {shape_text(shape)}, for which the "
            "function was traced."
        )
    return shape


@_rule("BroadcastLike")
def _broadcast_like(node: Node, inputs: tuple[Node, ...]) -> Shape:
    shape: Shape = inputs[1].shape
    if broadcast_shapes(inputs[0].shape, shape) != shape:
        raise ValueError(f"[broadcast_to] {shape_text(inputs[0].shape)} does not broadcast to {shape_text(shape)}.")
    return shape


@_rule("Reshape")
def _reshape(node: Node, inputs: tuple[Node, ...]) -> Shape:
    size = prod(inputs[0].shape)
    asked: Shape = node.shape if node.attrs is None else node.attrs
    known = abs(prod(asked))
    shape = tuple((size // known if known else 0) if one == -1 else one for one in asked)
    if prod(shape) != size:
        raise ValueError(
            f"[reshape] Cannot reshape array of size {size} into shape {shape_text(asked)}, for which the function was "
            "traced."
        )
    return shape


def _bounds(node: Node, old: Shape, new: Shape, strides: Shape) -> tuple[int, ...]:
    """Return starts and stops for other sizes: whole axes stay whole, others keep what is inside of their bounds."""
    ndim = len(strides)
    starts, stops = list(node.dyn[:ndim]), list(node.dyn[ndim:])  # type: ignore[index]
    for i, (before, size) in enumerate(zip(old, new, strict=True)):
        if starts[i] == 0 and stops[i] == before:
            stops[i] = size
        starts[i], stops[i] = min(starts[i], size), min(stops[i], size)
    return (*starts, *stops)


def _sliced(dyn: tuple[int, ...], strides: Shape) -> Shape:
    ndim = len(strides)
    return tuple(
        max(0, -(-(stop - start) // step)) for start, stop, step in zip(dyn[:ndim], dyn[ndim:], strides, strict=True)
    )


@_rule("Slice")
def _slice(node: Node, inputs: tuple[Node, ...]) -> Found:
    dyn = _bounds(node, node.inputs[0].shape, inputs[0].shape, node.attrs)
    return _sliced(dyn, node.attrs), node.attrs, dyn


@_rule("SliceUpdate")
def _slice_update(node: Node, inputs: tuple[Node, ...]) -> Found:
    x, update = inputs
    dyn = _bounds(node, node.inputs[0].shape, x.shape, node.attrs[0])
    if _sliced(dyn, node.attrs[0]) != update.shape:
        raise ValueError(
            f"[slice_update] an update of shape {shape_text(update.shape)} does not fit into {shape_text(x.shape)} at "
            "the places for which the function was traced."
        )
    return x.shape, node.attrs, dyn


def _product(a: Shape, b: Shape) -> Shape:
    if a[-1] != b[-2 if len(b) > 1 else 0]:
        raise ValueError(f"[matmul] Shapes {shape_text(a)} and {shape_text(b)} cannot be multiplied.")
    batch = broadcast_shapes(a[:-2], b[:-2])
    return (*batch, *a[-2:-1], *(b[-1:] if len(b) > 1 else ()))


@_rule("Matmul")
def _matmul(node: Node, inputs: tuple[Node, ...]) -> Shape:
    return _product(inputs[0].shape, inputs[1].shape)


@_rule("AddMM")
def _addmm(node: Node, inputs: tuple[Node, ...]) -> Shape:
    shape = _product(inputs[1].shape, inputs[2].shape)
    if broadcast_shapes(inputs[0].shape, shape) != shape:
        raise ValueError(f"[addmm] {shape_text(inputs[0].shape)} does not broadcast to {shape_text(shape)}.")
    return shape


@_rule("Gather")
def _gather(node: Node, inputs: tuple[Node, ...]) -> Shape:
    x, *places = (child.shape for child in inputs)
    axis: int = node.attrs
    return (*x[:axis], *broadcast_shapes(*places), *x[axis + len(places) :])


def _pairs(inputs: tuple[Node, ...], sides: tuple[Node, Node], *, left: bool, right: bool) -> Shape:
    """Return the shape of pairs of chosen matrices; the indices are the last inputs."""
    indices = [child.shape for child in inputs[len(inputs) - left - right :]]
    lhs = indices.pop(0) if left else sides[0].shape[:-2]
    rhs = indices.pop(0) if right else sides[1].shape[:-2]
    return broadcast_shapes(lhs, rhs)


@_rule("GatherMM")
def _gather_mm(node: Node, inputs: tuple[Node, ...]) -> Shape:
    left, right, _ = node.attrs
    a, b = inputs[:2]
    return (*_pairs(inputs, (a, b), left=left, right=right), a.shape[-2], b.shape[-1])


@_rule("GatherQMM")
def _gather_qmm(node: Node, inputs: tuple[Node, ...]) -> Shape:
    _, _, left, right, _ = node.attrs
    x, w = inputs[:2]
    return (*_pairs(inputs, (x, w), left=left, right=right), x.shape[-2], node.shape[-1])


@_rule("QuantizedMatmul")
def _quantized_matmul(node: Node, inputs: tuple[Node, ...]) -> Shape:
    x, w = inputs[0].shape, inputs[1].shape
    return (*broadcast_shapes(x[:-2], w[:-2]), *x[-2:-1], node.shape[-1])


@_rule("ScaledDotProductAttention")
def _attention(node: Node, inputs: tuple[Node, ...]) -> Shape:
    return (*inputs[0].shape[:-1], inputs[2].shape[-1])
