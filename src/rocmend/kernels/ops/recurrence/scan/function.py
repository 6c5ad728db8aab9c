"""The public functions."""

from __future__ import annotations

from torch import Tensor

from rocmend.kernels.common import axes
from rocmend.kernels.common.arguments import check_dtype
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.recurrence.scan import OP, Problem
from rocmend.kernels.ops.recurrence.scan.reference import result_type
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


@cached
def _scanned(x: Tensor, name: str, op: str, axis: int | None, reverse: bool, inclusive: bool) -> Tensor:
    """Check arguments and compute."""
    check_dtype(name, OP, x)
    x, axis = axes.on_axis(name, x, axis)
    problem = Problem(NAMES[x.dtype], *axes.split(x.shape, axis), op)
    run = implementation(OP, x.device, problem)
    return run(x, axis, op=op, reverse=reverse, inclusive=inclusive, dtype=result_type(x.dtype, op))


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
    if needs_gradient(x):
        x, axis = axes.on_axis("cumsum", x, axis)
        return differentiable(
            lambda x: (_scanned((x,), "cumsum", "sum", axis, reverse, inclusive), ()),
            # The gradient of a sum of what stands before is the sum of what stands behind.
            lambda grad: (_scanned((grad,), "cumsum", "sum", axis, not reverse, inclusive),),
            x,
        )
    return _scanned((x,), "cumsum", "sum", axis, reverse, inclusive)


def cumprod(x: Tensor, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True) -> Tensor:
    """Multiply what stands up to each element of an axis; see ``cumsum``. Exclusive results begin with 1."""
    return _scanned((x,), "cumprod", "prod", axis, reverse, inclusive)


def cummax(x: Tensor, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True) -> Tensor:
    """Return the largest up to each element of an axis, NaN from the first NaN on, in half types too; see ``cumsum``.

    Exclusive results begin with -inf, or the least number of an integer type.
    """
    return _scanned((x,), "cummax", "max", axis, reverse, inclusive)


def cummin(x: Tensor, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True) -> Tensor:
    """Return the smallest up to each element of an axis, NaN from the first NaN on, in half types too; see ``cumsum``.

    Exclusive results begin with inf, or the largest number of an integer type.
    """
    return _scanned((x,), "cummin", "min", axis, reverse, inclusive)


def logcumsumexp(x: Tensor, axis: int | None = None, *, reverse: bool = False, inclusive: bool = True) -> Tensor:
    """Return ``log(exp(x[0]) + … + exp(x[i]))`` without overflow; see ``cumsum``. Integers give float32."""
    return _scanned((x,), "logcumsumexp", "logsumexp", axis, reverse, inclusive)
