"""What element-wise operations share: two operands of one type, and derivative and batching rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import broadcast_shapes, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.construct import constant
from rocmend.mlx.conversion import cast_node
from rocmend.mlx.dtypes import float32, promote
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__: list[str] = []

_meeting: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]] = {}


def meet(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape in which two shapes meet, remembered."""
    shape = _meeting.get((a, b))
    if shape is None:
        if len(_meeting) > 4096:
            _meeting.clear()
        shape = _meeting[a, b] = broadcast_shapes(a, b)
    return shape


def operands(
    a: Any,
    b: Any,
    stream: Any = None,
    takes: frozenset[Dtype] | None = None,
    other: Callable[..., Dtype] | None = None,
    name: str = "",
) -> tuple[Node, Node, tuple[int, ...], Dtype]:
    """Return two operands as nodes of one type, the shape in which they meet and that type.

    Args:
        a: array or number.
        b: array or number.
        stream: where conversions are computed.
        takes: types that the operation computes; None: all.
        other: ``other(name, dtype, x, y)`` gives the type to compute in where they meet in another.
        name: of the operation, for errors.
    """
    if type(a) is array:
        x = a._n
        y = b._n if type(b) is array else operand(b, x.dtype)
    elif type(b) is array:
        y = b._n
        x = operand(a, y.dtype)
    else:
        x = to_array(a)._n
        y = operand(b, x.dtype)
    dtype = x.dtype
    if dtype is not y.dtype:
        dtype = promote(dtype, y.dtype)
    if takes is not None and dtype not in takes:
        dtype = other(name, dtype, x, y)  # type: ignore[misc]
    if x.dtype is not dtype:
        x = cast_node(x, dtype, stream)
    if y.dtype is not dtype:
        y = cast_node(y, dtype, stream)
    shape = x.shape
    if y.shape not in (shape, ()):
        shape = meet(shape, y.shape)
    return x, y, shape, dtype


def operand(value: Any, dtype: Dtype) -> Node:
    """Return the node of what stands beside an array of ``dtype``; a Python number takes that type where it can."""
    kind = type(value)
    if kind is float:
        return constant(value, dtype if dtype.is_inexact else float32)._n
    if kind is int and (dtype.is_inexact or (dtype.size >= 4 and 0 <= value < 2**31)):
        return constant(value, dtype)._n
    return to_array(value, dtype)._n


# -- derivatives and batching


def unbroadcast(g: array, shape: Sequence[int]) -> array:
    """Sum a cotangent over the axes along which its operand was broadcast to it."""
    have = g._n.shape
    want = tuple(shape)
    if have == want:
        return g
    lead = len(have) - len(want)
    axes = (*range(lead), *(i for i, size in enumerate(want, lead) if size == 1 and have[i] != 1))
    if axes:
        g = ops.sum(g, axis=axes, keepdims=True)
    return ops.reshape(g, want) if g._n.shape != want else g


def broadcasted(t: array, shape: tuple[int, ...]) -> array:
    """Broadcast a tangent to the shape of the output."""
    return t if t._n.shape == shape else ops.broadcast_to(t, shape)


def _times(g: array, factor: array, *, adjoint: bool) -> array:
    if adjoint and factor._n.dtype.is_complex:
        # in MLX's order: on a GPU, where products are contracted, the imaginary part rounds by it
        return ops.multiply(ops.conjugate(factor), g)  # type: ignore[no-any-return]
    return ops.multiply(g, factor)  # type: ignore[no-any-return]


def slope(of: Callable[[Node, array, array], array]) -> Callable[[Primitive], None]:
    """Return what gives a unary primitive its derivative.

    Args:
        of: ``of(node, x, y)``: the derivative at ``x``, where the output is ``y``.
    """

    def vjp(node: Node, primals: Sequence[array], output: array, cotangent: array) -> tuple[array]:
        return (_times(cotangent, of(node, primals[0], output), adjoint=True),)

    def jvp(node: Node, primals: Sequence[array], tangents: Sequence[array], output: array) -> array:
        return _times(tangents[0], of(node, primals[0], output), adjoint=False)

    return _rules(vjp, jvp)


