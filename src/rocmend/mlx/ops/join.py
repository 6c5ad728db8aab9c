"""Arrays put together and taken apart."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.dtypes import promote
from rocmend.mlx.ops.shape import LARGEST_SIZE, expand_dims, out_of_bounds, reshaped, too_large
from rocmend.mlx.ops.shape_broadcast import broadcast
from rocmend.mlx.ops.slices import batched, cut
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from rocmend.mlx.node import Node

__all__ = ["concat", "concatenate", "repeat", "split", "stack", "tile", "unstack"]


def _concatenate(node: Node, *tensors: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.cat(tensors, node.attrs)


# attrs: the axis
CONCATENATE = Primitive("Concatenate", _concatenate)


@CONCATENATE.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    parts, begin = [], 0
    for x in primals:
        end = begin + x._n.shape[node.attrs]
        parts.append(cut(cotangent, node.attrs, begin, end))
        begin = end
    return parts


@CONCATENATE.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    filled = [ops.zeros_like(x) if t is None else t for x, t in zip(primals, tangents, strict=True)]
    return concatenate(filled, node.attrs)


@CONCATENATE.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    return concatenate(batched(arrays, axes), node.attrs + 1), 0


def concatenate(arrays: Sequence[array], axis: int | None = 0, *, stream: Any = None) -> array:
    """Put arrays behind each other along an axis they have.

    Args:
        arrays: of one shape but for that axis; types are promoted.
        axis: which; None: each array is made one row first.
        stream: where.

    Returns:
        One array.

    Raises:
        ValueError: there are no arrays, or their shapes do not fit.
        IndexError: there is no such axis.
    """
    nodes = [x._n if type(x) is array else to_array(x)._n for x in arrays]
    if not nodes:
        raise ValueError("[concatenate] No arrays provided for concatenation")
    stream = None if stream is None else as_stream(stream)
    if axis is None:
        nodes = [reshaped(wrap(node), (prod(node.shape),), stream)._n for node in nodes]
        axis = 0
    first = nodes[0]
    if len(nodes) == 1:
        return wrap(first)
    shape = first.shape
    ndim = len(shape)
    dtype = first.dtype
    if not -ndim <= axis < ndim:
        raise out_of_bounds("concatenate", axis, ndim)
    if axis < 0:
        axis += ndim
    total = 0
    mixed = False
    for node in nodes:
        other = node.shape
        if other != shape and (
            len(other) != ndim or other[:axis] != shape[:axis] or other[axis + 1 :] != shape[axis + 1 :]
        ):
            raise _unlike(shape, other, axis)
        total += other[axis]
        if node.dtype is not dtype:
            dtype = promote(dtype, node.dtype)
            mixed = True
    if total > LARGEST_SIZE:
        raise too_large("concatenate", total)
    if mixed:
        nodes = [node if node.dtype is dtype else ops.astype(wrap(node), dtype, stream=stream)._n for node in nodes]
    return record(CONCATENATE, tuple(nodes), (*shape[:axis], total, *shape[axis + 1 :]), dtype, axis, None, stream)


def _unlike(shape: tuple[int, ...], other: tuple[int, ...], axis: int) -> ValueError:
    if len(shape) != len(other):
        return ValueError(
            "[concatenate] All the input arrays must have the same number of dimensions, "
            f"got {len(shape)} and {len(other)}."
        )
    return ValueError(
        "[concatenate] All the input array dimensions must match exactly except for the concatenation axis, got "
        f"{shape_text(shape)} and {shape_text(other)} with axis {axis}."
    )


concat = concatenate


def stack(arrays: Sequence[array], axis: int | None = 0, *, stream: Any = None) -> array:
    """Put arrays of one shape beside each other along a new axis.

    Args:
        arrays: all of one shape; types are promoted.
        axis: the new axis's place in the result; None: the first.
        stream: where.

    Returns:
        An array with one axis more.

    Raises:
        ValueError: there are no arrays, or their shapes differ.
        IndexError: the place lies outside of the result.
    """
    given = [to_array(x) for x in arrays]
    if not given:
        raise ValueError("[stack] No arrays provided for stacking")
    shape = given[0]._n.shape
    for x in given:
        if x._n.shape != shape:
            raise ValueError(
                f"[stack] All arrays must have the same shape, got {shape_text(shape)} and {shape_text(x._n.shape)}."
            )
    axis = 0 if axis is None else axis
    return concatenate([expand_dims(x, axis, stream=stream) for x in given], axis, stream=stream)


def _axis(op: str, axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise out_of_bounds(op, axis, ndim)
    return axis + ndim if axis < 0 else axis


def split(a: array, /, indices_or_sections: int | Sequence[int], axis: int = 0, *, stream: Any = None) -> list[array]:
    """Cut an array along an axis.

    Args:
        a: any shape and type.
        indices_or_sections: how many parts of one size; or where the second and later parts begin (negative places
            count from the end).
        axis: which axis.
        stream: where.

    Returns:
        A list of arrays, without copying.

    Raises:
        ValueError: the size is no multiple of the number of parts, or that is not positive.
        IndexError: there is no such axis.
    """
    if type(a) is not array:
        a = to_array(a)
    shape = a._n.shape
    axis = _axis("split", axis, len(shape))
    size = shape[axis]
    stream = None if stream is None else as_stream(stream)
    if isinstance(indices_or_sections, int):
        if indices_or_sections <= 0:
            raise ValueError(f"[split] num_splits must be positive and non-zero but got {indices_or_sections}.")
        if size % indices_or_sections:
            raise ValueError(
                "[split] Array split does not result in sub arrays with equal size: attempting "
                f"{indices_or_sections} splits along axis {axis} for shape {shape_text(shape)}."
            )
        step = size // indices_or_sections
        return [cut(a, axis, i * step, i * step + step, stream) for i in range(indices_or_sections)]
    places = [0, *indices_or_sections, size]
    # a place is brought inside; a part that would end before it begins is empty
    places = [min(max(one + size if one < 0 else one, 0), size) for one in places]
    return [cut(a, axis, begin, max(begin, end), stream) for begin, end in pairwise(places)]


def unstack(x: array, /, *, axis: int = 0, stream: Any = None) -> tuple[array, ...]:
    """Cut an array into its parts along an axis, which is left out.

    Args:
        x: any shape and type.
        axis: which axis.
        stream: where.

    Returns:
        As many arrays as the axis is long, without copying.

    Raises:
        IndexError: there is no such axis.
    """
    x = to_array(x)
    shape = x._n.shape
    axis = _axis("unstack", axis, len(shape))
    rest = (*shape[:axis], *shape[axis + 1 :])
    stream = None if stream is None else as_stream(stream)
    return tuple([reshaped(cut(x, axis, i, i + 1, stream), rest, stream) for i in range(shape[axis])])


def tile(a: array, reps: int | Sequence[int], /, *, stream: Any = None) -> array:
    """Repeat a whole array along each axis.

    Args:
        a: any shape and type.
        reps: how often along each axis; missing ones, on either side, are 1.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: a negative number.
    """
    a = to_array(a)
    times = (reps,) if isinstance(reps, int) else tuple(reps)
    if times and min(times) < 0:
        raise ValueError(f"[tile] The numbers of repetitions must not be negative, got {shape_text(times)}.")
    shape = a._n.shape
    ndim = max(len(shape), len(times))
    shape = (1,) * (ndim - len(shape)) + shape
    times = (1,) * (ndim - len(times)) + times
    stream = None if stream is None else as_stream(stream)
    narrow = [one for size in shape for one in (1, size)]
    wide = [one for pair in zip(times, shape, strict=True) for one in pair]
    whole = tuple([one * size for one, size in zip(times, shape, strict=True)])
    return reshaped(broadcast(reshaped(a, tuple(narrow), stream), tuple(wide), stream), whole, stream)


def repeat(array: array, repeats: int, axis: int | None = None, *, stream: Any = None) -> array:
    """Repeat each element along an axis.

    Args:
        array: any shape and type.
        repeats: how often.
        axis: which axis; None: the elements as one row.
        stream: where.

    Returns:
        The type of the array.

    Raises:
        ValueError: a negative number.
        IndexError: there is no such axis.
    """
    x = to_array(array)
    stream = None if stream is None else as_stream(stream)
    if axis is None:
        x, axis = reshaped(x, (prod(x._n.shape),), stream), 0
    shape = x._n.shape
    axis = _axis("repeat", axis, len(shape))
    if repeats < 0:
        raise ValueError(f"[repeat] Number of repeats cannot be negative, got {repeats}.")
    front, back = shape[: axis + 1], shape[axis + 1 :]
    if front[-1] * repeats > LARGEST_SIZE:
        raise too_large("repeat", front[-1] * repeats)
    wide = broadcast(reshaped(x, (*front, 1, *back), stream), (*front, repeats, *back), stream)
    return reshaped(wide, (*front[:-1], front[-1] * repeats, *back), stream)
