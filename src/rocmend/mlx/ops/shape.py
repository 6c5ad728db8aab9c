"""Shapes without copying: reshape and what it stands behind."""

from __future__ import annotations

from math import prod
from operator import index
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import AxisError, as_stream, shape_text, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.node import current
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from rocmend.mlx.node import Node

__all__ = ["atleast_1d", "atleast_2d", "atleast_3d", "expand_dims", "flatten", "reshape", "squeeze", "unflatten"]

LARGEST_SIZE = 2**31 - 1
LARGEST_MEMORY = 4096
# (shape, what was asked for) -> the new shape
_asked: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, ...]] = {}

# The output's shape stands on the node. What is not contiguous is copied where no strides describe the result.
# attrs, while a function is traced: the shape as it was asked for, with -1 for what is left; None: as on the node.
RESHAPE = Primitive("Reshape", lambda node, x: x.reshape(node.shape), view=True)


@RESHAPE.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    return (reshape(cotangent, primals[0]._n.shape),)


@RESHAPE.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return reshape(tangents[0], node.shape)


@RESHAPE.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (axis,) = arrays, axes
    if axis is None:
        return reshape(x, node.shape), None
    x = _fronted(x, axis)
    return reshape(x, (x._n.shape[0], *node.shape)), 0


def _fronted(x: array, axis: int) -> array:
    if not axis:
        return x
    return ops.moveaxis(x, axis, 0)  # type: ignore[no-any-return]


def _expand(node: Node, x: torch.Tensor) -> torch.Tensor:
    for axis in node.attrs:
        x = x.unsqueeze(axis)
    return x


# These tell no sizes, so that they hold for other shapes too where a function is traced without them.
# attrs: new axes of the output; axes of the input; its first and last axis; its axis and the sizes asked for
EXPAND_DIMS = Primitive("ExpandDims", _expand, view=True)
SQUEEZE = Primitive("Squeeze", lambda node, x: x.squeeze(node.attrs), view=True)
FLATTEN = Primitive("Flatten", lambda node, x: x.flatten(*node.attrs), view=True)
UNFLATTEN = Primitive("Unflatten", lambda node, x: x.unflatten(*node.attrs), view=True)


def _viewed(op: Primitive, x: array, shape: tuple[int, ...], attrs: tuple[Any, ...], stream: Any = None) -> array:
    """Record one of them; the same node where nothing changes."""
    node = x._n
    if node.shape == shape:
        return wrap(node)
    return record(op, (node,), shape, node.dtype, attrs, None, stream)


def _view_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    attrs = node.attrs
    if node.op is EXPAND_DIMS:
        return (squeeze(cotangent, attrs),)
    if node.op is SQUEEZE:
        return (expand_dims(cotangent, attrs),)
    if node.op is FLATTEN:
        old = primals[0]._n.shape[attrs[0] : attrs[1] + 1]
        return (unflatten(cotangent, attrs[0], old),)
    return (flatten(cotangent, attrs[0], attrs[0] + len(attrs[1]) - 1),)


def _view_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return _viewed(node.op, tangents[0], node.shape, node.attrs)


def _view_vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (axis,) = arrays, axes
    attrs = node.attrs
    if axis is None:
        return _viewed(node.op, x, node.shape, attrs), None
    x = _fronted(x, axis)
    moved = (attrs[0] + 1, attrs[1]) if node.op is UNFLATTEN else tuple([one + 1 for one in attrs])
    return _viewed(node.op, x, (x._n.shape[0], *node.shape), moved), 0


for _one in (EXPAND_DIMS, SQUEEZE, FLATTEN, UNFLATTEN):
    _one.vjp, _one.jvp, _one.vmap = _view_vjp, _view_jvp, _view_vmap


def out_of_bounds(op: str, axis: int, ndim: int) -> AxisError:
    """Return the error for an axis that is not there."""
    return AxisError(f"[{op}] Axis {axis} is out of bounds for array with {ndim} dimensions.")


def too_large(op: str, size: int) -> OverflowError:
    """Return the error for a size that 32 bits do not hold, in which MLX counts."""
    return OverflowError(f"[{op}] Shape dimension {size} is outside the supported range [{-(2**31)}, {LARGEST_SIZE}].")


