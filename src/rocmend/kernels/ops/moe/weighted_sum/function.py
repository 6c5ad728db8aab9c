"""The public function."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.floats import BYTES
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.moe.weighted_sum import OP, Problem
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation


def weighted_sum(x: Tensor, weights: Tensor) -> Tensor:
    """Compute ``(x * weights[..., None]).sum(-2)``.

    Args:
        x: ``[..., rows, size]``, float32, float16 or bfloat16, of any strides.
        weights: ``[..., rows]`` of the same type.

    Returns:
        ``[..., size]``, contiguous, of the type of x. Products are rounded to it, and added up in fp32.

    Raises:
        UsageError: Shapes or types that do not fit, or a gradient is asked for.

    Cost: reads x once, in one launch up to 32 rows.
    """
    if torch.is_grad_enabled() and (x.requires_grad or weights.requires_grad):
        raise UsageError(
            "weighted_sum", "expected x and weights without a gradient.", next_step="Train with torch.matmul."
        )
    out: Tensor = _summed((x, weights))
    return out


@cached_plan
def _summed(x: Tensor, weights: Tensor) -> Callable[..., Tensor]:
    """Check the arguments and plan calls with such tensors."""
    if x.dim() < 2 or weights.shape != x.shape[:-1]:
        raise UsageError(
            "weighted_sum", f"expected weights {tuple(x.shape[:-1])} for x {tuple(x.shape)}, got "
            f"{tuple(weights.shape)}.",
        )  # fmt: skip
    if NAMES.get(x.dtype) not in BYTES or weights.dtype != x.dtype:
        raise UsageError("weighted_sum", f"expected one type of {', '.join(BYTES)}, got {x.dtype} and {weights.dtype}.")
    rows, size = x.shape[-2:]
    problem = Problem(NAMES[x.dtype], x.shape[:-2].numel(), rows, size)
    return plan_of(implementation(OP, x.device, problem), x, weights)
