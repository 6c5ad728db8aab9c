"""The public functions."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common import axes
from rocmend.kernels.common.arguments import check_dtype
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.rowwise.sort import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


@cached
def _ordered(x: Tensor, op: str, axis: int | None, values: bool, index_dtype: torch.dtype) -> Tensor:
    """Check arguments and compute."""
    check_dtype(op, OP, x)
    shape = (x.numel(),) if axis is None and x.dim() else x.shape
    x, axis = axes.on_axis(op, x, axis)
    length = x.shape[axis]
    axes.check_index_dtype(op, index_dtype, length)
    problem = Problem(NAMES[x.dtype], x.numel() // length if length else 0, length, not values)
    found = implementation(OP, x.device, problem)(
        x, axis, descending=False, values=values, indices=not values, index_dtype=index_dtype
    )
    return found[0 if values else 1].reshape(shape)


def sort(x: Tensor, axis: int | None = -1) -> Tensor:
    """Sort along an axis, upwards: NaN behind everything, -0.0 and 0.0 equal, equal elements in their order.

    Args:
        x: Any shape; bool, integers or floats.
        axis: Axis; None sorts all elements as one row.

    Returns:
        The elements in order, of the shape of ``x`` (one row where ``axis`` is None).

    Raises:
        UsageError: Another type, or no such axis.

    Cost: rows of up to two thousand elements are read and written once; longer ones twice a byte of an element.
    """
    return _ordered((x,), "sort", axis, True, torch.int64)


def argsort(x: Tensor, axis: int | None = -1, *, index_dtype: torch.dtype = torch.int64) -> Tensor:
    """Return the places of the elements in order; see ``sort``.

    Args:
        x: Any shape; bool, integers or floats.
        axis: Axis; None sorts all elements as one row.
        index_dtype: int64, int32, or uint32 as MLX has it.

    Returns:
        Places along the axis, of the shape of ``x``.

    Raises:
        UsageError: Another type, or no such axis.
    """
    return _ordered((x,), "argsort", axis, False, index_dtype)


def _check_kth(op: str, x: Tensor, kth: int, axis: int | None) -> None:
    length = x.numel() if axis is None else x.shape[axes.normal_axis(op, axis, x.dim())] if x.dim() else 1
    if not -length <= kth < length:
        raise UsageError(op, f"expected kth within an axis of {length} elements, got {kth}.")


def partition(x: Tensor, kth: int, axis: int | None = -1) -> Tensor:
    """Return the elements with the ``kth`` where a sort puts it, smaller ones before and larger ones behind: sorted.

    Args:
        x: Any shape; bool, integers or floats.
        kth: Place that must be right; negative ones count from the end.
        axis: Axis; None takes all elements as one row.

    Returns:
        As ``sort``.

    Raises:
        UsageError: Another type, or no such axis or place.
    """
    _check_kth("partition", x, kth, axis)
    return _ordered((x,), "partition", axis, True, torch.int64)


def argpartition(x: Tensor, kth: int, axis: int | None = -1, *, index_dtype: torch.dtype = torch.int64) -> Tensor:
    """Return the places of the elements as ``partition`` orders them; see there, and ``argsort`` for the types."""
    _check_kth("argpartition", x, kth, axis)
    return _ordered((x,), "argpartition", axis, False, index_dtype)
