"""The public function."""

from __future__ import annotations

from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_mask, check_no_gradient, check_shape
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.recurrence.ssd import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


def ssd_scan(
    x: Tensor, dt: Tensor, a_log: Tensor, b: Tensor, c: Tensor, d: Tensor, dt_bias: Tensor, *,
    state: Tensor | None = None, time_step_limit: tuple[float, float] = (0.001, 100.0), mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
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
    return _steps((x, dt, a_log, b, c, d, dt_bias, state, mask), (float(low), float(high)))


@cached
def _steps(
    x: Tensor, dt: Tensor, a_log: Tensor, b: Tensor, c: Tensor, d: Tensor, dt_bias: Tensor,
    state: Tensor | None, mask: Tensor | None, time_step_limit: tuple[float, float],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Check arguments and compute."""
    op = "ssd_scan"
    if x.dim() != 4 or b.dim() != 4 or b.shape != c.shape or b.shape[:2] != x.shape[:2]:
        shapes = f"{tuple(x.shape)}, {tuple(b.shape)} and {tuple(c.shape)}"
        raise UsageError(op, f"expected x [B, T, H, P], b and c [B, T, G, N], got {shapes}.")
    if not x.dtype == b.dtype == c.dtype:
        raise UsageError(op, f"expected x, b and c of one type, got {x.dtype}, {b.dtype} and {c.dtype}.")
    (batch, times, heads, width), (groups, size) = x.shape, b.shape[2:]
    if groups == 0 or heads % groups:
        raise UsageError(op, f"expected heads in multiples of groups, got {heads} and {groups}.")
    check_shape(op, x.shape[:3], dt=dt)
    check_shape(op, (heads,), a_log=a_log, d=d, dt_bias=dt_bias)
    check_shape(op, (batch, heads, width, size), state=state)
    check_mask(op, mask, (batch, times))
    check_no_gradient(
        op, "tensors", x, dt, b, c, a_log, d, dt_bias, why="Mamba-2's recurrence has no backward here yet.",
        next_step="Call it under torch.no_grad(), or train with the reference.",
    )  # fmt: skip
    run = implementation(OP, x.device, Problem(NAMES[x.dtype], batch, times, heads, groups, width, size))
    return run(x, dt, a_log, b, c, d, dt_bias, state=state, time_step_limit=time_step_limit, mask=mask)
