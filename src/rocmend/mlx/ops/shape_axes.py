"""Axes in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import AxisError, as_stream, axis_of, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.primitive import Primitive

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["matrix_transpose", "moveaxis", "permute_dims", "swapaxes", "transpose"]

# attrs: for each axis of the output, the input's
TRANSPOSE = Primitive("Transpose", lambda node, x: x.permute(node.attrs), view=True)


@TRANSPOSE.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    back = [0] * len(node.attrs)
    for place, axis in enumerate(node.attrs):
        back[axis] = place
    return (permuted(cotangent, tuple(back)),)


@TRANSPOSE.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return permuted(tangents[0], node.attrs)


@TRANSPOSE.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (axis,) = arrays, axes
    if axis is None:
        return permuted(x, node.attrs), None
    return permuted(x, (axis, *[one + (one >= axis) for one in node.attrs])), 0


def permuted(x: array, order: tuple[int, ...], stream: Any = None) -> array:
    """Record a transposition by axes known to be right; the same node where nothing changes."""
    node = x._n
    if order == _counted[len(order)]:
        return wrap(node)
    shape = node.shape
    return record(TRANSPOSE, (node,), tuple([shape[axis] for axis in order]), node.dtype, order, None, stream)


class _Counted(dict[int, tuple[int, ...]]):
    def __missing__(self, length: int) -> tuple[int, ...]:
        found = self[length] = tuple(range(length))
        return found


_counted = _Counted()
# (axes, number of axes) -> the axes, checked and without negative ones
_orders: dict[tuple[tuple[int, ...], int], tuple[int, ...]] = {}


def _order(axes: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    if len(axes) != ndim:
        raise ValueError(f"[transpose] Received {len(axes)} axes for array with {ndim} dimensions.")
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise AxisError(f"[transpose] Invalid axis ({axis}) for array with {ndim} dimensions.")
    order = tuple([axis % ndim for axis in axes])
    if len(set(order)) != ndim:
        raise ValueError(f"[transpose] Repeat axes not allowed, got {axes}.")
    _orders[axes, ndim] = order
    return order


def transpose(a: array, /, axes: Sequence[int] | None = None, *, stream: Any = None) -> array:
    """Return the axes in another order, without copying.

    Args:
        a: any shape and type.
        axes: for each axis of the result, which axis of ``a`` it is; None: backwards.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: too few or too many axes, or one twice.
        IndexError: there is no such axis.
    """
    if type(a) is not array:
        a = to_array(a)
    node = a._n
    shape = node.shape
    ndim = len(shape)
    if axes is None:
        order = _counted[ndim][::-1]
    else:
        if type(axes) is not tuple:
            axes = tuple(axes)
        order = _orders.get((axes, ndim)) or _order(axes, ndim)
    if order == _counted[ndim]:
        return wrap(node)
    return record(
        TRANSPOSE,
        (node,),
        tuple([shape[axis] for axis in order]),
        node.dtype,
        order,
        None,
        None if stream is None else as_stream(stream),
    )


permute_dims = transpose


def moveaxis(a: array, /, source: int, destination: int, *, stream: Any = None) -> array:
    """Move one axis to another place; the others keep their order.

    Args:
        a: any shape and type.
        source: which axis.
        destination: its place in the result.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        IndexError: there is no such axis.
    """
    a = to_array(a)
    ndim = len(a._n.shape)
    order = list(range(ndim))
    axis = order.pop(axis_of("moveaxis", source, ndim))
    order.insert(axis_of("moveaxis", destination, ndim), axis)
    return permuted(a, tuple(order), None if stream is None else as_stream(stream))


def swapaxes(a: array, /, axis1: int, axis2: int, *, stream: Any = None) -> array:
    """Exchange two axes.

    Args:
        a: any shape and type.
        axis1: one axis.
        axis2: the other.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        IndexError: there is no such axis.
    """
    if type(a) is not array:
        a = to_array(a)
    ndim = len(a._n.shape)
    axis1, axis2 = axis_of("swapaxes", axis1, ndim), axis_of("swapaxes", axis2, ndim)
    order = list(range(ndim))
    order[axis1], order[axis2] = axis2, axis1
    return permuted(a, tuple(order), None if stream is None else as_stream(stream))


def matrix_transpose(a: array, /, *, stream: Any = None) -> array:
    """Exchange the last two axes.

    Args:
        a: at least two axes, any type.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: ``a`` has fewer than two axes.
    """
    if to_array(a).ndim < 2:
        raise ValueError("[matrix_transpose] Input array must have at least 2 dimensions.")
    return swapaxes(a, -1, -2, stream=stream)
