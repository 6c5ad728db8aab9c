"""The public functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.rowwise.add_rms_norm import OP, Problem
from rocmend.kernels.ops.rowwise.rms_norm.function import check
from rocmend.kernels.plan_cache import cached, cached_plan, plan_of
from rocmend.kernels.select import implementation


def _problem(x: Tensor, weight: Tensor | None, *, backward: bool = False) -> Problem:
    n = x.shape[-1]
    return Problem(NAMES[x.dtype], x.numel() // n if n else 0, n, weight is not None, backward=backward)


def _forward(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    result: tuple[Tensor, Tensor] = _normed((x, residual, weight), float(eps))
    return result


@cached_plan
def _normed(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> Callable[..., tuple[Tensor, Tensor]]:
    """Check the arguments and plan calls with such tensors."""
    check("add_rms_norm", x, weight)
    if x.shape != residual.shape or x.dtype != residual.dtype:
        raise UsageError(
            "add_rms_norm",
            "expected x and residual of one shape and type, "
            f"got {tuple(x.shape)} {x.dtype} and {tuple(residual.shape)} {residual.dtype}.",
        )
    call = plan_of(implementation(OP, x.device, _problem(x, weight)), x, residual, weight, eps)
    return lambda x, residual, weight: call(x, residual, weight, eps)


class _AddRMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> Any:
        out, total = _forward(x, residual, weight, eps)
        ctx.save_for_backward(total, weight)
        ctx.eps = eps
        return out, total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        total, weight = ctx.saved_tensors
        dx, dweight = add_rms_norm_backward(grads[0], grads[1], total, weight, ctx.eps)
        return dx, dx, dweight, None


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor]:
    """Return ``rms_norm(x + residual, weight, eps)`` and ``x + residual``, rounded to the type of x, in one pass.

    Args:
        x: ``[..., n]``, float32, float16 or bfloat16.
        residual: The shape and type of x.
        weight: ``[n]`` of a floating type, or None.
        eps: Added to the mean of squares.

    Returns:
        Both ``[..., n]`` and contiguous; differentiable.

    Raises:
        UsageError: Shapes or types that do not fit.

    Cost: reads two tensors and writes two.
    """
    if torch.is_grad_enabled() and (
        x.requires_grad or residual.requires_grad or (weight is not None and weight.requires_grad)
    ):
        result: tuple[Tensor, Tensor] = _AddRMSNorm.apply(x, residual, weight, eps)  # type: ignore[no-untyped-call]  # torch's
        return result
    return _forward(x, residual, weight, eps)


def add_rms_norm_backward(
    grad: Tensor, grad_sum: Tensor, total: Tensor, weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of x (the residual's is the same) and of the weight.

    Args:
        grad: ``[..., n]``, gradient of the normalised output.
        grad_sum: ``[..., n]``, gradient of the sum.
        total: The sum that ``add_rms_norm`` returned.
        weight: As given to ``add_rms_norm``.
        eps: As given to ``add_rms_norm``.

    Returns:
        Gradients of the types of the sum and of the weight.

    Raises:
        UsageError: Shapes that do not fit.

    Cost: reads three tensors, writes one.
    """
    found: tuple[Tensor, Tensor | None] = _gradients((grad, grad_sum, total, weight), float(eps))
    return found


@cached
def _gradients(
    grad: Tensor, grad_sum: Tensor, total: Tensor, weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None]:
    """Check arguments and compute the gradients."""
    check("add_rms_norm_backward", total, weight)
    if grad.shape != total.shape or grad_sum.shape != total.shape:
        raise UsageError("add_rms_norm_backward", f"expected gradients of shape {tuple(total.shape)}.")
    result: tuple[Tensor, Tensor | None] = implementation(OP, total.device, _problem(total, weight, backward=True))(
        grad, grad_sum, total, weight, eps
    )
    return result
