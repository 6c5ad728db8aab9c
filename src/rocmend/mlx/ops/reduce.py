"""Sums, products, extremes and truth over axes."""

from __future__ import annotations

from math import prod as _product
from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.dtypes import bool_, int32
from rocmend.mlx.ops.reduce_plan import Axis, plan, restored
from rocmend.mlx.ops.shape import reshaped
from rocmend.mlx.ops.shape_axes import moveaxis, permuted
from rocmend.mlx.ops.shape_broadcast import broadcast, broadcast_like
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    import torch

    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["all", "any", "count_nonzero", "max", "mean", "min", "minmax", "prod", "sum"]

# what sums and products of a type are kept in
_WIDER = {
    bool_: int32,
    dtypes.int8: int32,
    dtypes.int16: int32,
    dtypes.uint8: dtypes.uint32,
    dtypes.uint16: dtypes.uint32,
}


def _numbers(node: Node, x: torch.Tensor) -> torch.Tensor:
    """Return summands that torch reads rightly."""
    import torch

    if node.attrs[2] is dtypes.uint16:
        return x.to(torch.int32) & 0xFFFF
    return x


def _sum(node: Node, x: torch.Tensor) -> torch.Tensor:
    axes, keepdims, _ = node.attrs
    # torch adds half types in float32 and rounds once
    return _numbers(node, x).sum(axes, keepdims, dtype=node.dtype.storage)


def _prod(node: Node, x: torch.Tensor) -> torch.Tensor:
    import torch

    axes, _, dtype = node.attrs
    x = _numbers(node, x)
    rest = [axis for axis in range(x.dim()) if axis not in axes]
    rows = x.permute(*rest, *axes).reshape(*[x.shape[axis] for axis in rest], _count(tuple(x.shape), axes))
    kept = torch.float32 if dtype.is_float and dtype.size == 2 else node.dtype.storage
    return rows.prod(-1, dtype=kept).to(node.dtype.storage).reshape(node.shape)


# attrs of all: axes (sorted, at least one), whether they stay with size 1, type of the input
SUM = Primitive("Sum", _sum)
PROD = Primitive("Prod", _prod)


def _mean(node: Node, x: torch.Tensor) -> torch.Tensor:
    return x.mean(node.attrs[0], node.attrs[1])


MEAN = Primitive("Mean", _mean)


def _complex_extreme(x: torch.Tensor, axes: tuple[int, ...], largest: bool) -> torch.Tensor:
    """Return the extreme by real part, then by imaginary part, NaN if there is one; axes stay."""
    import torch

    nan = x.isnan().any(axes, keepdim=True)
    real, imag = x.real, x.imag
    pick = torch.amax if largest else torch.amin
    low = float("-inf") if largest else float("inf")
    best = pick(real, axes, keepdim=True)
    second = pick(torch.where(real == best, imag, low), axes, keepdim=True)
    return torch.where(nan, complex(float("nan"), 0), torch.complex(best, second))


def extreme(node: Node, x: torch.Tensor, *, largest: bool) -> torch.Tensor:
    """Return the largest or smallest element, NaN where there is one."""
    import torch

    axes, keepdims, dtype = node.attrs
    if dtype.is_complex:
        return _complex_extreme(x, axes, largest).reshape(node.shape)
    pick = torch.amax if largest else torch.amin
    if dtype.is_unsigned:
        low = torch.iinfo(x.dtype).min
        return pick(x ^ low, axes, keepdims) ^ low
    return pick(x, axes, keepdims)


MAX = Primitive("Max", lambda node, x: extreme(node, x, largest=True))
MIN = Primitive("Min", lambda node, x: extreme(node, x, largest=False))
ALL = Primitive("All", lambda node, x: (x != 0).all(node.attrs[0], node.attrs[1]))
ANY = Primitive("Any", lambda node, x: (x != 0).any(node.attrs[0], node.attrs[1]))


