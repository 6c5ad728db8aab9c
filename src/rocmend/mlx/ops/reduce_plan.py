"""Axes that are reduced, and the shapes that are left."""

from __future__ import annotations

from collections.abc import Sequence

from rocmend.mlx.arguments import AxisError

__all__: list[str] = []

Axis = int | Sequence[int] | None
_Found = tuple[tuple[int, ...], tuple[int, ...]]

_plans: dict[tuple[tuple[int, ...], int | tuple[int, ...] | None, bool], _Found] = {}


def plan(shape: tuple[int, ...], axis: Axis, keepdims: bool) -> _Found:
    """Return the axes, sorted, and the shape of the result; remembered.

    Raises:
        IndexError: there is no such axis.
        ValueError: an axis is named twice.
    """
    if type(axis) is list:
        axis = tuple(axis)
    key = (shape, axis, keepdims)
    found = _plans.get(key)  # type: ignore[arg-type]
    if found is None:
        found = _made(shape, axis, keepdims)
        if len(_plans) > 4096:
            _plans.clear()
        _plans[key] = found  # type: ignore[index]
    return found


def axis_of(axis: int, ndim: int) -> int:
    """Return an axis counted from the front.

    Raises:
        IndexError: there is no such axis.
    """
    if not -ndim <= axis < ndim:
        raise AxisError(f"[reduce] Invalid axis {axis} for array with {ndim} dimensions.")
    return axis + ndim if axis < 0 else axis


def _made(shape: tuple[int, ...], axis: Axis, keepdims: bool) -> _Found:
    ndim = len(shape)
    if axis is None:
        axes = tuple(range(ndim))
    else:
        axes = tuple(sorted([axis_of(one, ndim) for one in ((axis,) if isinstance(axis, int) else axis)]))
        if len(set(axes)) != len(axes):
            raise ValueError(f"[reduce] Duplicate axes detected in reduction: {axis}.")
    if keepdims:
        return axes, restored(shape, axes)
    return axes, tuple([size for one, size in enumerate(shape) if one not in axes])


def restored(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return a shape with the reduced axes of size 1."""
    return tuple([1 if one in axes else size for one, size in enumerate(shape)])
