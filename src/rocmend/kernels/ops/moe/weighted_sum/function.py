"""The public function."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_no_gradient
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
    check_no_gradient("weighted_sum", "x and weights", x, weights, next_step="Train with torch.matmul.")
    return _summed((x, weights))


@cached_plan
def _summed(x: Tensor, weights: Tensor) -> Callable[..., Tensor]:
    """Check the arguments and plan calls with such tensors."""
    if x.dim() < 2 or weights.shape != x.shape[:-1]:
        wanted, got = tuple(x.shape[:-1]), tuple(weights.shape)
        raise UsageError("weighted_sum", f"expected weights {wanted} for x {tuple(x.shape)}, got {got}.")
    if NAMES.get(x.dtype) not in BYTES or weights.dtype != x.dtype:
        raise UsageError("weighted_sum", f"expected one type of {', '.join(BYTES)}, got {x.dtype} and {weights.dtype}.")
    rows, size = x.shape[-2:]
    problem = Problem(NAMES[x.dtype], x.shape[:-2].numel(), rows, size)
    return plan_of(implementation(OP, x.device, problem), x, weights)
