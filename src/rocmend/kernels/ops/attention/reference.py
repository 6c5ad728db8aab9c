"""The references: every score in memory; gradients by torch's autograd."""

from __future__ import annotations

import torch


def scores(
    q: torch.Tensor,
    k: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | str | None,
    soft_cap: float | None,
    window: int | None,
) -> torch.Tensor:
    """Return ``[B, H, L, S]``; -inf where a query does not see a key."""
    queries, keys = q.shape[2], k.shape[2]
    found = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).transpose(-1, -2) * scale
    if soft_cap is not None:
        found = torch.tanh(found / soft_cap) * soft_cap
    if isinstance(mask, torch.Tensor):
        return found.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else found + mask.to(found.dtype)
    if mask == "causal":
        at = torch.arange(queries, device=q.device)[:, None] + (keys - queries)
        key = torch.arange(keys, device=q.device)[None, :]
        hidden = key > at
        if window is not None:
            hidden = hidden | (key <= at - window)
        found = found.masked_fill(hidden, float("-inf"))
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
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Compute attention; half types in fp32, rounded once at the end. See ``function.scaled_dot_product_attention``."""
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    group = q.shape[1] // k.shape[1]
    s = scores(q.to(wide), k.to(wide), scale=scale, mask=mask, soft_cap=soft_cap, window=window)
    batch, heads, queries, keys = s.shape
    sink = s.new_full((heads,), float("-inf")) if sinks is None else sinks.to(wide)
    s = torch.cat((s, sink[None, :, None, None].expand(batch, heads, queries, 1)), -1)
    # Rows in which nothing is seen: no subtraction of infinities, weights of 0.
    top = s.detach().amax(-1, keepdim=True)
    p = torch.exp(s - top.masked_fill(top == float("-inf"), 0.0))
    total = p.sum(-1, keepdim=True)
    weights = p / torch.where(total == 0, 1.0, total)
    out = (weights[..., :keys] @ v.to(wide).repeat_interleave(group, 1)).to(q.dtype)
    if not return_lse:
        return out
    lse = torch.where(top == float("-inf"), top, top + total.log())
    return out, lse.squeeze(-1)


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
    """Differentiate ``attention`` with autograd; ``out`` and ``lse`` are not needed here."""
    del out, lse
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
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
        assert isinstance(made, torch.Tensor)
        found = torch.autograd.grad(made, leaves, grad.to(wide))
    dq, dk, dv = (one.to(like.dtype) for one, like in zip(found[:3], (q, k, v), strict=True))
    return dq, dk, dv, found[3].to(sinks.dtype) if sinks is not None else None
