"""The public function."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common import axes
from rocmend.kernels.common.arguments import check_dtype
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.rowwise.topk import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


class TopK(NamedTuple):
    """The first elements and where they stand."""

    values: Tensor
    indices: Tensor


def topk(x: Tensor, k: int, axis: int = -1, *, largest: bool = True, index_dtype: torch.dtype = torch.int64) -> TopK:
    """Take the ``k`` largest elements along an axis, the largest first, of equal ones the first. NaN is the largest.

    Args:
        x: Any shape of at least 1 axis; bool, integers or floats.
        k: How many.
        axis: Along which.
        largest: Whether the largest are wanted, or the smallest.
        index_dtype: int64, int32 or uint32.

    Returns:
        Elements and places, with ``k`` along the axis.

    Raises:
        UsageError: Another type, no such axis, or fewer than ``k`` elements along it.

    Cost: reads x once for small ``k``; a sort otherwise.
    """
    return _taken((x,), k, axis, largest, index_dtype)


@cached
def _taken(x: Tensor, k: int, axis: int, largest: bool, index_dtype: torch.dtype) -> TopK:
    """Check arguments and compute."""
    check_dtype("topk", OP, x)
    if x.dim() == 0:
        raise UsageError("topk", "expected x with at least 1 axis, got a scalar.")
    axis = axes.normal_axis("topk", axis, x.dim())
    length = x.shape[axis]
    if not 0 <= k <= length:
        raise UsageError("topk", f"expected 0 <= k <= {length}, got {k}.")
    axes.check_index_dtype("topk", index_dtype, length)
    problem = Problem(NAMES[x.dtype], x.numel() // length if length else 0, length, k)
    return TopK(*implementation(OP, x.device, problem)(x, k, axis, largest=largest, index_dtype=index_dtype))
