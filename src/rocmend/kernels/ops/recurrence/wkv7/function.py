"""The public function."""

from __future__ import annotations

from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_no_gradient, check_shape
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.recurrence.wkv7 import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


def wkv7(
    r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, *, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Run ``S = S diag(w) + v kᵀ + (S a) bᵀ; y = S r`` over time.

    Args:
        r: ``[B, T, H, D]``, float32, float16 or bfloat16.
        w: The decay itself, of the shape and type of r.
        k: As r.
        v: As r.
        a: As r.
        b: As r.
        state: ``[B, H, D, D]`` (values by keys), zeros where None.

    Returns:
        ``y`` ``[B, T, H, D]`` of the type of r, and the new state in float32.

    Raises:
        UsageError: Shapes or types that do not fit, or a gradient is asked for.

    Cost: reads the six inputs and the state once, writes y and the state; steps follow each other.
    Source: https://arxiv.org/abs/2503.14456
    """
    return _steps((r, w, k, v, a, b, state))


@cached
def _steps(
    r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Check arguments and compute."""
    six = (r, w, k, v, a, b)
    if r.dim() != 4 or any(tensor.shape != r.shape or tensor.dtype != r.dtype for tensor in six):
        raise UsageError("wkv7", f"expected six tensors [B, T, H, D] of one type, got r {tuple(r.shape)}, {r.dtype}.")
    check_shape("wkv7", (r.shape[0], *r.shape[2:], r.shape[3]), state=state)
    check_no_gradient("wkv7", "tensors", *six, why="RWKV-7 has no backward here yet.")
    return implementation(OP, r.device, Problem(NAMES[r.dtype], *r.shape))(*six, state=state)
