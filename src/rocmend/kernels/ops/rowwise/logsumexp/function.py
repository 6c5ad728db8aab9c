"""The public function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels import allocate
from rocmend.kernels.common.axis_rows import normal_axes, reduced_shape, to_rows
from rocmend.kernels.common.rows import as_rows, check_floating
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.rowwise.logsumexp import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


class _LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        lse = _rows(x, torch.float32 if x.dtype != torch.float64 else x.dtype)
        ctx.save_for_backward(x, lse)
        return lse.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, lse = ctx.saved_tensors
        return logsumexp_backward(grads[0], x, lse)


def _rows(x: Tensor, dtype: torch.dtype) -> Tensor:
    out: Tensor = implementation(OP, x.device, Problem(NAMES[x.dtype], x.shape[0], x.shape[1]))(x, dtype)
    return out


def logsumexp(x: Tensor, axis: int | Sequence[int] | None = None, *, keepdims: bool = False) -> Tensor:
    """Return ``log(sum(exp(x)))`` over axes, computed in fp32 relative to the largest element.

    Args:
        x: Any shape; float32, float16 or bfloat16.
        axis: An axis, several, or None for all.
        keepdims: Keep reduced axes with size 1.

    Returns:
        The type of x; -inf where all elements are -inf (or there is none), inf where one is inf; differentiable.

    Raises:
        UsageError: No such axis, or not a floating type.

    Cost: reads x once; 4 operations an element. Axes that are not the last cost a copy.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.logsumexp.html
    """
    along = axis if axis is None or isinstance(axis, int) else tuple(axis)
    out: Tensor = _reduced((x,), along, keepdims)
    return out


@cached
def _reduced(x: Tensor, axis: int | tuple[int, ...] | None, keepdims: bool) -> Tensor:
    """Check arguments and compute."""
    check_floating("logsumexp", x=x)
    axes = normal_axes("logsumexp", axis, x.dim())
    shape = reduced_shape(x.shape, axes, keepdims=keepdims)
    if x.numel() == 0 or not axes:
        if x.numel() == 0:
            return allocate.empty(shape, dtype=x.dtype, device=x.device).fill_(float("-inf"))
        return x.clone()
    rows = to_rows(x, axes)
    if torch.is_grad_enabled() and x.requires_grad:
        wired: Tensor = _LogSumExp.apply(rows)  # type: ignore[no-untyped-call]  # torch's
        return wired.view(shape)
    return _rows(rows, x.dtype).view(shape)


def logsumexp_backward(grad: Tensor, x: Tensor, lse: Tensor) -> Tensor:
    """Return ``grad · exp(x - lse)``, the gradient of x, along the last axis.

    Args:
        grad: ``[rows]``.
        x: ``[rows, n]``.
        lse: ``[rows]``, what ``logsumexp`` returned, best in fp32.

    Returns:
        The shape and type of x.

    Raises:
        UsageError: Shapes that do not fit.

    Cost: reads x and writes one tensor like it.
    """
    dx: Tensor = _gradient((grad, x, lse))
    return dx


@cached
def _gradient(grad: Tensor, x: Tensor, lse: Tensor) -> Tensor:
    """Check arguments and compute the gradient."""
    check_floating("logsumexp_backward", grad=grad, x=x, lse=lse)
    if x.dim() != 2 or grad.shape != x.shape[:1] or lse.shape != x.shape[:1]:
        raise UsageError(
            "logsumexp_backward",
            "expected shapes [rows], [rows, n] and [rows], "
            f"got {tuple(grad.shape)}, {tuple(x.shape)} and {tuple(lse.shape)}.",
        )
    if x.numel() == 0:
        return torch.empty_like(x)
    problem = Problem(NAMES[x.dtype], x.shape[0], x.shape[1], True)
    dx: Tensor = implementation(OP, x.device, problem)(grad.contiguous(), as_rows(x), lse.contiguous())
    return dx
