"""What element-wise operations share: two operands of one type, and derivatives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import broadcast_shapes, to_array
from rocmend.mlx.array import array
from rocmend.mlx.construct import constant
from rocmend.mlx.conversion import cast_node
from rocmend.mlx.dtypes import float32, promote
from rocmend.mlx.ops.shape_broadcast import broadcast, unbroadcast
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


# -- derivatives


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
            found.append(unbroadcast(whole, primal._n.shape))
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
        return broadcast(total, output._n.shape)

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


def primitive(name: str, run: Callable[..., Any], *, view: bool = False) -> Primitive:
    """Return a new element-wise primitive."""
    return Primitive(name, run, elementwise=True, view=view)


def simple(name: str, function: Callable[..., Any]) -> Primitive:
    """Return a new element-wise primitive that is one torch function of its inputs."""
    return primitive(name, lambda node, *tensors: function(*tensors))
