"""Launch RMSNorm's kernels with a residual."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rocmend.kernels import allocate
from rocmend.kernels.common.rows import as_rows
from rocmend.kernels.ops.rowwise.rms_norm.kernel import forward, held
from rocmend.kernels.ops.rowwise.rms_norm.kernel import run_backward as rms_norm_backward
from rocmend.kernels.plan_cache import Planner


@Planner
def run(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> Callable[..., tuple[Tensor, Tensor]]:
    """Plan a call; see ``function.add_rms_norm``."""
    dtype = x.dtype if weight is None else torch.promote_types(x.dtype, weight.dtype)
    totals, outputs = (allocate.Output(x.shape, kind, x.device) for kind in (x.dtype, dtype))
    plan = held(x, residual, weight, eps)

    def in_parts(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
        total, out = totals(), outputs()
        if x.numel():
            forward(as_rows(x), as_rows(residual), weight, total, out, eps)
        return out, total

    if plan is None:
        return in_parts

    def in_one(x: Tensor, residual: Tensor, weight: Tensor | None, _eps: float) -> tuple[Tensor, Tensor]:
        total, out = totals(), outputs()
        plan((x, residual, weight, total, out))
        return out, total

    return in_one


def run_backward(
    grad: Tensor, grad_sum: Tensor, total: Tensor, weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None]:
    """Launch the gradients' kernels; see ``function.add_rms_norm_backward``."""
    return rms_norm_backward(grad, total, weight, eps, grad_sum)
