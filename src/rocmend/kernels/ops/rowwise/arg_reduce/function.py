"""The public functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common import axes
from rocmend.kernels.common.arguments import check_dtype
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.rowwise.arg_reduce import OP, Problem
from rocmend.kernels.plan_cache import Planner, cached_plan
from rocmend.kernels.select import implementation


@cached_plan
def _found(
    x: Tensor, op: str, axis: int | None, keepdims: bool, index_dtype: torch.dtype, largest: bool
) -> Callable[[Tensor], Tensor]:
    """Check the arguments and plan calls with such a tensor."""
    check_dtype(op, OP, x)
    shape, dense = x.shape, x.is_contiguous()
    flat = axis is None or x.dim() == 0
    if axis is None or flat:
        x, axis = x.reshape(-1), 0
        kept = torch.Size((1,) * len(shape))
    else:
        axis = axes.normal_axis(op, axis, x.dim())
        kept = torch.Size((*shape[:axis], 1, *shape[axis + 1 :]))
    length = x.shape[axis]
    if length == 0:
        raise UsageError(op, f"expected an axis with elements, got shape {tuple(shape)}.")
    axes.check_index_dtype(op, index_dtype, length)
    run = implementation(OP, x.device, Problem(NAMES[x.dtype], *axes.split(x.shape, axis)))
    settings: dict[str, Any] = {"largest": largest, "index_dtype": index_dtype}
    if isinstance(run, Planner):
        call = run.plan(x, axis, **settings, shape=kept if keepdims else None)
        # A contiguous tensor's elements are one row whatever its shape: the kernel is given its address.
        flatten = flat and not dense
        return (lambda x: call(x.reshape(-1), axis)) if flatten else call

    def choose(x: Tensor) -> Tensor:
        out: Tensor = run(x.reshape(-1) if flat else x, axis, **settings)
        return out.reshape(kept) if keepdims else out

    return choose


def argmax(
    x: Tensor, axis: int | None = None, *, keepdims: bool = False, index_dtype: torch.dtype = torch.int64
) -> Tensor:
    """Return where the largest element along an axis is: the first NaN, else the first of equal ones.

    Args:
        x: Any shape; bool, integers or floats.
        axis: Axis; None takes all elements as one row.
        keepdims: Whether the axis stays, of size 1.
        index_dtype: int64, int32, or uint32 as MLX has it.

    Returns:
        Places, of the shape of ``x`` without the axis.

    Raises:
        UsageError: Another type, no such axis, or one of no elements.

    Cost: reads x once.
    """
    return _found((x,), "argmax", axis, keepdims, index_dtype, True)


def argmin(
    x: Tensor, axis: int | None = None, *, keepdims: bool = False, index_dtype: torch.dtype = torch.int64
) -> Tensor:
    """Return where the smallest element along an axis is; see ``argmax``."""
    return _found((x,), "argmin", axis, keepdims, index_dtype, False)