def _batched(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (axis,) = arrays, axes
    over, keepdims, dtype = node.attrs
    if axis is None:
        return record(node.op, (x._n,), node.shape, node.dtype, node.attrs), None
    x = moveaxis(x, axis, 0)
    size = x._n.shape[0]
    attrs = (tuple([one + 1 for one in over]), keepdims, dtype)
    return record(node.op, (x._n,), (size, *node.shape), node.dtype, attrs), 0


for _one in (SUM, PROD, MEAN, MAX, MIN, ALL, ANY):
    _one.vmap = _batched


@SUM.rule("vjp")
def _sum_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    (x,) = primals
    return (broadcast_like(reshaped(cotangent, restored(x._n.shape, node.attrs[0])), x),)


@SUM.rule("jvp")
def _sum_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return sum(tangents[0], node.attrs[0], node.attrs[1])


def _count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    return _product([shape[axis] for axis in axes])


@MEAN.rule("vjp")
def _mean_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    shape = primals[0]._n.shape
    each = ops.divide(cotangent, float(_count(shape, node.attrs[0])))
    return (broadcast(reshaped(each, restored(shape, node.attrs[0])), shape),)


@MEAN.rule("jvp")
def _mean_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return mean(tangents[0], node.attrs[0], node.attrs[1])


def _others(x: array, axes: tuple[int, ...]) -> array:
    """Return, for each element, the product of all others over axes: by two scans, as one may be 0."""
    shape = x._n.shape
    order = (*[axis for axis in range(len(shape)) if axis not in axes], *axes)
    turned = permuted(x, order)
    rows = reshaped(turned, (*[shape[axis] for axis in order[: -len(axes)]], _count(shape, axes)))
    before = ops.cumprod(rows, -1, inclusive=False)
    behind = ops.cumprod(rows, -1, reverse=True, inclusive=False)
    back = [0] * len(order)
    for place, axis in enumerate(order):
        back[axis] = place
    return permuted(reshaped(ops.multiply(before, behind), turned._n.shape), tuple(back))


@PROD.rule("vjp")
def _prod_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    (x,) = primals
    axes = node.attrs[0]
    others, wide = _others(x, axes), reshaped(cotangent, restored(x._n.shape, axes))
    if node.dtype.is_complex:
        return (ops.multiply(ops.conjugate(others), wide),)  # in the order of a product's derivative
    return (ops.multiply(wide, others),)


@PROD.rule("jvp")
def _prod_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    axes, keepdims, _ = node.attrs
    return sum(ops.multiply(tangents[0], _others(primals[0], axes)), axes, keepdims)


def _shares(node: Any, x: array, output: array) -> array:
    """Return which elements are the extreme, each with its share."""
    axes = node.attrs[0]
    equal = ops.astype(ops.equal(x, reshaped(output, restored(x._n.shape, axes))), node.dtype)
    return ops.divide(equal, sum(equal, axes, True))  # type: ignore[no-any-return]


def _extreme_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    (x,) = primals
    return (ops.multiply(reshaped(cotangent, restored(x._n.shape, node.attrs[0])), _shares(node, x, output)),)


def _extreme_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return sum(ops.multiply(tangents[0], _shares(node, primals[0], output)), node.attrs[0], node.attrs[1])


for _one in (MAX, MIN):
    _one.vjp = _extreme_vjp
    _one.jvp = _extreme_jvp


def _reduced(op: Primitive, a: Any, axis: Axis, keepdims: bool, dtype: Dtype | None, stream: Any) -> array:
    if type(a) is not array:
        a = to_array(a)
    node = a._n
    kept = node.dtype
    axes, shape = plan(node.shape, axis, keepdims)
    if dtype is None:
        dtype = _WIDER.get(kept, kept) if axes else kept  # MLX widens only what it adds up
    if not axes:
        if dtype is bool_ and kept is not bool_:
            return ops.not_equal(a, 0, stream=stream)  # type: ignore[no-any-return]
        return ops.astype(a, dtype, stream=stream)  # type: ignore[no-any-return]
    return record(
        op, (node,), shape, dtype, (axes, keepdims, kept), None, None if stream is None else as_stream(stream)
    )


def sum(a: array, /, axis: Axis = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Sum over axes.

    Args:
        a: any shape and type.
        axis: one, several, or None for all.
        keepdims: whether they stay, with size 1.
        stream: where.

    Returns:
        The type of ``a``; small integers and bools are summed in 32 bits, half types in float32. Without an axis, as of
        a number, ``a`` itself.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is named twice.
    """
    return _reduced(SUM, a, axis, keepdims, None, stream)


def prod(a: array, /, axis: Axis = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Multiply over axes; arguments and types as for ``sum``."""
    return _reduced(PROD, a, axis, keepdims, None, stream)


def _filled(op: str, a: array, axis: Axis) -> None:
    """Check that an extreme is one of something.

    Raises:
        ValueError: an axis has no elements.
    """
    shape = a._n.shape
    if 0 in shape:
        for one in plan(shape, axis, False)[0]:
            if shape[one] == 0:
                raise ValueError(f"[{op}] Cannot {op} reduce over axis {one} with size 0.")


def max(a: array, /, axis: Axis = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Return the largest element over axes, NaN where there is one.

    Args:
        a: any shape and type; complex numbers are ordered by their real, then their imaginary part.
        axis: one, several, or None for all.
        keepdims: whether they stay, with size 1.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is named twice, or has no elements.
    """
    a = to_array(a)
    _filled("max", a, axis)
    return _reduced(MAX, a, axis, keepdims, a._n.dtype, stream)


def min(a: array, /, axis: Axis = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Return the smallest element over axes, NaN where there is one; arguments as for ``max``."""
    a = to_array(a)
    _filled("min", a, axis)
    return _reduced(MIN, a, axis, keepdims, a._n.dtype, stream)


def minmax(a: array, /, axis: Axis = None, keepdims: bool = False, *, stream: Any = None) -> tuple[array, array]:
    """Return the smallest and the largest element over axes; arguments as for ``max``."""
    return min(a, axis, keepdims, stream=stream), max(a, axis, keepdims, stream=stream)


def all(a: array, /, axis: Axis = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Return whether all elements over axes differ from 0.

    Args:
        a: any shape and type.
        axis: one, several, or None for all.
        keepdims: whether they stay, with size 1.
        stream: where.

    Returns:
        bool; true where there are no elements.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is named twice.
    """
    return _reduced(ALL, a, axis, keepdims, bool_, stream)


def any(a: array, /, axis: Axis = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Return whether an element over axes differs from 0; arguments as for ``all``. False where there are none."""
    return _reduced(ANY, a, axis, keepdims, bool_, stream)


def mean(a: array, /, axis: Axis = None, keepdims: bool = False, *, stream: Any = None) -> array:
    """Return the mean over axes: the sum divided by the number of elements.

    Args:
        a: any shape and type.
        axis: one, several, or None for all.
        keepdims: whether they stay, with size 1.
        stream: where.

    Returns:
        The type of ``a``, float32 for integers. Half types are summed and divided in float32.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is named twice.
    """
    if type(a) is not array:
        a = to_array(a)
    if not a._n.dtype.is_inexact:
        a = ops.astype(a, dtypes.float32, stream=stream)
    return _reduced(MEAN, a, axis, keepdims, a._n.dtype, stream)


def count_nonzero(a: array, /, *, axis: Axis = None, keepdims: bool = False, stream: Any = None) -> array:
    """Count the elements over axes that differ from 0.

    Args:
        a: any shape and type.
        axis: one, several, or None for all.
        keepdims: whether they stay, with size 1.
        stream: where.

    Returns:
        int32.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is named twice.
    """
    return sum(ops.not_equal(a, 0, stream=stream), axis, keepdims, stream=stream)
