"""Reading at places that arrays tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import AxisError, as_stream, shape_text, to_array
from rocmend.mlx.arguments import broadcast_shapes as meet
from rocmend.mlx.array import array, record
from rocmend.mlx.dtypes import bool_, uint16
from rocmend.mlx.ops.shape import out_of_bounds, reshaped
from rocmend.mlx.ops.shape_axes import moveaxis
from rocmend.mlx.ops.shape_broadcast import broadcast, unbroadcast
from rocmend.mlx.ops.slices import batched, cut
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    import torch

    from rocmend.mlx.node import Node

__all__ = ["take", "take_along_axis"]


def inside(indices: torch.Tensor, size: int) -> torch.Tensor:
    """Return int64 places: negative ones from the end, and what lies outside at the nearest."""
    import torch

    wide = indices.to(torch.int64)
    return torch.where(wide < 0, wide + size, wide).clamp(0, max(size - 1, 0))


def joined(indices: tuple[torch.Tensor, ...], sizes: tuple[int, ...]) -> torch.Tensor:
    """Return places in the axes of ``sizes`` made one."""
    places = inside(indices[0], sizes[0])
    for index, size in zip(indices[1:], sizes[1:], strict=True):
        places = places * size + inside(index, size)
    return places


def _gather(node: Node, x: torch.Tensor, *indices: torch.Tensor) -> torch.Tensor:
    axis: int = node.attrs
    count = len(indices)
    if x.is_cuda:
        from rocmend.kernels.ops.memory.take.function import take as kernel

        if count == 1:
            return kernel(x, indices[0], axis)
        return kernel(x.flatten(axis, axis + count - 1), joined(indices, tuple(x.shape[axis : axis + count])), axis)
    sizes = tuple(x.shape[axis : axis + count])
    flat = x if count == 1 else x.flatten(axis, axis + count - 1)
    places = joined(indices, sizes)
    return flat.index_select(axis, places.reshape(-1)).reshape(node.shape)


# inputs: x and one array of places for each of the axes from attrs on; the places' shape stands where the axes were
GATHER = Primitive("Gather", _gather)


def usable(indices: array) -> array:
    """Return indices of a type that needs no unsigned reading.

    Raises:
        ValueError: they are no integers.
    """
    dtype = indices._n.dtype
    if dtype is uint16:
        return ops.astype(indices, dtypes.int32)  # type: ignore[no-any-return]
    if dtype is bool_:
        raise ValueError("[gather] Boolean indices are not supported: where the result has elements depends on values.")
    if dtype.is_inexact:
        raise ValueError(f"[gather] Got indices with invalid dtype {dtype}. Indices must be integral.")
    return indices


def gathered(x: array, indices: list[array], axis: int, stream: Any = None) -> array:
    """Record a read at places along consecutive axes from ``axis`` on; ``indices`` broadcast with each other."""
    node = x._n
    shape = node.shape
    places = indices[0]._n.shape if len(indices) == 1 else meet(*[one._n.shape for one in indices])
    size = 1
    for one in shape[axis : axis + len(indices)]:
        size *= one
    if size == 0 and 0 not in places:
        raise ValueError("[take] Cannot do a non-empty take from an empty axis.")
    return record(
        GATHER,
        (node, *[one._n for one in indices]),
        (*shape[:axis], *places, *shape[axis + len(indices) :]),
        node.dtype,
        axis,
        None,
        stream,
    )


@GATHER.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    x, *indices = primals
    zeros = ops.zeros(x._n.shape, cotangent._n.dtype)
    return (ops.scattered(zeros, indices, cotangent, node.attrs, "add"), *[None] * len(indices))


@GATHER.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    if tangents[0] is None:
        return ops.zeros_like(output)
    return gathered(tangents[0], list(primals[1:]), node.attrs)


def batched_indices(indices: Any, axes: Any) -> tuple[list[array], int]:
    """Return indices with the batch in front, aligned behind it, and the batch's size; those without one broadcast."""
    ndim = max(len(one._n.shape) - (axis is not None) for one, axis in zip(indices, axes, strict=True))
    found, size = [], 0
    for one, axis in zip(indices, axes, strict=True):
        if axis is None:
            found.append(one)
            continue
        moved = moveaxis(one, axis, 0)
        size, *rest = moved._n.shape
        found.append(reshaped(moved, (size, *(1,) * (ndim - len(rest)), *rest)))
    return found, size


def counted(size: int, ndim: int) -> array:
    """Return the numbers of a batch, which broadcast with ``ndim`` axes behind them."""
    return reshaped(ops.arange(size), (size, *(1,) * ndim))


@GATHER.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x, *indices), (x_axis, *index_axes) = arrays, axes
    start = node.attrs
    if all(axis is None for axis in index_axes):
        if x_axis is None:
            return gathered(x, indices, start), None
        return gathered(moveaxis(x, x_axis, 0), indices, start + 1), 0
    indices, size = batched_indices(indices, index_axes)
    if x_axis is None:
        return gathered(x, indices, start), start
    x = moveaxis(x, x_axis, start)
    ndim = max(len(one._n.shape) for one in indices) - 1
    return gathered(x, [counted(size, ndim), *indices], start), start


