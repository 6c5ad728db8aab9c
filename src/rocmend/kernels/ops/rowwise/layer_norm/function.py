"""The public functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.rows import check_floating
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.rowwise.layer_norm import OP, Problem
from rocmend.kernels.ops.rowwise.rms_norm.function import check
from rocmend.kernels.plan_cache import cached, cached_plan, plan_of
from rocmend.kernels.select import implementation


def _problem(x: Tensor, weight: Tensor | None, bias: Tensor | None, *, backward: bool = False) -> Problem:
    n = x.shape[-1]
    promoted = any(one is not None and one.dtype != x.dtype for one in (weight, bias))
    affine = weight is not None or bias is not None
    return Problem(NAMES[x.dtype], x.numel() // n if n else 0, n, affine, promoted, backward)


def _check(op: str, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> None:
    check(op, x, weight)
    if bias is not None:
        check_floating(op, bias=bias)
        if tuple(bias.shape) != (x.shape[-1],):
            raise UsageError(op, f"expected bias of shape ({x.shape[-1]},), got {tuple(bias.shape)}.")


def _forward(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    out: Tensor = _normed((x, weight, bias), float(eps))
    return out


@cached_plan
def _normed(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Callable[..., Tensor]:
    """Check the arguments and plan calls with such tensors."""
    _check("layer_norm", x, weight, bias)
    call = plan_of(implementation(OP, x.device, _problem(x, weight, bias)), x, weight, bias, eps)
    return lambda x, weight, bias: call(x, weight, bias, eps)


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
        ctx.save_for_backward(x, weight, bias)
        ctx.eps = eps
        return _forward(x, weight, bias, eps)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, weight, bias = ctx.saved_tensors
        return (*layer_norm_backward(grads[0], x, weight, bias, ctx.eps), None)


def layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Normalise over the last axis: ``(x - mean(x)) / sqrt(var(x) + eps) · weight + bias``.

    Args:
        x: ``[..., n]``, float32, float16 or bfloat16.
        weight: ``[n]`` of a floating type, or None.
        bias: ``[n]`` of a floating type, or None.
        eps: Added to the variance.

    Returns:
        ``[..., n]`` of the type that x, the weight and (beside a weight) the bias promote to, contiguous;
        differentiable.

    Raises:
        UsageError: Shapes or types that do not fit.

    Cost: reads and writes x once (reads it twice beyond 16,384 elements a row); 7 operations an element.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.layer_norm.html
    """
    needed = x.requires_grad or any(one is not None and one.requires_grad for one in (weight, bias))
    if needed and torch.is_grad_enabled():
        wired: Tensor = _LayerNorm.apply(x, weight, bias, eps)  # type: ignore[no-untyped-call]  # torch's
        return wired
    return _forward(x, weight, bias, eps)


def layer_norm_backward(
    grad: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the gradients of ``layer_norm`` for x, the weight and the bias (None without them).

    Args:
        grad: ``[..., n]``, gradient of the output.
        x: As given to ``layer_norm``.
        weight: As given to ``layer_norm``.
        bias: As given to ``layer_norm``.
        eps: As given to ``layer_norm``.

    Returns:
        Gradients of the types of what they belong to. Sums are in fp32 and in a fixed order.

    Raises:
        UsageError: Shapes that do not fit.

    Cost: reads grad and x once, writes one tensor like x.
    """
    found: tuple[Tensor, Tensor | None, Tensor | None] = _gradients((grad, x, weight, bias), float(eps))
    return found


@cached
def _gradients(
    grad: Tensor, x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Check arguments and compute the gradients."""
    _check("layer_norm_backward", x, weight, bias)
    if grad.shape != x.shape:
        raise UsageError("layer_norm_backward", f"expected grad of shape {tuple(x.shape)}, got {tuple(grad.shape)}.")
    result: tuple[Tensor, Tensor | None, Tensor | None] = implementation(
        OP, x.device, _problem(x, weight, bias, backward=True)
    )(grad, x, weight, bias, eps)
    return result
