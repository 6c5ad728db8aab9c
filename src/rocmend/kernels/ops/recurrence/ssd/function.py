"""The public function."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.recurrence.ssd import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation

OP_NAME = "ssd_scan"


def ssd_scan(
    x: Tensor,
    dt: Tensor,
    a_log: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor,
    dt_bias: Tensor,
    *,
    state: Tensor | None = None,
    time_step_limit: tuple[float, float] = (0.001, 100.0),
    mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Run ``S = exp(-exp(A_log) dt) S + dt x Bᵀ; y = S C + D x`` over time, ``dt = clip(softplus(dt + dt_bias))``.

    Args:
        x: ``[B, T, H, P]``, float32, float16 or bfloat16.
        dt: ``[B, T, H]``, any float type.
        a_log: ``[H]``.
        b: ``[B, T, G, N]`` of the type of x, H a multiple of G.
        c: ``[B, T, G, N]`` of the type of x.
        d: ``[H]``.
        dt_bias: ``[H]``.
        state: ``[B, H, P, N]``, zeros where None.
        time_step_limit: Least and largest dt.
        mask: ``[B, T]`` bool; a step that is False leaves the state and gives 0.

    Returns:
        ``y`` ``[B, T, H, P]`` of the type of x, and the new state in float32.

    Raises:
        UsageError: Shapes or types that do not fit, or a gradient is asked for.

    Cost: reads x, B, C and the state once, writes y and the state.
    Source: https://arxiv.org/abs/2405.21060
    """
    low, high = time_step_limit
    out: tuple[Tensor, Tensor] = _steps((x, dt, a_log, b, c, d, dt_bias, state, mask), (float(low), float(high)))
    return out


@cached
def _steps(
    x: Tensor,
    dt: Tensor,
    a_log: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor,
    dt_bias: Tensor,
    state: Tensor | None,
    mask: Tensor | None,
    time_step_limit: tuple[float, float],
) -> tuple[Tensor, Tensor]:
    """Check arguments and compute."""
    _check(x, dt, b, c, (a_log, d, dt_bias), state, mask)
    problem = Problem(NAMES[x.dtype], x.shape[0], x.shape[1], x.shape[2], b.shape[2], x.shape[3], b.shape[3])
    out: tuple[Tensor, Tensor] = implementation(OP, x.device, problem)(
        x, dt, a_log, b, c, d, dt_bias, state=state, time_step_limit=time_step_limit, mask=mask
    )
    return out


def _check(
    x: Tensor, dt: Tensor, b: Tensor, c: Tensor, vectors: tuple[Tensor, ...], state: Tensor | None, mask: Tensor | None
) -> None:
    if x.dim() != 4 or b.dim() != 4 or b.shape != c.shape or b.shape[:2] != x.shape[:2]:
        shapes = f"{tuple(x.shape)}, {tuple(b.shape)} and {tuple(c.shape)}"
        raise UsageError(OP_NAME, f"expected x [B, T, H, P], b and c [B, T, G, N], got {shapes}.")
    if not x.dtype == b.dtype == c.dtype:
        raise UsageError(OP_NAME, f"expected x, b and c of one type, got {x.dtype}, {b.dtype} and {c.dtype}.")
    heads = x.shape[2]
    if b.shape[2] == 0 or heads % b.shape[2]:
        raise UsageError(OP_NAME, f"expected heads in multiples of groups, got {heads} and {b.shape[2]}.")
    if dt.shape != x.shape[:3]:
        raise UsageError(OP_NAME, f"expected dt of shape {tuple(x.shape[:3])}, got {tuple(dt.shape)}.")
    if any(tuple(vector.shape) != (heads,) for vector in vectors):
        raise UsageError(OP_NAME, f"expected a_log, d and dt_bias of shape ({heads},).")
    wanted = (x.shape[0], heads, x.shape[3], b.shape[3])
    if state is not None and tuple(state.shape) != wanted:
        raise UsageError(OP_NAME, f"expected a state of shape {wanted}, got {tuple(state.shape)}.")
    if mask is not None and (mask.shape != x.shape[:2] or mask.dtype != torch.bool):
        raise UsageError(OP_NAME, f"expected a bool mask of shape {tuple(x.shape[:2])}, got {tuple(mask.shape)}.")
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (x, dt, b, c, *vectors)):
        raise UsageError(
            OP_NAME,
            "expected tensors without a gradient.",
            why="Mamba-2's recurrence has no backward here yet.",
            next_step="Call it under torch.no_grad(), or train with the reference.",
        )
