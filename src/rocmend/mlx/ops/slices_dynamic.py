"""Slices that begin where an array says: the sizes are known, the places need not be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import AxisError, as_stream, shape_text, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.ops.shape import reshaped
from rocmend.mlx.ops.shape_axes import moveaxis
from rocmend.mlx.ops.shape_broadcast import broadcast
from rocmend.mlx.ops.slices import batched
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from rocmend.mlx.node import Node

__all__ = ["slice", "slice_update"]

_part = slice


def _starts(starts: torch.Tensor, x: torch.Tensor, axes: tuple[int, ...], sizes: Sequence[int]) -> list[torch.Tensor]:
    """Return where each axis begins: negative places count from the end, and the slice is kept inside."""
    import torch

    found = []
    for number, axis in enumerate(axes):
        size = x.shape[axis]
        start = starts[number].to(torch.int64)
        start = torch.where(start < 0, start + size, start)
        found.append(start.clamp(0, size - sizes[axis]))
    return found


def _slice(node: Node, x: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    import torch

    axes: tuple[int, ...] = node.attrs
    for axis, start in zip(axes, _starts(starts, x, axes, node.shape), strict=True):
        size = node.shape[axis]
        if x.is_cuda:
            # the host does not ask for the place
            x = x.index_select(axis, start + torch.arange(size, device=x.device))
        else:
            x = x.narrow(axis, int(start), size)
    return x if x.shape == node.shape else x[tuple([_part(size) for size in node.shape])]


# inputs: x and the starts, one for each axis of attrs; the sizes stand in the shape
DYNAMIC_SLICE = Primitive("DynamicSlice", _slice)


def _update(node: Node, x: torch.Tensor, update: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    import torch

    axes: tuple[int, ...] = node.attrs
    out = x.clone(memory_format=torch.contiguous_format)
    begin = _starts(starts, x, axes, update.shape)
    if not x.is_cuda:
        part = out
        for axis, start in zip(axes, begin, strict=True):
            part = part.narrow(axis, int(start), update.shape[axis])
        part[tuple([_part(size) for size in update.shape])] = update
        return out
    places = torch.zeros((), dtype=torch.int64, device=x.device)
    for axis, size in enumerate(update.shape):
        along = torch.arange(size, device=x.device)
        if axis in axes:
            along = along + begin[axes.index(axis)]
        places = places.unsqueeze(-1) + along * out.stride(axis)
    return out.view(-1).scatter(0, places.reshape(-1), update.reshape(-1)).view(x.shape)


# inputs: x, the update and the starts, one for each axis of attrs
DYNAMIC_SLICE_UPDATE = Primitive("DynamicSliceUpdate", _update)


def _read(x: array, starts: array, axes: tuple[int, ...], sizes: tuple[int, ...], stream: Any = None) -> array:
    return record(DYNAMIC_SLICE, (x._n, starts._n), sizes, x._n.dtype, axes, None, stream)


def _written(x: array, update: array, starts: array, axes: tuple[int, ...], stream: Any = None) -> array:
    nodes = (x._n, update._n, starts._n)
    return record(DYNAMIC_SLICE_UPDATE, nodes, x._n.shape, x._n.dtype, axes, None, stream)


@DYNAMIC_SLICE.rule("vjp")
def _slice_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    x, starts = primals
    zeros = ops.zeros(x._n.shape, cotangent._n.dtype)
    return _written(zeros, cotangent, starts, node.attrs), None


@DYNAMIC_SLICE.rule("jvp")
def _slice_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    if tangents[0] is None:
        return ops.zeros_like(output)
    return _read(tangents[0], primals[1], node.attrs, node.shape)


@DYNAMIC_SLICE.rule("vmap")
def _slice_vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x, starts), (x_axis, start_axis) = arrays, axes
    if start_axis is None:
        x = moveaxis(x, x_axis, 0)
        return _read(x, starts, tuple([axis + 1 for axis in node.attrs]), (x._n.shape[0], *node.shape)), 0
    x, starts = batched(arrays, axes)
    # one read along each axis, at places that differ from item to item
    for number, axis in enumerate(node.attrs):
        x = ops.take_along_axis(x, _along(node, x, starts, number, axis), axis + 1)
    return _front(x, node.shape), 0


def _along(node: Any, x: array, starts: array, number: int, axis: int) -> array:
    """Return the places that each item of a batch reads along an axis."""
    shape = x._n.shape
    size = node.shape[axis]
    start = ops.astype(starts[:, number], ops.int32)
    start = ops.where(ops.less(start, 0), ops.add(start, shape[axis + 1]), start)
    start = ops.clip(start, 0, shape[axis + 1] - size)
    places = ops.add(reshaped(start, (shape[0], 1)), ops.arange(size))
    return reshaped(places, (shape[0], *[size if one == axis else 1 for one in range(len(shape) - 1)]))


def _front(x: array, sizes: tuple[int, ...]) -> array:
    return x[(_part(None), *[_part(size) for size in sizes])]


@DYNAMIC_SLICE_UPDATE.rule("vjp")
def _update_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    _, update, starts = primals
    nothing = broadcast(ops.zeros((), cotangent._n.dtype), update._n.shape)
    return (
        _written(cotangent, nothing, starts, node.attrs),
        _read(cotangent, starts, node.attrs, update._n.shape),
        None,
    )


@DYNAMIC_SLICE_UPDATE.rule("jvp")
def _update_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    x, update, starts = primals
    dx, du = [ops.zeros_like(p) if t is None else t for p, t in ((x, tangents[0]), (update, tangents[1]))]
    return _written(dx, du, starts, node.attrs)


@DYNAMIC_SLICE_UPDATE.rule("vmap")
def _update_vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x, update, starts), (x_axis, update_axis, start_axis) = arrays, axes
    if start_axis is None:
        x, update = batched((x, update), (x_axis, update_axis))
        return _written(x, update, starts, tuple([axis + 1 for axis in node.attrs])), 0
    x, update, starts = batched(arrays, axes)
    # item after item
    done = [_written(x[i], update[i], starts[i], node.attrs) for i in range(x._n.shape[0])]
    return ops.stack(done), 0


def _checked(op: str, a: array, starts: array, axes: Sequence[int]) -> tuple[array, tuple[int, ...]]:
    """Return starts in a row, and axes counted from the front.

    Raises:
        ValueError: starts of another type or number, or an axis twice.
        IndexError: there is no such axis.
    """
    ndim = len(a._n.shape)
    rank = len(starts._n.shape)
    if rank > 1:
        raise ValueError(f"[{op}] array of starting indices must be zero or one dimensional but has dimension {rank}.")
    if starts._n.dtype.is_inexact:
        raise ValueError(f"[{op}] Start indices must be integers, got type {starts._n.dtype.name}.")
    count = starts._n.shape[0] if starts._n.shape else 1
    axes = tuple(axes)
    if count != len(axes):
        raise ValueError(f"[{op}] Number of starting indices {count} does not match number of axes {len(axes)}.")
    for axis in axes:
        if not -ndim <= axis < ndim:
            raise AxisError(f"[{op}] Invalid axis {axis} for array with dimension {ndim}.")
    found = tuple([axis % ndim for axis in axes])
    if len(set(found)) != len(found):
        raise ValueError(f"[{op}] Repeat axes not allowed.")
    return reshaped(starts, (count,)), found


def slice(
    a: array, start_indices: array, axes: Sequence[int], slice_size: Sequence[int], *, stream: Any = None
) -> array:
    """Read a part whose size is known and whose place an array tells.

    Args:
        a: any shape and type.
        start_indices: integers, one for each of ``axes``; negative ones count from the end. A part that would reach
            beyond an axis is moved inside.
        axes: which axes they are for; the part begins at 0 along the others.
        slice_size: sizes along all axes.
        stream: where.

    Returns:
        ``slice_size`` elements, of the type of ``a``.

    Raises:
        ValueError: sizes, starts or axes that do not fit.
        IndexError: there is no such axis.
    """
    a, starts = to_array(a), to_array(start_indices)
    shape = a._n.shape
    starts, found = _checked("slice", a, starts, axes)
    sizes = tuple(slice_size)
    if len(sizes) != len(shape):
        raise ValueError(f"[slice] Invalid slice size for array with {len(shape)} dimensions.")
    if any(not 0 <= size <= whole for size, whole in zip(sizes, shape, strict=True)):
        raise ValueError(f"[slice] Invalid slice size {shape_text(sizes)} for array with shape {shape_text(shape)}.")
    return _read(a, starts, found, sizes, None if stream is None else as_stream(stream))


def slice_update(a: array, update: array, start_indices: array, axes: Sequence[int], *, stream: Any = None) -> array:
    """Return ``a`` with a part written whose place an array tells.

    Args:
        a: any shape and type.
        update: what is written; converted to the type of ``a``. Axes that it lacks in front are those of ``a``, or of
            size 1 where they are named in ``axes``.
        start_indices: integers, one for each of ``axes``; see ``slice``.
        axes: which axes they are for; the part begins at 0 along the others.
        stream: where.

    Returns:
        The shape and type of ``a``.

    Raises:
        ValueError: sizes, starts or axes that do not fit.
        IndexError: there is no such axis.
    """
    a, update, starts = to_array(a), to_array(update), to_array(start_indices)
    shape = a._n.shape
    starts, found = _checked("slice_update", a, starts, axes)
    given = update._n.shape
    missing = len(shape) - len(given)
    if missing < 0:
        if any(size != 1 for size in given[:-missing]):
            raise ValueError(f"[slice_update] Cannot write shape {shape_text(given)} into shape {shape_text(shape)}.")
        given = given[-missing:]
        update = reshaped(update, given)
        missing = 0
    sizes = [*shape[:missing], *[min(size, whole) for size, whole in zip(given, shape[missing:], strict=True)]]
    for axis in found:
        if axis < missing:
            sizes[axis] = 1
    update = ops.broadcast_to(ops.astype(update, a._n.dtype, stream=stream), sizes, stream=stream)
    if 0 in sizes:
        return wrap(a._n)
    return _written(a, update, starts, found, None if stream is None else as_stream(stream))
