"""The reference: step by step."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.common.reference import computed_in


def gated_delta(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, *, state: Tensor | None = None, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Run the gated delta rule; half types are computed in fp32."""
    wide = computed_in(q.dtype)
    batch, times, hk, dk = k.shape
    hv, dv = v.shape[2:]
    queries, keys = (tensor.to(wide).repeat_interleave(hv // hk, 2) for tensor in (q, k))
    values, gate, weight = v.to(wide), g.to(wide), beta.to(wide)
    gate = gate if g.dim() == 4 else gate[..., None]
    now = torch.zeros(batch, hv, dv, dk, dtype=wide, device=v.device) if state is None else state.to(wide)
    rows = []
    for t in range(times):
        decayed = now * gate[:, t, :, None, :]
        change = (values[:, t] - (decayed * keys[:, t, :, None, :]).sum(-1)) * weight[:, t, :, None]
        new = decayed + change[..., None] * keys[:, t, :, None, :]
        row = (new * queries[:, t, :, None, :]).sum(-1)
        if mask is not None:
            seen = mask[:, t, None, None]
            row = torch.where(seen, row, 0.0)
            new = torch.where(seen[..., None], new, now)
        rows.append(row)
        now = new
    y = torch.stack(rows, 1) if rows else values.new_zeros(batch, 0, hv, dv)
    return y.to(v.dtype), now
