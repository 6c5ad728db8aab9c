"""Launch the Triton kernel."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.moe.router.kernel import router_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for

Result = tuple[torch.Tensor, torch.Tensor]


@Planner
def run(x: torch.Tensor, k: int, normalise: bool) -> Callable[..., Result]:
    """Plan one launch; see ``function.router``."""
    experts = x.shape[-1]
    rows = x.numel() // experts
    shape = (*x.shape[:-1], k)
    scores_of = allocate.Output(shape, x.dtype, x.device)
    places_of = allocate.Output(shape, torch.int32, x.device)
    if rows == 0:
        return lambda *_: (scores_of(), places_of())
    flat = _rows(x, rows, experts)
    constants = {"K": k, "NORM": normalise, "BLOCK": next_power_of_2(experts), "SLOTS": next_power_of_2(k)}
    config = config_for("router", "rows", "*", executor.target_for(x.device))
    plan = LaunchPlan(router_kernel, (rows,), constants, config, (flat.stride(0), experts))

    def call(x: torch.Tensor, *_: object) -> Result:
        scores, places = scores_of(), places_of()
        plan((_rows(x, rows, experts), scores, places))
        return scores, places

    return call


def _rows(x: torch.Tensor, rows: int, experts: int) -> torch.Tensor:
    flat = x.reshape(rows, experts)
    return flat if flat.stride(-1) == 1 or experts == 1 else flat.contiguous()
