"""The public functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common import axes
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.recurrence.scan import OP, Problem
from rocmend.kernels.ops.recurrence.scan.reference import result_type
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


def _run(name: str, op: str, x: Tensor, axis: int | None, *, reverse: bool, inclusive: bool) -> Tensor:
    out: Tensor = _scanned((x,), name, op, axis, reverse, inclusive)
    return out


@cached
def _scanned(x: Tensor, name: str, op: str, axis: int | None, reverse: bool, inclusive: bool) -> Tensor:
    """Check arguments and compute."""
    if NAMES.get(x.dtype) not in OP.dtypes:
        raise UsageError(name, f"expected x of {', '.join(OP.dtypes)}, got {x.dtype}.")
    if axis is None or x.dim() == 0:
        x, axis = x.reshape(-1), 0
    axis = axes.normal_axis(name, axis, x.dim())
    problem = Problem(NAMES[x.dtype], *axes.split(x.shape, axis), op)
    run = implementation(OP, x.device, problem)
    out: Tensor = run(x, axis, op=op, reverse=reverse, inclusive=inclusive, dtype=result_type(x.dtype, op))
    return out


class _Sum(torch.autograd.Function):
    """The gradient of a sum of what stands before is the sum of what stands behind."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: int, reverse: bool, inclusive: bool) -> Tensor:
        ctx.options = (axis, reverse, inclusive)
        return _run("cumsum", "sum", x, axis, reverse=reverse, inclusive=inclusive)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        axis, reverse, inclusive = ctx.options
        return _run("cumsum", "sum", grads[0], axis, reverse=not reverse, inclusive=inclusive), None, None, None


def cumsum(x: Tensor, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True) -> Tensor:
    """Sum what stands up to each element of an axis: ``out[i] = x[0] + … + x[i]``.

    Args:
        x: Any shape; bool, integers or floats. Half types are summed in fp32 and rounded once.
        axis: Axis; None takes all elements as one row.
        reverse: Whether to sum from the end.
        inclusive: Whether an element counts itself; where not, the first result is 0.

    Returns:
        Sums, of the shape of ``x``; int32 for bool.

    Raises:
        UsageError: Another type, or no such axis.

    Cost: reads x once (twice where a long axis is cut), writes once. The same bits on every run.
    """
    if x.requires_grad and torch.is_grad_enabled():
        if axis is None or x.dim() == 0:
            x, axis = x.reshape(-1), 0
        out: Tensor = _Sum.apply(x, axis, reverse, inclusive)  # type: ignore[no-untyped-call]
        return out
    return _run("cumsum", "sum", x, axis, reverse=reverse, inclusive=inclusive)


def cumprod(x: Tensor, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True) -> Tensor:
    """Multiply what stands up to each element of an axis; see ``cumsum``. Exclusive results begin with 1."""
    return _run("cumprod", "prod", x, axis, reverse=reverse, inclusive=inclusive)


def cummax(x: Tensor, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True) -> Tensor:
    """Return the largest up to each element of an axis, NaN from the first NaN on, in half types too; see ``cumsum``.

    Exclusive results begin with -inf, or the least number of an integer type.
    """
    return _run("cummax", "max", x, axis, reverse=reverse, inclusive=inclusive)


def cummin(x: Tensor, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True) -> Tensor:
    """Return the smallest up to each element of an axis, NaN from the first NaN on, in half types too; see ``cumsum``.

    Exclusive results begin with inf, or the largest number of an integer type.
    """
    return _run("cummin", "min", x, axis, reverse=reverse, inclusive=inclusive)


def logcumsumexp(x: Tensor, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True) -> Tensor:
    """Return ``log(exp(x[0]) + … + exp(x[i]))`` without overflow; see ``cumsum``. Integers give float32."""
    return _run("logcumsumexp", "logsumexp", x, axis, reverse=reverse, inclusive=inclusive)
