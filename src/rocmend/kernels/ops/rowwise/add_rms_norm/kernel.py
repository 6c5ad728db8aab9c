"""Launch RMSNorm's kernels with a residual."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rocmend.kernels import allocate
from rocmend.kernels.ops.rowwise.rms_norm.kernel import Launches, held_launches, split_launches
from rocmend.kernels.ops.rowwise.rms_norm.kernel import backward as rms_norm_backward
from rocmend.kernels.plan_cache import Planner


def _run(plan: Callable[..., Launches]) -> Planner:
    """Make an implementation of a plan of launches."""

    @Planner
    def run(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> Callable[..., tuple[Tensor, Tensor]]:
        """Plan a call; see ``function.add_rms_norm``."""
        dtype = x.dtype if weight is None else torch.promote_types(x.dtype, weight.dtype)
        totals, outputs = (allocate.Output(x.shape, kind, x.device) for kind in (x.dtype, dtype))
        if x.numel() == 0:
            return lambda *_: (outputs(), totals())
        launches = plan(x, residual, weight, eps)

        def call(x: Tensor, residual: Tensor, weight: Tensor | None, _eps: float) -> tuple[Tensor, Tensor]:
            total, out = totals(), outputs()
            launches(x, residual, weight, total, out)
            return out, total

        return call

    return run


held, split = map(_run, (held_launches, split_launches))


def backward(
    grad: Tensor, grad_sum: Tensor, total: Tensor, weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None]:
    """Launch the gradients' kernels; see ``function.add_rms_norm_backward``."""
    return rms_norm_backward(grad, total, weight, eps, grad_sum)
