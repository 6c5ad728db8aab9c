"""Few queries: the kernels of ``attention_decode``, which are split over the keys."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.kernels.ops.attention.attention_decode import host
from rocmend.kernels.plan_cache import Planner


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
    planned: Callable[..., torch.Tensor] = host.run.plan(q, k, v, scale, mask, sinks, soft_cap, window)
    return planned
