"""Elements in another order: flip, roll, and views at strides."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import AxisError, as_stream, shape_text, to_array
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.ops.scatter import scattered
from rocmend.mlx.ops.shape import out_of_bounds, reshaped
from rocmend.mlx.ops.shape_axes import moveaxis
from rocmend.mlx.ops.slices import cut
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from rocmend.mlx.node import Node

__all__ = ["as_strided", "contiguous", "flip", "roll"]

# attrs: the axes
FLIP = Primitive("Flip", lambda node, x: x.flip(node.attrs))


@FLIP.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    return (flipped(cotangent, node.attrs),)


@FLIP.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return flipped(tangents[0], node.attrs)


@FLIP.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (axis,) = arrays, axes
    if axis is None:
        return flipped(x, node.attrs), None
    return flipped(moveaxis(x, axis, 0), [one + 1 for one in node.attrs]), 0


def flipped(x: array, axes: Sequence[int], stream: Any = None) -> array:
    """Record elements backwards along valid axes; the same node where nothing changes."""
    node = x._n
    axes = tuple([axis for axis in axes if node.shape[axis] > 1])
    if not axes:
        return wrap(node)
    return record(FLIP, (node,), node.shape, node.dtype, axes, None, stream)


def flip(a: array, /, axis: int | Sequence[int] | None = None, *, stream: Any = None) -> array:
    """Return the elements backwards along axes.

    Args:
        a: any shape and type.
        axis: which; None: all. An axis named twice is turned once.
        stream: where.

    Returns:
        The shape and type of ``a``.

    Raises:
        IndexError: there is no such axis.
    """
    a = to_array(a)
    ndim = len(a._n.shape)
    given = range(ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
    for one in given:
        if not -ndim <= one < ndim:
            raise out_of_bounds("flip", one, ndim)
    return flipped(a, sorted({one % ndim for one in given}), None if stream is None else as_stream(stream))


def _rolled(x: array, shift: int, axis: int, stream: Any) -> array:
    size = x._n.shape[axis]
    if not size or not shift % size:
        return x
    middle = size - shift % size
    return ops.concatenate(  # type: ignore[no-any-return]
        [cut(x, axis, middle, size, stream), cut(x, axis, 0, middle, stream)], axis, stream=stream
    )


def roll(
    a: array, /, shift: int | Sequence[int], axis: int | Sequence[int] | None = None, *, stream: Any = None
) -> array:
    """Move elements along axes; what leaves at one end comes in at the other.

    Args:
        a: any shape and type.
        shift: by how many places, upwards; one number for each axis, or one for all (their sum where there is one axis
            or none is named).
        axis: which; None: the elements as one row.
        stream: where.

    Returns:
        The shape and type of ``a``.

    Raises:
        ValueError: fewer shifts than axes.
        IndexError: there is no such axis.
    """
    a = to_array(a)
    shape = a._n.shape
    ndim = len(shape)
    stream = None if stream is None else as_stream(stream)
    if axis is None:
        whole = shift if isinstance(shift, int) else sum(shift)
        return reshaped(_rolled(reshaped(a, (prod(shape),), stream), whole, 0, stream), shape, stream)
    if isinstance(axis, int):
        axes: tuple[int, ...] = (axis,)
        shifts: tuple[int, ...] = (shift if isinstance(shift, int) else sum(shift),)
    else:
        axes = tuple(axis)
        shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    if len(shifts) < len(axes):
        raise ValueError(
            f"[roll] At least one shift value per axis is required, {len(shifts)} provided for {len(axes)} axes."
        )
    for one, by in zip(axes, shifts, strict=False):
        if not -ndim <= one < ndim:
            raise AxisError(f"[roll] Invalid axis {one} for array with {ndim} dimensions.")
        a = _rolled(a, by, one % ndim, stream)
    return wrap(a._n)


CONTIGUOUS = Primitive(
    "Contiguous",
    lambda node, x: x.contiguous(),
    vjp=lambda node, primals, output, cotangent: (cotangent,),
    jvp=lambda node, primals, tangents, output: tangents[0],
    vmap=lambda node, arrays, axes: (contiguous(arrays[0]), axes[0]),
)


def contiguous(a: array, /, allow_col_major: bool = False, *, stream: Any = None) -> array:
    """Return the array with its elements in row-major order in memory.

    Args:
        a: any shape and type.
        allow_col_major: column-major order would do too. Row-major order is always what is made.
        stream: where.

    Returns:
        The shape and type of ``a``.
    """
    node = to_array(a)._n
    return record(
        CONTIGUOUS, (node,), node.shape, node.dtype, None, None, None if stream is None else as_stream(stream)
    )


def _places(shape: Sequence[int], strides: Sequence[int], offset: int, device: Any) -> torch.Tensor:
    """Return where in a row each element of a strided view stands."""
    import torch

    places = torch.full((), offset, dtype=torch.int64, device=device)
    for size, stride in zip(shape, strides, strict=True):
        places = places.unsqueeze(-1) + torch.arange(size, dtype=torch.int64, device=device) * stride
    return places


def _as_strided(node: Node, x: torch.Tensor) -> torch.Tensor:
    strides, offset = node.attrs
    row = x.contiguous().reshape(-1)
    if not strides or min(strides) >= 0:
        return row.as_strided(node.shape, strides, row.storage_offset() + offset)
    return row[_places(node.shape, strides, offset, row.device)]


# attrs: strides and offset, in elements of the row-major order
AS_STRIDED = Primitive("AsStrided", _as_strided)


def _as_strided_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    shape = primals[0]._n.shape
    size = prod(shape)
    places = as_strided(ops.arange(size), node.shape, *node.attrs)
    zeros = ops.zeros((size,), cotangent._n.dtype)
    return (reshaped(scattered(zeros, [places], cotangent, 0, "add"), shape),)


def _as_strided_vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (axis,) = arrays, axes
    strides, offset = node.attrs
    if axis is None:
        return as_strided(x, node.shape, strides, offset), None
    x = moveaxis(x, axis, 0)
    size, *rest = x._n.shape
    return as_strided(x, (size, *node.shape), (prod(rest), *strides), offset), 0


AS_STRIDED.vjp = _as_strided_vjp
AS_STRIDED.jvp = lambda node, primals, tangents, output: as_strided(tangents[0], node.shape, *node.attrs)
AS_STRIDED.vmap = _as_strided_vmap


def as_strided(
    a: array,
    /,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    *,
    stream: Any = None,
) -> array:
    """Read the row-major order of an array at other strides: ``out[i, j] = row[offset + i * s0 + j * s1]``.

    Args:
        a: any shape and type.
        shape: of the result; None: as ``a``.
        strides: in elements, for each axis; None: those of row-major order.
        offset: the first element.
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: not one stride for each axis, or an element that ``a`` does not have.
    """
    a = to_array(a)
    old = a._n.shape
    sizes = old if shape is None else tuple(shape)
    steps = tuple(strides) if strides is not None else tuple([prod(sizes[i + 1 :]) for i in range(len(sizes))])
    if len(steps) != len(sizes):
        raise ValueError(f"[as_strided] expected a stride for each axis of {shape_text(sizes)}, got {len(steps)}.")
    if prod(sizes):
        reach = [(size - 1) * step for size, step in zip(sizes, steps, strict=True)]
        low, high = offset + sum(min(0, one) for one in reach), offset + sum(max(0, one) for one in reach)
        if low < 0 or high >= prod(old):
            raise ValueError(
                f"[as_strided] Shape {shape_text(sizes)}, strides {shape_text(steps)} and offset {offset} reach from "
                f"{low} to {high} in an array of {prod(old)} elements."
            )
    stream = None if stream is None else as_stream(stream)
    return record(AS_STRIDED, (a._n,), sizes, a._n.dtype, (steps, offset), None, stream)