def reshaped(x: array, shape: tuple[int, ...], stream: Any = None) -> array:
    """Record a reshape to a shape known to be right; the same node where nothing changes."""
    node = x._n
    if node.shape == shape:
        return wrap(node)
    return record(RESHAPE, (node,), shape, node.dtype, None, None, stream)


def _inferred(size: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``shape`` with its -1 replaced.

    Raises:
        ValueError: the elements do not fit, or several sizes are left open.
    """
    if shape.count(-1) > 1:
        raise ValueError("[reshape] Reshape can only infer one dimension.")
    if -1 in shape:
        known = -prod(shape)
        # nothing tells the size where another one is 0: 0 fits
        shape = tuple((size // known if known > 0 else 0) if one == -1 else one for one in shape)
    if shape and max(shape) > LARGEST_SIZE:
        raise too_large("reshape", max(shape))
    if prod(shape) != size or (shape and min(shape) < 0):
        raise ValueError(f"[reshape] Cannot reshape array of size {size} into shape {shape_text(shape)}.")
    return shape


def reshape(a: array, /, shape: Sequence[int], *, stream: Any = None) -> array:
    """Return the elements, in row-major order, in another shape.

    Args:
        a: any shape and type.
        shape: sizes; one may be -1, which is then found from the others.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: the number of elements differs.
    """
    if type(a) is not array:
        a = to_array(a)
    node = a._n
    shape = asked = tuple(map(index, shape))
    old = node.shape
    key = (old, asked)
    shape = _asked.get(key, asked)
    if shape is asked:
        if prod(shape) != prod(old) or (shape and min(shape) < 0):
            shape = _inferred(prod(old), shape)
        if len(_asked) > LARGEST_MEMORY:
            _asked.clear()
        _asked[key] = shape
    if shape == old:
        return wrap(node)
    attrs = asked if current.state.tracing and asked != shape else None
    return record(RESHAPE, (node,), shape, node.dtype, attrs, None, None if stream is None else as_stream(stream))


def flatten(a: array, /, start_axis: int = 0, end_axis: int = -1, *, stream: Any = None) -> array:
    """Make one axis of the axes from ``start_axis`` to ``end_axis``.

    Args:
        a: any shape and type; a scalar gives one axis.
        start_axis: first axis; one beyond the array's is taken for its nearest.
        end_axis: last axis, which takes part; likewise.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: the axes stand in the wrong order.
    """
    a = to_array(a)
    shape = a._n.shape
    ndim = len(shape)
    stream = None if stream is None else as_stream(stream)
    if not ndim:
        return reshaped(a, (1,), stream)
    start = max(0, start_axis + ndim if start_axis < 0 else start_axis)
    end = min(ndim - 1, end_axis + ndim if end_axis < 0 else end_axis)
    if end < start:
        raise ValueError(
            f"[flatten] start_axis must not stand behind end_axis, got {start_axis} and {end_axis} for {ndim} axes."
        )
    out = (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :])
    return _viewed(FLATTEN, a, out, (start, end), stream)


def unflatten(a: array, /, axis: int, shape: Sequence[int], *, stream: Any = None) -> array:
    """Make several axes of one.

    Args:
        a: any shape and type.
        axis: which one.
        shape: sizes of the new axes; one may be -1.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: the sizes do not fit, or there are none.
        IndexError: there is no such axis.
    """
    a = to_array(a)
    old = a._n.shape
    ndim = len(old)
    new = asked = tuple(map(index, shape))
    if not new:
        raise ValueError("[unflatten] Shape to unflatten to cannot be empty.")
    if not -ndim <= axis < ndim:
        raise AxisError(f"[unflatten] Invalid axis {axis} for array with {ndim} dimensions.")
    axis %= ndim
    try:
        new = _inferred(old[axis], new)
    except ValueError:
        raise ValueError(
            f"[unflatten] Cannot unflatten axis {axis} with size {old[axis]} into shape {shape_text(new)}."
        ) from None
    out = (*old[:axis], *new, *old[axis + 1 :])
    return _viewed(UNFLATTEN, a, out, (axis, asked), None if stream is None else as_stream(stream))


def squeeze(a: array, /, axis: int | Sequence[int] | None = None, *, stream: Any = None) -> array:
    """Leave out axes of size 1.

    Args:
        a: any shape and type.
        axis: which; None: all of them.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: an axis has another size, or is named twice.
        IndexError: there is no such axis.
    """
    if type(a) is not array:
        a = to_array(a)
    shape = a._n.shape
    ndim = len(shape)
    stream = None if stream is None else as_stream(stream)
    if axis is None:
        axes = tuple([one for one, size in enumerate(shape) if size == 1])
        return _viewed(SQUEEZE, a, tuple([size for size in shape if size != 1]), axes, stream)
    left = list(shape)
    given = (axis,) if type(axis) is int else tuple(axis)  # type: ignore[arg-type]
    for one in given:
        if not -ndim <= one < ndim:
            raise out_of_bounds("squeeze", one, ndim)
        if left[one] != 1:
            if left[one] is None:
                raise ValueError("[squeeze] Received duplicate axes.")
            raise ValueError(f"[squeeze] Cannot squeeze axis {one} with size {left[one]} which is not equal to 1.")
        left[one] = None
    axes = tuple([one for one, size in enumerate(left) if size is None])
    return _viewed(SQUEEZE, a, tuple([size for size in left if size is not None]), axes, stream)


def expand_dims(a: array, /, axis: int | Sequence[int], *, stream: Any = None) -> array:
    """Insert axes of size 1.

    Args:
        a: any shape and type.
        axis: their places in the result.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: a place is named twice.
        IndexError: a place lies outside of the result.
    """
    if type(a) is not array:
        a = to_array(a)
    shape = a._n.shape
    stream = None if stream is None else as_stream(stream)
    if type(axis) is int:
        ndim = len(shape) + 1
        if not -ndim <= axis < ndim:
            raise out_of_bounds("expand_dims", axis, ndim)
        if axis < 0:
            axis += ndim
        node = a._n
        return record(EXPAND_DIMS, (node,), (*shape[:axis], 1, *shape[axis:]), node.dtype, (axis,), None, stream)
    given = tuple(axis)  # type: ignore[arg-type]
    ndim = len(shape) + len(given)
    for one in given:
        if not -ndim <= one < ndim:
            raise out_of_bounds("expand_dims", one, ndim)
    places = {one % ndim for one in given}
    if len(places) != len(given):
        raise ValueError("[expand_dims] Received duplicate axes.")
    old = iter(shape)
    out = tuple([1 if place in places else next(old) for place in range(ndim)])
    return _viewed(EXPAND_DIMS, a, out, tuple(sorted(places)), stream)


def _atleast(arrays: tuple[Any, ...], ndim: int, stream: Any) -> Any:
    stream = None if stream is None else as_stream(stream)
    found = []
    for x in map(to_array, arrays):
        shape = x._n.shape
        if len(shape) < ndim:
            # a row of a matrix, and the middle axis of a block
            front = (1,) if ndim > 1 and len(shape) < 2 else ()
            shape = (*front, *shape)
            shape += (1,) * (ndim - len(shape))
        found.append(reshaped(x, shape, stream))
    return found[0] if len(found) == 1 else found


def atleast_1d(*arys: array, stream: Any = None) -> Any:
    """Give each array at least one axis.

    Args:
        arys: any shapes and types.
        stream: where.

    Returns:
        An array for one array, else a list.
    """
    return _atleast(arys, 1, stream)


def atleast_2d(*arys: array, stream: Any = None) -> Any:
    """Give each array at least two axes; one axis becomes a row.

    Args:
        arys: any shapes and types.
        stream: where.

    Returns:
        An array for one array, else a list.
    """
    return _atleast(arys, 2, stream)


def atleast_3d(*arys: array, stream: Any = None) -> Any:
    """Give each array at least three axes: ``[n]`` becomes ``[1, n, 1]``, ``[m, n]`` becomes ``[m, n, 1]``.

    Args:
        arys: any shapes and types.
        stream: where.

    Returns:
        An array for one array, else a list.
    """
    return _atleast(arys, 3, stream)
