"""The Triton kernel."""

from __future__ import annotations

from collections.abc import Callable

import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for


@triton.jit
def weighted_kernel(
    x_ptr, weights_ptr, out_ptr, x_stride, x_row, weights_stride, size, ROWS: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """One block of one sum a program; each product is rounded to the type, and the sum once."""
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    blocks = tl.cdiv(size, BLOCK)
    one = (tl.program_id(0) // blocks).to(tl.int64)
    place = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    total = tl.zeros((BLOCK,), tl.float32)
    for row in tl.static_range(ROWS):
        weight = tl.load(weights_ptr + one * weights_stride + row).to(tl.float32)
        x = tl.load(x_ptr + one * x_stride + row * x_row + place, mask=inside, other=0.0).to(tl.float32)
        total += narrow(x * weight, dtype).to(tl.float32)
    tl.store(out_ptr + one * size + place, narrow(total, dtype), mask=inside)


@Planner
def rows(x: Tensor, weights: Tensor) -> Callable[..., Tensor]:
    """Plan one launch; see ``function.weighted_sum``."""
    count, size = x.shape[-2:]
    sums = x.shape[:-2].numel()
    output = allocate.Output((*x.shape[:-2], size), x.dtype, x.device)
    if 0 in (count, size, sums):
        return lambda *_: output().zero_()
    config = config_for("weighted_sum", "rows", "*", executor.target_for(x.device))
    given, factors = _flat(x, weights)
    numbers = (given.stride(0), given.stride(1), factors.stride(0), size)
    plan = LaunchPlan(weighted_kernel, (sums * cdiv(size, config["BLOCK"]),), {"ROWS": count}, config, numbers)
    return plan.into(output, _flat)


def _flat(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``[sums, rows, size]`` and ``[sums, rows]`` whose last axes are contiguous."""
    rows, size = x.shape[-2:]
    x, weights = x.reshape(-1, rows, size), weights.reshape(-1, rows)
    x = x if x.stride(-1) == 1 or size == 1 else x.contiguous()
    return x, weights if weights.stride(-1) == 1 or rows == 1 else weights.contiguous()
