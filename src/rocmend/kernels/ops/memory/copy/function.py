"""The public functions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.op import beside
from rocmend.kernels.ops.memory.copy import OP, Problem
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation


def _problem(x: Tensor, to: torch.dtype) -> Problem:
    for dtype in (x.dtype, to):
        if NAMES.get(dtype) not in OP.dtypes:
            raise UsageError("copy", f"expected {', '.join(OP.dtypes)}, got {dtype}.")
    if x.dtype != to and {x.dtype, to} & {torch.complex64, torch.float8_e4m3fn, torch.float8_e5m2}:
        raise UsageError("copy", f"expected a type that is cast by number, got {x.dtype} to {to}.")
    return Problem(NAMES[x.dtype], NAMES[to], x.numel(), x.is_contiguous())


@cached_plan
def _copied(x: Tensor, to: torch.dtype) -> Callable[[Tensor], Tensor]:
    call = plan_of(implementation(OP, x.device, _problem(x, to)), x, to)
    return lambda x: call(x, to)


def copy(x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
    """Copy to a new contiguous tensor, in another type where one is given: any strides, zero ones (broadcast) too.

    Args:
        x: Any shape, strides and type.
        dtype: Type of the copy; None keeps that of ``x``.

    Returns:
        The copy, of the shape of ``x``, contiguous.

    Raises:
        UsageError: A type that cannot be cast.

    Cost: reads and writes each element once, in one launch for up to seven axes that cannot be merged.
    """
    to = dtype or x.dtype
    if needs_gradient(x):
        dtype = x.dtype
        return differentiable(lambda x: (_copied((x,), to), ()), lambda grad: (_copied((grad,), dtype),), x)
    return _copied((x,), to)


def copy_into(out: Tensor, x: Tensor) -> Tensor:
    """Write a tensor, broadcast and cast, into a view of any strides; see ``copy``. No gradient.

    Args:
        out: Where to; its elements must not overlap each other or ``x``.
        x: What broadcasts to the shape of ``out``.

    Returns:
        ``out``.

    Raises:
        UsageError: Shapes that do not broadcast, or a type that cannot be cast.
    """
    try:
        x = x.broadcast_to(out.shape)
    except RuntimeError:
        raise UsageError(
            "copy_into", f"expected x that broadcasts to {tuple(out.shape)}, got {tuple(x.shape)}."
        ) from None
    beside(implementation(OP, x.device, _problem(x, out.dtype)), "copy_into")(out, x)
    return out
