"""The references."""

from __future__ import annotations

import torch

from rocmend.kernels.ops.rowwise.rms_norm import reference


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add, round to the type of x, normalise."""
    total = x + residual
    return reference.rms_norm(total, weight, eps), total


def add_rms_norm_backward(
    grad: torch.Tensor, grad_sum: torch.Tensor, total: torch.Tensor, weight: torch.Tensor | None, eps: float
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return the gradients of x (and of the residual) and of the weight."""
    wide = total.float() if total.dtype in (torch.float16, torch.bfloat16) else total
    dx, _ = reference.rms_norm_backward(grad.to(wide.dtype), wide, weight, eps)
    _, dweight = reference.rms_norm_backward(grad, total, weight, eps)
    return (dx + grad_sum.to(wide.dtype)).to(total.dtype), dweight
