"""The references."""

from __future__ import annotations

from torch import Tensor

from rocmend.kernels.common.reference import wide
from rocmend.kernels.ops.rowwise.rms_norm import reference


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    """Add, round to the type of x, normalise."""
    total = x + residual
    return reference.rms_norm(total, weight, eps), total


def add_rms_norm_backward(
    grad: Tensor, grad_sum: Tensor, total: Tensor, weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of x (and of the residual) and of the weight."""
    values = wide(total)
    dx, _ = reference.rms_norm_backward(grad.to(values.dtype), values, weight, eps)
    _, dweight = reference.rms_norm_backward(grad, total, weight, eps)
    return (dx + grad_sum.to(values.dtype)).to(total.dtype), dweight