def _axis(op: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise AxisError(f"[{op}] Received invalid axis {axis} for array with {ndim} dimensions.")
    return axis + ndim if axis < 0 else axis


def take(a: array, /, indices: int | array, axis: int | None = None, *, stream: Any = None) -> array:
    """Take lines of an axis: ``a[:, indices, ...]`` for ``axis=1``.

    Args:
        a: any shape and type.
        indices: integers of any shape; negative ones count from the end. What one that lies outside gives is not said.
        axis: which; None: from all elements as one row.
        stream: where.

    Returns:
        ``a.shape[:axis] + indices.shape + a.shape[axis + 1:]``.

    Raises:
        ValueError: indices that are no integers, or nothing to take from.
        IndexError: there is no such axis.
    """
    if type(a) is not array:
        a = to_array(a)
    stream = None if stream is None else as_stream(stream)
    shape = a._n.shape
    if axis is None:
        size = 1
        for one in shape:
            size *= one
        a, axis, shape = reshaped(a, (size,), stream), 0, (size,)
    else:
        ndim = len(shape)
        if not 0 <= axis < ndim:
            axis = _axis("take", axis, ndim)
    if type(indices) is array:
        dtype = indices._n.dtype
        if dtype is bool_ or dtype is uint16 or dtype.is_inexact:
            indices = usable(indices)
        return gathered(a, [indices], axis, stream)
    if not hasattr(indices, "__index__"):
        raise TypeError(f"[take] indices must be an integer or an array of integers, got {type(indices).__name__}.")
    place = int(indices)
    size = shape[axis]
    if 0 in shape:
        raise ValueError("[take] Cannot do a non-empty take from an array with zero elements.")
    if place < 0:
        place += size
    if not 0 <= place < size:
        raise ValueError(f"[take] Index {indices} is out of bounds for axis {axis} with size {size}.")
    return reshaped(cut(a, axis, place, place + 1, stream), (*shape[:axis], *shape[axis + 1 :]), stream)


def _take_along(node: Node, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    axis: int = node.attrs
    if x.is_cuda:
        from rocmend.kernels.ops.memory.take.function import take_along_axis as kernel

        return kernel(x, indices, axis)
    shape = list(node.shape)
    places = inside(indices, x.shape[axis]).expand(shape)
    shape[axis] = x.shape[axis]
    return x.expand(shape).gather(axis, places)


# attrs: the axis; the other axes broadcast
TAKE_ALONG = Primitive("TakeAlongAxis", _take_along)


def taken_along(x: array, indices: array, axis: int, stream: Any = None) -> array:
    """Record a read of single elements along a valid axis."""
    node, shape = x._n, indices._n.shape
    size = node.shape[axis]
    if node.shape[:axis] == shape[:axis] and node.shape[axis + 1 :] == shape[axis + 1 :]:
        out = shape
    else:
        before, after = len(shape[:axis]), shape[axis + 1 :]
        rest = meet((*node.shape[:axis], *node.shape[axis + 1 :]), (*shape[:axis], *after))
        out = (*rest[:before], shape[axis], *rest[before:])
    if size == 0 and 0 not in out:
        raise ValueError("[take_along_axis] Cannot do a non-empty take from an empty axis.")
    return record(TAKE_ALONG, (node, indices._n), out, node.dtype, axis, None, stream)


@TAKE_ALONG.rule("vjp")
def _along_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    x, indices = primals
    axis = node.attrs
    shape = list(node.shape)
    shape[axis] = x._n.shape[axis]
    zeros = ops.zeros(shape, cotangent._n.dtype)
    whole = ops.put_along(zeros, broadcast(indices, node.shape), cotangent, axis, "add")
    return unbroadcast(whole, x._n.shape), None


@TAKE_ALONG.rule("jvp")
def _along_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    if tangents[0] is None:
        return ops.zeros_like(output)
    return taken_along(tangents[0], primals[1], node.attrs)


@TAKE_ALONG.rule("vmap")
def _along_vmap(node: Any, arrays: Any, axes: Any) -> Any:
    x, indices = batched(arrays, axes)
    return taken_along(x, indices, node.attrs + 1), 0


def integral(indices: array) -> array:
    """Return indices as integers; numbers of other types are cut, as MLX does here."""
    dtype = indices._n.dtype
    if dtype is bool_ or dtype is uint16 or dtype.is_inexact:
        return ops.astype(indices, dtypes.int32)  # type: ignore[no-any-return]
    return indices


def take_along_axis(a: array, /, indices: array, axis: int | None = -1, *, stream: Any = None) -> array:
    """Take single elements along an axis: ``out[i, j] = a[i, indices[i, j]]`` for ``axis=1``.

    Args:
        a: any shape and type.
        indices: integers with as many axes as ``a``; the other axes broadcast.
        axis: which; None: from all elements as one row.
        stream: where.

    Returns:
        The shape in which both meet, with the axis of ``indices``.

    Raises:
        ValueError: shapes that do not fit.
        IndexError: there is no such axis.
    """
    if type(a) is not array:
        a = to_array(a)
    if type(indices) is not array:
        indices = to_array(indices)
    stream = None if stream is None else as_stream(stream)
    if axis is None:
        from math import prod

        return taken_along(
            reshaped(a, (prod(a._n.shape),), stream),
            integral(reshaped(indices, (prod(indices._n.shape),), stream)),
            0,
            stream,
        )
    ndim = len(a._n.shape)
    if not -ndim <= axis < ndim:
        raise out_of_bounds("take_along_axis", axis, ndim)
    if len(indices._n.shape) != ndim:
        raise ValueError(
            f"[take_along_axis] Indices of dimension {len(indices._n.shape)} {shape_text(indices._n.shape)} "
            f"do not match array of dimension {ndim} {shape_text(a._n.shape)}."
        )
    return taken_along(a, integral(indices), axis + ndim if axis < 0 else axis, stream)
