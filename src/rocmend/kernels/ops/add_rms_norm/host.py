"""Launch RMSNorm's kernels with a residual."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate
from rocmend.kernels.common.rows import as_rows
from rocmend.kernels.ops.rms_norm.host import forward
from rocmend.kernels.ops.rms_norm.host import run_backward as rms_norm_backward


def run(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Launch the kernel; see ``function.add_rms_norm``."""
    total = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    dtype = x.dtype if weight is None else torch.promote_types(x.dtype, weight.dtype)
    out = allocate.empty(x.shape, dtype=dtype, device=x.device)
    if x.numel():
        forward(as_rows(x), as_rows(residual), weight, total, out, eps)
    return out, total


def run_backward(
    grad: torch.Tensor, grad_sum: torch.Tensor, total: torch.Tensor, weight: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Launch the gradients' kernels; see ``function.add_rms_norm_backward``."""
    return rms_norm_backward(grad, total, weight, eps, grad_sum)
