"""Diagonals: read, written, summed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import AxisError, as_stream, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.ops.scatter import scattered
from rocmend.mlx.ops.shape_axes import moveaxis
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype

__all__ = ["diag", "diagonal", "trace"]

# attrs: the offset and the two axes
DIAGONAL = Primitive("Diagonal", lambda node, x: x.diagonal(*node.attrs), view=True)


def _read(x: array, offset: int, axis1: int, axis2: int, stream: Any = None) -> array:
    node = x._n
    shape = node.shape
    rows, columns = shape[axis1], shape[axis2]
    size = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    rest = [one for axis, one in enumerate(shape) if axis not in (axis1, axis2)]
    return record(DIAGONAL, (node,), (*rest, size), node.dtype, (offset, axis1, axis2), None, stream)


def _first(node: Any, ndim: int) -> tuple[int, ...]:
    """Return the transposition that brings the diagonal's two axes behind the others."""
    _, axis1, axis2 = node.attrs
    return (*[axis for axis in range(ndim) if axis not in (axis1, axis2)], axis1, axis2)


@DIAGONAL.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    shape = primals[0]._n.shape
    order = _first(node, len(shape))
    offset, size = node.attrs[0], node.shape[-1]
    zeros = ops.zeros([shape[axis] for axis in order], cotangent._n.dtype)
    along = ops.arange(size)
    places = [ops.add(along, max(-offset, 0)), ops.add(along, max(offset, 0))]
    whole = scattered(zeros, places, cotangent, len(shape) - 2, "assign")
    back = [0] * len(order)
    for place, axis in enumerate(order):
        back[axis] = place
    return (ops.transpose(whole, back),)


@DIAGONAL.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return _read(tangents[0], *node.attrs)


@DIAGONAL.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (axis,) = arrays, axes
    offset, axis1, axis2 = node.attrs
    if axis is None:
        return _read(x, offset, axis1, axis2), None
    return _read(moveaxis(x, axis, 0), offset, axis1 + 1, axis2 + 1), 0


def diagonal(a: array, offset: int = 0, axis1: int = 0, axis2: int = 1, stream: Any = None) -> array:
    """Return the diagonals of the matrices that two axes make, without copying.

    Args:
        a: at least two axes, any type.
        offset: how far above the main diagonal (below, if negative).
        axis1: the rows.
        axis2: the columns.
        stream: where.

    Returns:
        The other axes, and the diagonal last.

    Raises:
        ValueError: fewer than two axes, or one twice.
        IndexError: there is no such axis.
    """
    a = to_array(a)
    ndim = len(a._n.shape)
    if ndim < 2:
        raise ValueError(f"[diagonal] Array must have at least two dimensions, but got {ndim} dimensions.")
    for name, axis in (("axis1", axis1), ("axis2", axis2)):
        if not -ndim <= axis < ndim:
            raise AxisError(f"[diagonal] Invalid {name} {axis} for array with {ndim} dimensions.")
    axis1, axis2 = axis1 % ndim, axis2 % ndim
    if axis1 == axis2:
        raise ValueError("[diagonal] axis1 and axis2 cannot be the same axis.")
    return _read(a, offset, axis1, axis2, None if stream is None else as_stream(stream))


def diag(a: array, /, k: int = 0, *, stream: Any = None) -> array:
    """Return the diagonal of a matrix, or the matrix of a diagonal.

    Args:
        a: one axis or two, any type.
        k: how far above the main diagonal (below, if negative).
        stream: where.

    Returns:
        The type of ``a``.

    Raises:
        ValueError: another number of axes.
    """
    a = to_array(a)
    ndim = len(a._n.shape)
    if ndim == 2:
        return diagonal(a, k, 0, 1, stream)
    if ndim != 1:
        raise ValueError(f"[diag] array must be 1-D or 2-D, got array with {ndim} dimensions.")
    (size,) = a._n.shape
    whole = size + abs(k)
    along = ops.arange(size, stream=stream)
    places = [
        ops.add(along, max(-k, 0), stream=stream),
        ops.add(along, max(k, 0), stream=stream),
    ]
    zeros = ops.zeros((whole, whole), a._n.dtype, stream=stream)
    return scattered(zeros, places, a, 0, "assign", None if stream is None else as_stream(stream))


def trace(
    a: array,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Dtype | None = None,
    *,
    stream: Any = None,
) -> array:
    """Sum the diagonals of the matrices that two axes make.

    Args:
        a: at least two axes, any type.
        offset: how far above the main diagonal (below, if negative).
        axis1: the rows.
        axis2: the columns.
        dtype: of the result; None: as a sum has it.
        stream: where.

    Returns:
        The other axes.

    Raises:
        ValueError: fewer than two axes, or one twice.
        IndexError: there is no such axis.
    """
    a = to_array(a)
    if len(a._n.shape) < 2:
        raise ValueError(f"[trace] Array must have at least two dimensions, but got {len(a._n.shape)} dimensions.")
    summed = ops.sum(diagonal(a, offset, axis1, axis2, stream), -1, stream=stream)
    return summed if dtype is None else ops.astype(summed, dtype, stream=stream)  # type: ignore[no-any-return]
