"""The public function."""

from __future__ import annotations

from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_mask, check_no_gradient, check_shape
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.recurrence.gated_delta import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


def gated_delta(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, *, state: Tensor | None = None, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Run ``S = g S; S += β (v - S k) kᵀ; y = S q`` over time.

    Args:
        q: ``[B, T, Hk, Dk]``, float32, float16 or bfloat16, normalised and scaled by the caller.
        k: ``[B, T, Hk, Dk]`` of the same type, normalised.
        v: ``[B, T, Hv, Dv]`` of the same type, Hv a multiple of Hk.
        g: ``[B, T, Hv]``, or ``[B, T, Hv, Dk]`` for a gate of each key channel: the decay, 0 to 1; any float.
        beta: ``[B, T, Hv]``, any float type.
        state: ``[B, Hv, Dv, Dk]``, zeros where None.
        mask: ``[B, T]`` bool; a step that is False leaves the state and gives 0.

    Returns:
        ``y`` ``[B, T, Hv, Dv]`` of the type of v, and the new state in float32.

    Raises:
        UsageError: Shapes or types that do not fit, or a gradient is asked for.

    Cost: reads q, k, v and the state once (prefill in chunks: twice), writes y and the state.
    Source: https://arxiv.org/abs/2412.06464
    """
    return _steps((q, k, v, g, beta, state, mask))


@cached
def _steps(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor | None, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Check arguments and compute."""
    op = OP.name
    if not q.dim() == k.dim() == v.dim() == 4 or q.shape != k.shape or v.shape[:2] != k.shape[:2]:
        shapes = f"{tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}"
        raise UsageError(op, f"expected q and k [B, T, Hk, Dk] and v [B, T, Hv, Dv], got {shapes}.")
    if not q.dtype == k.dtype == v.dtype:
        raise UsageError(op, f"expected q, k and v of one type, got {q.dtype}, {k.dtype} and {v.dtype}.")
    (batch, times, key_heads, key_dim), (heads, value_dim) = k.shape, v.shape[2:]
    if key_heads == 0 or heads % key_heads:
        raise UsageError(op, f"expected value heads in multiples of key heads, got {heads} and {key_heads}.")
    gates = (batch, times, heads)
    check_shape(op, gates if g.dim() == 3 else (*gates, key_dim), g=g)
    check_shape(op, gates, beta=beta)
    check_shape(op, (batch, heads, value_dim, key_dim), state=state)
    check_mask(op, mask, (batch, times))
    check_no_gradient(
        op, "tensors", q, k, v, g, beta, why="The gated delta rule has no backward here yet.",
        next_step="Call it under torch.no_grad(), or train with the reference.",
    )  # fmt: skip
    problem = Problem(NAMES[v.dtype], batch, times, key_heads, heads, key_dim, value_dim, g.dim() == 4)
    return implementation(OP, v.device, problem)(q, k, v, g, beta, state=state, mask=mask)
