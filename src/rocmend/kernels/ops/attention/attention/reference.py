"""The references: every score in memory; gradients by torch's autograd."""

from __future__ import annotations

from typing import Any

import torch

# Scores below this stand for hidden keys: an additive mask may hold the lowest number of float32 or bfloat16.
NOTHING = -1e38


def scores(
    q: torch.Tensor,
    k: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | str | None,
    soft_cap: float | None,
    window: int | None,
) -> torch.Tensor:
    """Return ``[B, H, L, S]``; the lowest finite number where a key is hidden, as in MLX."""
    queries, keys = q.shape[2], k.shape[2]
    found = q @ k.repeat_interleave(q.shape[1] // max(k.shape[1], 1), 1).transpose(-1, -2) * scale
    lowest = torch.finfo(found.dtype).min
    if soft_cap is not None:
        found = torch.tanh(found / soft_cap) * soft_cap
    if isinstance(mask, torch.Tensor):
        return torch.where(mask, found, lowest) if mask.dtype == torch.bool else found + mask.to(found.dtype)
    if mask == "causal":
        at = torch.arange(queries, device=q.device)[:, None] + (keys - queries)
        key = torch.arange(keys, device=q.device)[None, :]
        hidden = key > at
        if window is not None:
            hidden = hidden | (key <= at - window)
        found = torch.where(hidden, lowest, found)
    return found


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | str | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    window: int | None = None,
    return_lse: bool = False,
) -> Any:
    """Compute attention; half types in fp32, rounded once at the end. See ``function.scaled_dot_product_attention``."""
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    group = q.shape[1] // max(k.shape[1], 1)
    s = scores(q.to(wide), k.to(wide), scale=scale, mask=mask, soft_cap=soft_cap, window=window)
    batch, heads, queries, keys = s.shape
    sink = s.new_full((heads,), float("-inf")) if sinks is None else sinks.to(wide)
    s = torch.cat((s, sink[None, :, None, None].expand(batch, heads, queries, 1)), -1)
    if keys == 0:
        out = q.new_zeros((batch, heads, queries, v.shape[3]))
    else:
        values = v.to(wide).repeat_interleave(group, 1)
        out = (torch.softmax(s, -1)[..., :keys] @ values).to(q.dtype)
    if not return_lse:
        return out
    return out, torch.where(s.amax(-1) < NOTHING, float("-inf"), torch.logsumexp(s, -1)).to(wide)


def attention_backward(
    grad: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | str | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    window: int | None = None,
    out: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Differentiate ``attention`` with autograd; queries that see nothing send no gradient back.

    ``out`` and ``lse`` are not needed here.
    """
    del out, lse
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    if 0 in (*q.shape, *v.shape):
        zq, zk, zv = (torch.zeros_like(one, memory_format=torch.contiguous_format) for one in (q, k, v))
        return zq, zk, zv, None if sinks is None else torch.zeros_like(sinks)
    with torch.enable_grad():
        leaves = [one.detach().to(wide).requires_grad_() for one in (q, k, v)]
        if sinks is not None:
            leaves.append(sinks.detach().to(wide).requires_grad_())
        made = attention(
            *leaves[:3],
            scale=scale,
            mask=mask,
            sinks=leaves[3] if sinks is not None else None,
            soft_cap=soft_cap,
            window=window,
        )
        with torch.no_grad():
            s = scores(*leaves[:2], scale=scale, mask=mask, soft_cap=soft_cap, window=window)
            blind = (s < NOTHING).all(-1, keepdim=True)
        found = torch.autograd.grad(made, leaves, torch.where(blind, 0.0, grad.to(wide)))
    dq, dk, dv = (gradient.to(like.dtype) for gradient, like in zip(found[:3], (q, k, v), strict=True))
    return dq, dk, dv, found[3].to(sinks.dtype) if sinks is not None else None
