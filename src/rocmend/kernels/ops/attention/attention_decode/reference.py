"""The reference: scores, softmax and weighted sum, written out."""

from __future__ import annotations

import torch


def attention_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | str | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    window: int | None = None,
    lengths: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend with a few queries to a cache; half types are computed in fp32."""
    dtype = q.dtype
    if dtype in (torch.float16, torch.bfloat16):
        q, k, v = q.float(), k.float(), v.float()
    heads, queries, kv_heads, keys = q.shape[1], q.shape[2], k.shape[1], k.shape[2]
    k, v = (tensor.repeat_interleave(heads // kv_heads, dim=1) for tensor in (k, v))
    scores = (q @ k.transpose(-1, -2)) * scale
    if soft_cap is not None:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    batch = q.shape[0]
    length = torch.full((batch,), keys, device=q.device) if lengths is None else lengths.long().clamp(0, keys)
    key = torch.arange(keys, device=q.device)
    position = (length[:, None] - queries + torch.arange(queries, device=q.device))[:, None, :, None]
    hidden = torch.zeros(batch, 1, queries, keys, dtype=torch.bool, device=q.device)
    if isinstance(mask, str):
        hidden = hidden | (key > position)
    elif mask is not None and mask.dtype == torch.bool:
        hidden = hidden | ~mask
    elif mask is not None:
        scores = scores + mask.to(scores.dtype)
    if window is not None:
        hidden = hidden | (key <= position - window)
    lowest = torch.finfo(scores.dtype).min
    scores = torch.where(hidden, lowest, scores)
    # Keys past the end are not there; hidden ones are, with the lowest score.
    scores = torch.where(key < length[:, None, None, None], scores, float("-inf"))
    if sinks is not None:
        column = sinks.to(scores.dtype)[None, :, None, None].expand(batch, heads, queries, 1)
        weights = torch.softmax(torch.cat([scores, column], -1), -1)[..., :-1]
    else:
        weights = torch.softmax(scores, -1)
    seen = key < length[:, None, None, None]
    # A value past the end may hold anything: zero it, for 0 · NaN is NaN.
    v = torch.where(seen.transpose(-1, -2), v, 0.0)
    out = torch.where((length > 0)[:, None, None, None], weights @ v, 0.0)
    return out.to(dtype)
