"""The public functions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels import allocate
from rocmend.kernels.common.arguments import check_floating
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.common.axis_rows import normal_axes, reduced_shape, to_rows
from rocmend.kernels.common.rows import as_rows, problem_of
from rocmend.kernels.ops.rowwise.logsumexp import OP
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


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
    return _reduced((x,), axis if axis is None or isinstance(axis, int) else tuple(axis), keepdims)


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
    return _gradient((grad, x, lse))


@cached
def _reduced(x: Tensor, axis: int | tuple[int, ...] | None, keepdims: bool) -> Tensor:
    """Check arguments and compute."""
    check_floating("logsumexp", x=x)
    axes = normal_axes("logsumexp", axis, x.dim())
    shape = reduced_shape(x.shape, axes, keepdims=keepdims)
    if x.numel() == 0:
        return allocate.empty(shape, dtype=x.dtype, device=x.device).fill_(float("-inf"))
    if not axes:
        return x.clone()
    rows = to_rows(x, axes)
    if needs_gradient(x):
        return differentiable(_recorded, lambda *saved: (logsumexp_backward(*saved),), rows).view(shape)
    return _of_rows(rows, x.dtype).view(shape)


def _of_rows(x: Tensor, dtype: torch.dtype) -> Tensor:
    return implementation(OP, x.device, problem_of(x))(x, dtype)


def _recorded(x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Compute rows for autograd, whose gradient needs the result in fp32."""
    lse = _of_rows(x, torch.float32 if x.dtype != torch.float64 else x.dtype)
    return lse.to(x.dtype), (x, lse)


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
    run = implementation(OP, x.device, problem_of(x, backward=True))
    return run(grad.contiguous(), as_rows(x), lse.contiguous())
