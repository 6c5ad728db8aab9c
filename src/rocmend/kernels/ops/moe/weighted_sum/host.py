"""Launch the Triton kernel."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.moe.weighted_sum.kernel import weighted_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for


@Planner
def run(x: torch.Tensor, weights: torch.Tensor) -> Callable[..., torch.Tensor]:
    """Plan one launch; see ``function.weighted_sum``."""
    rows, size = x.shape[-2:]
    sums = x.shape[:-2].numel()
    output = allocate.Output((*x.shape[:-2], size), x.dtype, x.device)
    if 0 in (rows, size, sums):
        return lambda *_: output().zero_()
    config = config_for("weighted_sum", "rows", "*", executor.target_for(x.device))
    given, factors = _flat(x, weights)
    numbers = (given.stride(0), given.stride(1), factors.stride(0), size)
    plan = LaunchPlan(weighted_kernel, (sums, cdiv(size, config["BLOCK"])), {"ROWS": rows}, config, numbers)

    def call(x: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        out = output()
        plan((*_flat(x, weights), out))
        return out

    return call


def _flat(x: torch.Tensor, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``[sums, rows, size]`` and ``[sums, rows]`` whose last axes are contiguous."""
    rows, size = x.shape[-2:]
    x, weights = x.reshape(-1, rows, size), weights.reshape(-1, rows)
    x = x if x.stride(-1) == 1 or size == 1 else x.contiguous()
    return x, weights if weights.stride(-1) == 1 or rows == 1 else weights.contiguous()
