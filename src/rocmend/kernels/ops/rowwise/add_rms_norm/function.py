"""The public functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from rocmend.kernels.common.arguments import check_alike, check_shape
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.ops.rowwise.add_rms_norm import OP
from rocmend.kernels.ops.rowwise.rms_norm.function import check, problem_of
from rocmend.kernels.plan_cache import cached, cached_plan, plan_of
from rocmend.kernels.select import implementation


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
    if needs_gradient(x, residual, weight):
        return differentiable(partial(_recorded, eps=eps), partial(_gradients_of, eps=eps), x, residual, weight)
    return _normed((x, residual, weight), float(eps))


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
    return _gradients((grad, grad_sum, total, weight), float(eps))


def _recorded(
    x: Tensor, residual: Tensor, weight: Tensor | None, *, eps: float
) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor | None]]:
    out, total = _normed((x, residual, weight), float(eps))
    return (out, total), (total, weight)


def _gradients_of(
    grad: Tensor | None, grad_sum: Tensor | None, total: Tensor, weight: Tensor | None, *, eps: float
) -> tuple[Tensor | None, ...]:
    grad, grad_sum = (torch.zeros_like(total) if upper is None else upper for upper in (grad, grad_sum))
    dx, dweight = add_rms_norm_backward(grad, grad_sum, total, weight, eps)
    return dx, dx, dweight


@cached_plan
def _normed(x: Tensor, residual: Tensor, weight: Tensor | None, eps: float) -> Callable[..., tuple[Tensor, Tensor]]:
    """Check the arguments and plan calls with such tensors."""
    check("add_rms_norm", x, weight)
    check_alike("add_rms_norm", x=x, residual=residual)
    call = plan_of(implementation(OP, x.device, problem_of(x, weight)), x, residual, weight, eps)
    return lambda x, residual, weight: call(x, residual, weight, eps)


@cached
def _gradients(
    grad: Tensor, grad_sum: Tensor, total: Tensor, weight: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None]:
    """Check arguments and compute the gradients."""
    check("add_rms_norm_backward", total, weight)
    check_shape("add_rms_norm_backward", total.shape, grad=grad, grad_sum=grad_sum)
    run = implementation(OP, total.device, problem_of(total, weight, backward=True))
    return run(grad, grad_sum, total, weight, eps)
