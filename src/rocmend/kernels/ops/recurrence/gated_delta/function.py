"""The public function."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.recurrence.gated_delta import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation

OP_NAME = "gated_delta"


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
    out: tuple[Tensor, Tensor] = _steps((q, k, v, g, beta, state, mask))
    return out


@cached
def _steps(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor | None, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Check arguments and compute."""
    _check(q, k, v, g, beta, state, mask)
    problem = Problem(
        NAMES[v.dtype], k.shape[0], k.shape[1], k.shape[2], v.shape[2], k.shape[3], v.shape[3], g.dim() == 4
    )
    out: tuple[Tensor, Tensor] = implementation(OP, v.device, problem)(q, k, v, g, beta, state=state, mask=mask)
    return out


def _check(q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor | None, mask: Tensor | None) -> None:
    if not q.dim() == k.dim() == v.dim() == 4 or q.shape != k.shape or v.shape[:2] != k.shape[:2]:
        shapes = f"{tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}"
        raise UsageError(OP_NAME, f"expected q and k [B, T, Hk, Dk] and v [B, T, Hv, Dv], got {shapes}.")
    if not q.dtype == k.dtype == v.dtype:
        raise UsageError(OP_NAME, f"expected q, k and v of one type, got {q.dtype}, {k.dtype} and {v.dtype}.")
    if k.shape[2] == 0 or v.shape[2] % k.shape[2]:
        raise UsageError(OP_NAME, f"expected value heads in multiples of key heads, got {v.shape[2]} and {k.shape[2]}.")
    if tuple(g.shape) not in (tuple(v.shape[:3]), (*v.shape[:3], k.shape[3])) or beta.shape != v.shape[:3]:
        raise UsageError(
            OP_NAME,
            f"expected g {tuple(v.shape[:3])} with or without an axis of {k.shape[3]} and beta {tuple(v.shape[:3])}, "
            f"got {tuple(g.shape)} and {tuple(beta.shape)}.",
        )
    wanted = (v.shape[0], v.shape[2], v.shape[3], k.shape[3])
    if state is not None and tuple(state.shape) != wanted:
        raise UsageError(OP_NAME, f"expected a state of shape {wanted}, got {tuple(state.shape)}.")
    if mask is not None and (mask.shape != k.shape[:2] or mask.dtype != torch.bool):
        raise UsageError(
            OP_NAME, f"expected a bool mask of shape {tuple(k.shape[:2])}, got {tuple(mask.shape)}, {mask.dtype}."
        )
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (q, k, v, g, beta)):
        raise UsageError(
            OP_NAME,
            "expected tensors without a gradient.",
            why="The gated delta rule has no backward here yet.",
            next_step="Call it under torch.no_grad(), or train with the reference.",
        )
