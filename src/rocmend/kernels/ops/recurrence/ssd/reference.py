"""The reference: step by step."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.common.reference import computed_in


def ssd_scan(
    x: Tensor, dt: Tensor, a_log: Tensor, b: Tensor, c: Tensor, d: Tensor, dt_bias: Tensor, *,
    state: Tensor | None = None, time_step_limit: tuple[float, float] = (0.001, 100.0), mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Run Mamba-2's recurrence; half types are computed in fp32."""
    wide = computed_in(x.dtype)
    batch, times, heads, width = x.shape
    groups, size = b.shape[2:]
    keys, queries = (tensor.to(wide).repeat_interleave(heads // groups, 2) for tensor in (b, c))
    values = x.to(wide)
    step = torch.nn.functional.softplus(dt.to(wide) + dt_bias.to(wide)).clamp(*time_step_limit)
    decay = torch.exp(-torch.exp(a_log.to(wide)) * step)
    now = torch.zeros(batch, heads, width, size, dtype=wide, device=x.device) if state is None else state.to(wide)
    rows = []
    for t in range(times):
        change = (step[:, t, :, None] * values[:, t])[..., None] * keys[:, t, :, None, :]
        new = now * decay[:, t, :, None, None] + change
        row = (new * queries[:, t, :, None, :]).sum(-1) + values[:, t] * d.to(wide)[:, None]
        if mask is not None:
            seen = mask[:, t, None, None]
            row = torch.where(seen, row, 0.0)
            new = torch.where(seen[..., None], new, now)
        rows.append(row)
        now = new
    y = torch.stack(rows, 1) if rows else values.new_zeros(batch, 0, heads, width)
    return y.to(x.dtype), now
