"""Norms and cross products."""

from __future__ import annotations

import math
from typing import Any

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import AxisError, axis_of, broadcast_shapes, shape_text, to_array
from rocmend.mlx.array import array
from rocmend.mlx.linalg.factor import svd
from rocmend.mlx.registry import ops

__all__ = ["cross", "norm"]

Axis = int | list[int] | tuple[int, ...] | None


def _euclidean(a: array, axes: list[int], keepdims: bool, stream: Any) -> array:
    if a.dtype.is_complex:
        a = ops.abs(a, stream=stream)
    total = ops.sum(ops.square(a, stream=stream), axes, keepdims, stream=stream)
    return ops.sqrt(total, stream=stream)  # type: ignore[no-any-return]


def _of_vectors(a: array, ord: float, axes: list[int], keepdims: bool, stream: Any) -> array:
    made = a.dtype
    if ord == 2.0:
        return _euclidean(a, axes, keepdims, stream)
    if ord == 0.0:
        nonzero = ops.astype(ops.not_equal(a, 0, stream=stream), made, stream=stream)
        return ops.sum(nonzero, axes, keepdims, stream=stream)  # type: ignore[no-any-return]
    size = ops.abs(a, stream=stream)
    if ord == 1.0:
        found = ops.sum(size, axes, keepdims, stream=stream)
    elif ord == math.inf:
        found = ops.max(size, axes, keepdims, stream=stream)
    elif ord == -math.inf:
        found = ops.min(size, axes, keepdims, stream=stream)
    else:
        powers = ops.sum(ops.power(size, ord, stream=stream), axes, keepdims, stream=stream)
        found = ops.power(powers, 1.0 / ord, stream=stream)
    return ops.astype(found, made, stream=stream)  # type: ignore[no-any-return]


def _of_matrices(a: array, ord: float | str, axes: list[int], keepdims: bool, stream: Any) -> array:
    rows, columns = axes
    if ord in ("fro", "f"):
        return _euclidean(a, axes, keepdims, stream)
    if ord in ("nuc", 2.0, -2.0):
        last = ops.moveaxis(ops.moveaxis(a, rows, -1, stream=stream), columns - (rows < columns), -1, stream=stream)
        values = svd(last, compute_uv=False, stream=stream)
        reduce = ops.sum if ord == "nuc" else ops.max if ord == 2.0 else ops.min
        found = reduce(values, -1, stream=stream)
        if ord != "nuc":
            found = ops.astype(found, a.dtype, stream=stream)
        return ops.expand_dims(found, sorted(axes), stream=stream) if keepdims else found  # type: ignore[no-any-return]
    if isinstance(ord, str):
        raise ValueError(f"[linalg::norm] Invalid ord value {ord!r} for matrix norm.")  # noqa: TRY004  as MLX
    if ord not in (1.0, -1.0, math.inf, -math.inf):
        raise ValueError(f"[linalg::norm] Invalid ord {ord:g} for matrix norm.")
    along, over = (rows, columns) if abs(ord) == 1.0 else (columns, rows)
    sums = ops.sum(ops.abs(a, stream=stream), along, True, stream=stream)
    found = (ops.max if ord > 0 else ops.min)(sums, over, True, stream=stream)
    found = ops.astype(found, a.dtype, stream=stream)
    return found if keepdims else ops.squeeze(found, sorted(axes), stream=stream)  # type: ignore[no-any-return]


def norm(
    a: array, /, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False, *, stream: Any = None
) -> array:
    """Return norms of vectors or matrices.

    Args:
        a: any shape; integers become float32.
        ord: of vectors: a number p, ``(Σ |x|^p)^(1/p)``, with 0 the number of elements that are not 0 and ±inf the
            largest or smallest magnitude; of matrices: ``"fro"``, ``"nuc"``, ±1 (sums of columns), ±inf (of rows),
            ±2 (singular values); None: the root of the sum of squares.
        axis: one axis for vectors, two for matrices; None: all of them, one or two unless ``ord`` is None.
        keepdims: keep the axes with size 1.
        stream: where it is computed.

    Returns:
        The shape of a without the axes.

    Raises:
        ValueError: too many axes, or a norm that there is not.
    """
    a = to_array(a)
    if not a.dtype.is_inexact:
        a = ops.astype(a, dtypes.float32, stream=stream)
    if axis is None:
        axes = list(range(len(a.shape)))
    else:
        given = [axis] if isinstance(axis, int) else list(axis)
        axes = [axis_of("linalg::norm", one, len(a.shape)) for one in given]
    if ord is None:
        if axis is not None and len(axes) > 2:
            raise ValueError(f"[linalg::norm] Received too many axes for norm: {axes}.")
        return _euclidean(a, axes, keepdims, stream)
    if isinstance(ord, str):
        if len(axes) != 2:
            raise ValueError(
                f"[linalg::norm] Norm '{ord}' only supported for matrices, but received {len(axes)} axis/axes."
            )
        return _of_matrices(a, ord, axes, keepdims, stream)
    if len(axes) == 1:
        return _of_vectors(a, float(ord), axes, keepdims, stream)
    if len(axes) == 2:
        return _of_matrices(a, float(ord), axes, keepdims, stream)
    raise ValueError(f"[linalg::norm] Received too many axes for norm: {axes}.")


def cross(a: array, b: array, axis: int = -1, *, stream: Any = None) -> array:
    """Return cross products along an axis; where it has 2 elements the third is taken for 0.

    Args:
        a: any shape, 2 or 3 along the axis.
        b: likewise; both are broadcast.
        axis: along which vectors stand.
        stream: where it is computed.

    Returns:
        The broadcast shape, 3 along the axis.

    Raises:
        ValueError: the axis has another size, or shapes that do not fit.
        IndexError: there is no such axis.
    """
    a, b = to_array(a), to_array(b)
    ndim = max(len(a.shape), len(b.shape))
    if not -ndim <= axis < ndim:
        raise AxisError(f"[linalg::cross] Axis {axis} is out of bounds for array with {ndim} dimensions.")
    axis -= ndim if axis >= 0 else 0
    sides = []
    for one in (a, b):
        size = one.shape[axis] if -axis <= len(one.shape) else 0
        if size not in (2, 3):
            raise ValueError(
                f"[linalg::cross] The specified axis must have size 2 or 3, got shape {shape_text(one.shape)}."
            )
        parts = ops.split(one, size, axis, stream=stream)
        sides.append([*parts, ops.zeros_like(parts[0], stream=stream)][:3])
    broadcast_shapes(sides[0][0].shape, sides[1][0].shape)
    (a1, a2, a3), (b1, b2, b3) = sides

    def minor(w: array, x: array, y: array, z: array) -> array:
        left, right = ops.multiply(w, x, stream=stream), ops.multiply(y, z, stream=stream)
        return ops.subtract(left, right, stream=stream)  # type: ignore[no-any-return]

    parts = [minor(a2, b3, a3, b2), minor(a3, b1, a1, b3), minor(a1, b2, a2, b1)]
    return ops.concatenate(parts, axis, stream=stream)  # type: ignore[no-any-return]
