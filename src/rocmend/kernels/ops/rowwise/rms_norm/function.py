"""The public functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.rows import check_floating
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.rowwise.rms_norm import OP, Problem
from rocmend.kernels.plan_cache import cached, cached_plan, plan_of
from rocmend.kernels.select import implementation


def _problem(x: Tensor, weight: Tensor | None, *, backward: bool = False) -> Problem:
    n = x.shape[-1]
    return Problem(
        NAMES[x.dtype],
        x.numel() // n if n else 0,
        n,
        weight is not None,
        weight is not None and weight.dtype != x.dtype,
        backward,
    )


def check(op: str, x: Tensor, weight: Tensor | None) -> None:
    """Check x and the weight against each other.

    Raises:
        UsageError: Shapes or types that do not fit; ``op`` opens the message.
    """
    if x.dim() == 0:
        raise UsageError(op, "expected x with at least 1 axis, got a scalar.")
    if not x.dtype.is_floating_point or (weight is not None and not weight.dtype.is_floating_point):
        check_floating(op, x=x, weight=weight)
    if weight is not None and (weight.dim() != 1 or weight.shape[0] != x.shape[-1]):
        raise UsageError(op, f"expected weight of shape ({x.shape[-1]},), got {tuple(weight.shape)}.")


def _forward(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    out: Tensor = _normed((x, weight), float(eps))
    return out


@cached_plan
def _normed(x: Tensor, weight: Tensor | None, eps: float) -> Callable[..., Tensor]:
    """Check the arguments and plan calls with such tensors."""
    check("rms_norm", x, weight)
    call = plan_of(implementation(OP, x.device, _problem(x, weight)), x, weight, eps)
    return lambda x, weight: call(x, weight, eps)


class _RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return _forward(x, weight, eps)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, weight = ctx.saved_tensors
        return (*rms_norm_backward(grads[0], x, weight, ctx.eps), None)


def rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Normalise over the last axis: ``x / sqrt(mean(x²) + eps) · weight``.

    Args:
        x: ``[..., n]``, float32, float16 or bfloat16.
        weight: ``[n]`` of a floating type, or None.
        eps: Added to the mean of squares.

    Returns:
        ``[..., n]`` of the type that x and the weight promote to, contiguous; differentiable.

    Raises:
        UsageError: Shapes or types that do not fit.

    Cost: reads and writes x once (reads it twice beyond 16,384 elements a row); 4 operations an element.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.rms_norm.html
    """
    if torch.is_grad_enabled() and (x.requires_grad or (weight is not None and weight.requires_grad)):
        differentiable: Tensor = _RMSNorm.apply(x, weight, eps)  # type: ignore[no-untyped-call]  # torch's
        return differentiable
    return _forward(x, weight, eps)


def rms_norm_backward(grad: Tensor, x: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of ``rms_norm`` for x and for the weight (None without one).

    Args:
        grad: ``[..., n]``, gradient of the output.
        x: As given to ``rms_norm``.
        weight: As given to ``rms_norm``.
        eps: As given to ``rms_norm``.

    Returns:
        Gradients of the types of x and of the weight. Sums are in fp32 and in a fixed order: two runs agree bit by bit.

    Raises:
        UsageError: Shapes that do not fit.

    Cost: reads grad and x once, writes one tensor like x.
    """
    found: tuple[Tensor, Tensor | None] = _gradients((grad, x, weight), float(eps))
    return found


@cached
def _gradients(grad: Tensor, x: Tensor, weight: Tensor | None, eps: float) -> tuple[Tensor, Tensor | None]:
    """Check arguments and compute the gradients."""
    check("rms_norm_backward", x, weight)
    if grad.shape != x.shape:
        raise UsageError("rms_norm_backward", f"expected grad of shape {tuple(x.shape)}, got {tuple(grad.shape)}.")
    result: tuple[Tensor, Tensor | None] = implementation(OP, x.device, _problem(x, weight, backward=True))(
        grad, x, weight, eps
    )
    return result
