"""The reference: step by step."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.common.reference import computed_in


def wkv7(
    r: Tensor, w: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor, *, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Run RWKV-7's recurrence; half types are computed in fp32."""
    wide = computed_in(r.dtype)
    batch, times, heads, dim = r.shape
    rows = [tensor.to(wide) for tensor in (r, w, k, v, a, b)]
    now = torch.zeros(batch, heads, dim, dim, dtype=wide, device=r.device) if state is None else state.to(wide)
    out = []
    for t in range(times):
        rt, wt, kt, vt, at, bt = (row[:, t] for row in rows)
        turned = (now @ at[..., None]) @ bt[..., None, :]
        now = now * wt[..., None, :] + vt[..., None] @ kt[..., None, :] + turned
        out.append((now @ rt[..., None])[..., 0])
    y = torch.stack(out, 1) if out else rows[0].new_zeros(r.shape)
    return y.to(r.dtype), now
