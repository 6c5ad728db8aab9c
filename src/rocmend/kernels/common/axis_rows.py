"""Several axes of a tensor as the rows that ops over the last axis take, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from rocmend.core.errors import UsageError


def normal_axes(op: str, axis: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """Return non-negative axes in rising order; all of them for None.

    Raises:
        UsageError: There is no such axis, or an axis is given twice.
    """
    if axis is None:
        return tuple(range(rank))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    found = []
    for each in given:
        if not -rank <= each < rank:
            raise UsageError(op, f"expected axes of {rank}, got {each}.")
        found.append(each % rank)
    if len(set(found)) != len(found):
        raise UsageError(op, f"expected each axis once, got {given}.")
    return tuple(sorted(found))


def to_rows(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    """Return ``[rows, n]`` with adjacent elements in a row, ``n`` running over the axes; a copy where it must be."""
    rank = x.dim()
    if axes != tuple(range(rank - len(axes), rank)):
        x = x.movedim(axes, tuple(range(-len(axes), 0)))
    n = math.prod(x.shape[rank - len(axes) :])
    rows = x.reshape(-1, n)
    return rows if rows.stride(1) == 1 or n == 1 else rows.contiguous()


def from_rows(rows: torch.Tensor, shape: torch.Size, axes: tuple[int, ...]) -> torch.Tensor:
    """Return rows in the places they came from: a view of ``shape``."""
    rank = len(shape)
    others = [axis for axis in range(rank) if axis not in axes]
    moved = rows.reshape([shape[axis] for axis in (*others, *axes)])
    if axes == tuple(range(rank - len(axes), rank)):
        return moved
    return moved.movedim(tuple(range(-len(axes), 0)), axes)


def reduced_shape(shape: torch.Size, axes: tuple[int, ...], *, keepdims: bool) -> list[int]:
    """Return the shape of a reduction over axes."""
    return [1 if axis in axes else size for axis, size in enumerate(shape) if keepdims or axis not in axes]