def slopes(
    first: Callable[[Node, array, array, array], array] | None,
    second: Callable[[Node, array, array, array], array] | None,
) -> Callable[[Primitive], None]:
    """Return what gives a binary primitive its two partial derivatives.

    A vjp that it has already stays: one that is cheaper or more exact than a product.

    Args:
        first: ``first(node, x, y, out)``: the derivative with respect to ``x``; None: it is 1.
        second: the one with respect to ``y``.
    """

    def vjp(node: Node, primals: Sequence[array], output: array, cotangent: array) -> tuple[array, array]:
        x, y = primals
        found = []
        for primal, of in ((x, first), (y, second)):
            whole = cotangent if of is None else _times(cotangent, of(node, x, y, output), adjoint=True)
            found.append(unbroadcast(whole, primal.shape))
        return found[0], found[1]

    def jvp(node: Node, primals: Sequence[array], tangents: Sequence[array | None], output: array) -> array:
        x, y = primals
        total: array | None = None
        for tangent, of in zip(tangents, (first, second), strict=True):
            if tangent is None:
                continue
            part = tangent if of is None else _times(tangent, of(node, x, y, output), adjoint=False)
            total = part if total is None else ops.add(total, part)
        if total is None:
            return ops.zeros_like(output)  # type: ignore[no-any-return]
        return broadcasted(total, output.shape)

    return _rules(vjp, jvp)


def _rules(vjp: Callable[..., Any], jvp: Callable[..., Any]) -> Callable[[Primitive], None]:
    def give(op: Primitive) -> None:
        op.vjp, op.jvp = op.vjp or vjp, jvp

    return give


def flat(op: Primitive) -> None:
    """Give a primitive the derivative 0 everywhere (rounding, comparison)."""

    def vjp(node: Node, primals: Sequence[array], output: Any, cotangent: Any) -> list[array]:
        return [ops.zeros_like(primal) for primal in primals]

    def jvp(node: Node, primals: Sequence[array], tangents: Sequence[array | None], output: array) -> array:
        # of the tangents' type: a comparison's own is bool
        given = next((one for one in tangents if one is not None), output)
        return ops.zeros(output._n.shape, given._n.dtype)  # type: ignore[no-any-return]

    op.vjp, op.jvp = vjp, jvp


def batched(node: Node, arrays: Sequence[array], axes: Sequence[int | None]) -> tuple[array, int]:
    """Batch an element-wise operation: put the batch axes where they meet and record it again."""
    axis = axes[0]
    shape = arrays[0]._n.shape
    if axis is None or any(a != axis for a in axes) or any(x._n.shape != shape for x in arrays):
        axis = 0
        ndim = max(x.ndim - (a is not None) for x, a in zip(arrays, axes, strict=True))
        arrays = [_leading(x, a, ndim) for x, a in zip(arrays, axes, strict=True)]
        shape = broadcast_shapes(*(x._n.shape for x in arrays))
    out = record(node.op, tuple(x._n for x in arrays), shape, node.dtype, node.attrs, None, node.stream)  # type: ignore[arg-type]
    return out, axis


def _leading(x: array, axis: int | None, ndim: int) -> array:
    """Return ``x`` with its batch axis first and room for ``ndim`` axes after it."""
    if axis is None:
        return x
    if axis:
        x = ops.moveaxis(x, axis, 0)
    if x.ndim < ndim + 1:
        x = ops.reshape(x, (x.shape[0], *([1] * (ndim + 1 - x.ndim)), *x.shape[1:]))
    return x


def primitive(name: str, run: Callable[..., Any], *, view: bool = False) -> Primitive:
    """Return a new element-wise primitive that batches by broadcasting."""
    return Primitive(name, run, elementwise=True, view=view, vmap=batched)


def simple(name: str, function: Callable[..., Any]) -> Primitive:
    """Return a new element-wise primitive that is one torch function of its inputs."""
    return primitive(name, lambda node, *tensors: function(*tensors))
