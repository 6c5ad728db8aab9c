"""The public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_floating
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.common.axis_rows import from_rows, normal_axes, to_rows
from rocmend.kernels.common.rows import problem_of, shares_memory
from rocmend.kernels.ops.rowwise.softmax import OP
from rocmend.kernels.plan_cache import Planner, cached, cached_plan
from rocmend.kernels.select import implementation


def softmax(x: Tensor, axis: int | Sequence[int] | None = None, *, precise: bool = False) -> Tensor:
    """Return ``exp(x) / sum(exp(x))`` along axes.

    Args:
        x: Any shape; float32, float16 or bfloat16.
        axis: An axis, several, or None for all.
        precise: Compute half types in fp32. They always are: it costs nothing, the time goes to memory.

    Returns:
        The shape and type of x; NaN throughout where a row holds NaN, inf, or nothing above -inf. Differentiable.
        Where the axes are not the last ones, a view with other strides.

    Raises:
        UsageError: No such axis, or not a floating type.

    Cost: reads and writes x once (reads it twice beyond 32,768 elements a row); axes that are not the last cost a copy.

    Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.softmax.html
    """
    del precise
    return _softmax("softmax", x, axis, log=False)


def log_softmax(x: Tensor, axis: int | Sequence[int] | None = None) -> Tensor:
    """Return ``x - logsumexp(x)`` along axes.

    Args:
        x: Any shape; float32, float16 or bfloat16.
        axis: An axis, several, or None for all.

    Returns:
        The shape and type of x. Differentiable.

    Raises:
        UsageError: No such axis, or not a floating type.

    Cost: as ``softmax``.
    """
    return _softmax("log_softmax", x, axis, log=True)


def softmax_backward(grad: Tensor, out: Tensor, *, log: bool = False) -> Tensor:
    """Return the gradient of x, given that of ``softmax``'s output along the last axis.

    Args:
        grad: ``[rows, n]``.
        out: ``[rows, n]``, what ``softmax`` (or ``log_softmax``) returned.
        log: ``out`` is the logarithm.

    Returns:
        The shape and type of ``out``.

    Raises:
        UsageError: Shapes that differ, or not two axes.

    Cost: reads two tensors and writes one (reads them twice beyond 16,384 elements a row).
    """
    return _gradient((grad, out), log)


def _softmax(op: str, x: Tensor, axis: int | Sequence[int] | None, *, log: bool) -> Tensor:
    if needs_gradient(x):
        check_floating(op, x=x)
        axes = normal_axes(op, axis, x.dim())
        if x.numel() and axes:
            out = differentiable(
                lambda rows: ((out := _of_rows(rows)(rows, log)), (out,)),
                lambda grad, out: (softmax_backward(grad, out, log=log),),
                to_rows(x, axes),
            )
            return from_rows(out, x.shape, axes)
    return _whole((x,), op, axis if axis is None or isinstance(axis, int) else tuple(axis), log)


def _of_rows(x: Tensor) -> Callable[..., Tensor]:
    return implementation(OP, x.device, problem_of(x))


@cached_plan
def _whole(x: Tensor, op: str, axis: int | tuple[int, ...] | None, log: bool) -> Callable[[Tensor], Tensor]:
    """Check the arguments and plan calls with such a tensor."""
    check_floating(op, x=x)
    axes = normal_axes(op, axis, x.dim())
    if x.numel() == 0 or not axes:
        return torch.zeros_like if log else torch.ones_like
    rows = to_rows(x, axes)
    run = _of_rows(rows)
    last = axes == tuple(range(x.dim() - len(axes), x.dim()))
    if isinstance(run, Planner) and last and shares_memory(rows, x):
        # The kernel is given addresses, so that no view is needed.
        call = run.plan(rows, log, x.shape)
        return lambda x: call(x, log)
    return lambda x: from_rows(run(to_rows(x, axes), log), x.shape, axes)


@cached
def _gradient(grad: Tensor, out: Tensor, log: bool) -> Tensor:
    """Check arguments and compute the gradient."""
    check_floating("softmax_backward", grad=grad, out=out)
    if grad.shape != out.shape or out.dim() != 2:
        raise UsageError(
            "softmax_backward", f"expected two shapes [rows, n], got {tuple(grad.shape)} and {tuple(out.shape)}."
        )
    if out.numel() == 0:
        return torch.empty_like(out)
    return implementation(OP, out.device, problem_of(out, backward=True))(grad, out.contiguous(), log)
