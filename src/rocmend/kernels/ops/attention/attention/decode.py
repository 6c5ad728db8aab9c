"""Few queries: the kernels of ``attention_decode``, which are split over the keys."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.attention.attention_decode import OP, Problem
from rocmend.kernels.plan_cache import Planner, plan_of
from rocmend.kernels.select import implementation


@Planner
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float,
    mask: torch.Tensor | str | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    window: int | None = None,
    return_lse: bool = False,
) -> Callable[..., torch.Tensor]:
    """Plan to launch them; the rule lets nothing through that asks for the sums' logarithms."""
    del return_lse
    problem = Problem(
        NAMES[q.dtype], q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3]
    )
    return plan_of(implementation(OP, q.device, problem, tier="triton"), q, k, v, scale, mask, sinks, soft_cap, window)
