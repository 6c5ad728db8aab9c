"""Few queries: the kernels of ``attention_decode``, which are split over the keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rocmend.kernels.ops.attention_decode import host
from rocmend.kernels.remembered import Planned


@Planned
def run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, return_lse: bool = False, **options: Any
) -> Callable[..., torch.Tensor]:
    """Plan to launch them; the rule lets nothing through that asks for the sums' logarithms."""
    del return_lse
    planned = host.run.plan(q, k, v, **options)

    def call(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, return_lse: bool = False, **options: Any
    ) -> torch.Tensor:
        del return_lse
        out: torch.Tensor = planned(q, k, v, options["scale"], options["mask"], options["sinks"])
        return out

    return call
