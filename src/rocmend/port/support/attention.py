"""Attention with flash-attn's interface on whatever the machine has.

Three tiers, of which the first that serves is taken, once for each kind of problem, and logged:

1. the vendor's library: aiter, or flash-attn built for ROCm;
2. PyTorch's ``scaled_dot_product_attention``;
3. plain products in float32 or better.

Layouts and meanings are flash-attn's: queries, keys and values are (batch, sequence, heads, head size), with a multiple
of the keys' heads for queries; ``causal`` and windows are aligned to the last key, so that query i sees the keys up to
i + keys - queries; a query that sees no key gives zeros.

While ``torch.compile`` traces, nothing is tried or logged: the second tier is taken, or the third for a softcap.
"""

from __future__ import annotations

import importlib
import logging
import math
import sys
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  its usual name

logger = logging.getLogger(__name__)

_VENDORS = ("aiter", "flash_attn")
_chosen: dict[tuple[Any, ...], str] = {}
_forced: str | None = None


def prefer(tier: str | None) -> None:
    """Take one tier for everything: ``vendor``, ``sdpa`` or ``eager``; None for the first that serves."""
    global _forced
    if tier not in (None, "vendor", "sdpa", "eager"):
        raise ValueError(f"prefer: expected vendor, sdpa, eager or None, got {tier!r}.")
    _forced = tier


def flash_attn_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Sequence[int | None] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
) -> torch.Tensor:
    """Return softmax(scale * q @ k.T + bias) @ v.

    Args:
        q: Queries, (batch, queries, heads, head size).
        k: Keys, (batch, keys, heads of keys, head size).
        v: Values, like the keys.
        dropout_p: The part of the probabilities that is dropped.
        softmax_scale: The factor of the products; 1 / sqrt(head size) where it is None.
        causal: Whether a query sees no key behind its own place.
        window_size: How many keys a query sees before and behind its own place; -1 for all.
        softcap: Products are limited to this by tanh; 0 for not at all.
        alibi_slopes: float32, (heads,) or (batch, heads): products lose slope * distance.
        deterministic: For the vendor's library.
        return_attn_probs: Not supported.

    Returns:
        (batch, queries, heads, head size), in the type of the queries.
    """
    _check(q, k, v, return_attn_probs)
    scale = 1.0 / math.sqrt(q.shape[-1]) if softmax_scale is None else softmax_scale
    options = _Options(dropout_p, scale, causal, window_size, softcap, alibi_slopes, deterministic)
    return _run(q, k, v, options, "flash_attn_func", (q, k, v), None)


def flash_attn_varlen_func(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    cu_seqlens_q: torch.Tensor,
    cu_seqlens_k: torch.Tensor,
    max_seqlen_q: int,
    max_seqlen_k: int,
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Sequence[int | None] = (-1, -1),
    softcap: float = 0.0,
    alibi_slopes: torch.Tensor | None = None,
    deterministic: bool = False,
    return_attn_probs: bool = False,
    block_table: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the attention of sequences that are packed one behind the other, without padding.

    Args:
        q: Queries, (all queries, heads, head size).
        k: Keys, (all keys, heads of keys, head size).
        v: Values, like the keys.
        cu_seqlens_q: int32, (sequences + 1,): where each sequence's queries begin, and the end.
        cu_seqlens_k: The same for keys.
        max_seqlen_q: The most queries of a sequence.
        max_seqlen_k: The most keys of a sequence.
        dropout_p: As for ``flash_attn_func``.
        softmax_scale: As for ``flash_attn_func``.
        causal: As for ``flash_attn_func``.
        window_size: As for ``flash_attn_func``.
        softcap: As for ``flash_attn_func``.
        alibi_slopes: As for ``flash_attn_func``.
        deterministic: As for ``flash_attn_func``.
        return_attn_probs: Not supported.
        block_table: Not supported.

    Returns:
        (all queries, heads, head size), in the type of the queries.
    """
    if block_table is not None:
        raise NotImplementedError("flash_attn_varlen_func: paged keys and values are not supported here.")
    _check(q, k, v, return_attn_probs)
    scale = 1.0 / math.sqrt(q.shape[-1]) if softmax_scale is None else softmax_scale
    options = _Options(dropout_p, scale, causal, window_size, softcap, alibi_slopes, deterministic)
    packed = (q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k)
    return _run(q, k, v, options, "flash_attn_varlen_func", packed, packed[3:])


def flash_attn_qkvpacked_func(qkv: torch.Tensor, *options: Any, **named: Any) -> torch.Tensor:
    """Return the attention of (batch, sequence, 3, heads, head size); options as of ``flash_attn_func``."""
    q, k, v = qkv.unbind(-3)
    return flash_attn_func(q, k, v, *options, **named)


def flash_attn_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, *options: Any, **named: Any) -> torch.Tensor:
    """Return the attention of queries to (batch, keys, 2, heads of keys, head size)."""
    k, v = kv.unbind(-3)
    return flash_attn_func(q, k, v, *options, **named)


def flash_attn_varlen_qkvpacked_func(
    qkv: torch.Tensor, cu_seqlens: torch.Tensor, max_seqlen: int, *options: Any, **named: Any
) -> torch.Tensor:
    """Return the attention of packed sequences, (all, 3, heads, head size)."""
    q, k, v = qkv.unbind(-3)
    return flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, *options, **named)


def flash_attn_varlen_kvpacked_func(q: torch.Tensor, kv: torch.Tensor, *options: Any, **named: Any) -> torch.Tensor:
    """Return the attention of packed queries to packed (all keys, 2, heads of keys, head size)."""
    k, v = kv.unbind(-3)
    return flash_attn_varlen_func(q, k, v, *options, **named)


class _Options:
    def __init__(
        self,
        dropout_p: float,
        scale: float,
        causal: bool,
        window_size: Sequence[int | None],
        softcap: float,
        alibi_slopes: torch.Tensor | None,
        deterministic: bool,
    ) -> None:
        self.dropout_p = dropout_p
        self.scale = scale
        left, right = (-1 if side is None else side for side in tuple(window_size)[:2])
        self.left = left if left >= 0 else None
        self.right = 0 if causal else right if right >= 0 else None
        self.softcap = softcap
        self.alibi_slopes = alibi_slopes
        self.causal = causal
        self.deterministic = deterministic

    def for_vendor(self) -> dict[str, Any]:
        named: dict[str, Any] = {"dropout_p": self.dropout_p, "softmax_scale": self.scale, "causal": self.causal}
        if self.left is not None or (self.right is not None and not self.causal):
            named["window_size"] = tuple(-1 if side is None else side for side in (self.left, self.right))
        if self.softcap:
            named["softcap"] = self.softcap
        if self.alibi_slopes is not None:
            named["alibi_slopes"] = self.alibi_slopes
        if self.deterministic:
            named["deterministic"] = True
        return named


def _check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, return_attn_probs: bool) -> None:
    if return_attn_probs:
        raise NotImplementedError("flash_attn: probabilities are not returned here; compute them from q and k.")
    if k.shape[:-1] != v.shape[:-1] or q.shape[-1] != k.shape[-1] or q.dim() != k.dim():
        raise ValueError(f"flash_attn: q {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)} do not fit.")
    if q.shape[-2] % k.shape[-2]:
        raise ValueError(f"flash_attn: {q.shape[-2]} heads of queries are not a multiple of {k.shape[-2]} of keys.")


def _run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    options: _Options,
    name: str,
    arguments: tuple[Any, ...],
    lengths: tuple[Any, ...] | None,
) -> torch.Tensor:
    """Take the first tier that serves this kind of problem; what was taken is remembered, and tried first again."""

    def by(tier: str) -> torch.Tensor:
        if tier == "vendor":
            return _by_vendor(name, arguments, options, q)
        if lengths is None:
            return _dense(q, k, v, options, tier, None, None)
        return _packed(q, k, v, options, tier, *lengths)

    if _forced:
        return by(_forced)
    if torch.compiler.is_compiling():
        return by("eager" if options.softcap else "sdpa")
    kind = (
        name,
        q.device.type,
        q.dtype,
        q.shape[-1],
        v.shape[-1],
        q.requires_grad,
        tuple(sorted(options.for_vendor())),
    )
    before = _chosen.get(kind)
    reasons = []
    for tier in sorted(("vendor", "sdpa", "eager"), key=lambda one: one != before):
        try:
            out = by(tier)
        except (ImportError, NotImplementedError, OSError, RuntimeError, TypeError) as error:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            reasons.append(f"{tier}: {error}")
            continue
        if tier != before:
            _chosen[kind] = tier
            logger.info("attention in %s on %s: %s%s", q.dtype, q.device.type, tier,
                        f" ({'; '.join(reasons)})" if reasons else "")  # fmt: skip
        return out
    raise RuntimeError(f"flash_attn: no implementation supports this problem. {'; '.join(reasons)}")


def _by_vendor(name: str, arguments: tuple[Any, ...], options: _Options, q: torch.Tensor) -> torch.Tensor:
    if q.device.type != "cuda" or q.dtype not in (torch.float16, torch.bfloat16):
        raise NotImplementedError("the vendor libraries support float16 and bfloat16 on a GPU")
    reasons = []
    for vendor in _VENDORS:
        try:
            function = getattr(importlib.import_module(vendor), name)
        except (AttributeError, ImportError, OSError, RuntimeError) as error:
            reasons.append(f"{vendor}: {error}")
            continue
        out: torch.Tensor = function(*arguments, **options.for_vendor())
        return out
    raise ImportError("; ".join(reasons))


def _dense(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    options: _Options,
    tier: str,
    queries: torch.Tensor | None,
    keys: torch.Tensor | None,
) -> torch.Tensor:
    """Attend in (batch, sequence, heads, size), with the real lengths of each sequence where they differ."""
    q, k, v = (tensor.transpose(1, 2) for tensor in (q, k, v))
    groups = q.shape[1] // k.shape[1]
    if groups > 1:
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    mask, blind = _mask(q, k, options, queries, keys)
    bias = _alibi(q, k, options, queries, keys)
    out = (_sdpa if tier == "sdpa" else _eager)(q, k, v, options, mask, bias)
    if blind is not None:
        out = out.masked_fill(blind, 0.0)
    return out.transpose(1, 2)


def _offsets(q: torch.Tensor, k: torch.Tensor, queries: torch.Tensor | None, keys: torch.Tensor | None) -> torch.Tensor:
    """Return the distance of each key from each query's own place: (batch or 1, 1, queries, keys)."""
    rows = torch.arange(q.shape[2], device=q.device)[:, None]
    columns = torch.arange(k.shape[2], device=q.device)[None, :]
    if queries is None or keys is None:
        return (columns - rows - (k.shape[2] - q.shape[2]))[None, None]
    return columns - rows - (keys - queries)[:, None, None, None]


def _mask(
    q: torch.Tensor, k: torch.Tensor, options: _Options, queries: torch.Tensor | None, keys: torch.Tensor | None
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return which keys each query sees, and which queries see none; None where all are seen."""
    if options.left is None and options.right is None and queries is None:
        return None, None
    distance = _offsets(q, k, queries, keys)
    seen = torch.ones_like(distance, dtype=torch.bool)
    if options.right is not None:
        seen &= distance <= options.right
    if options.left is not None:
        seen &= distance >= -options.left
    if keys is not None:
        seen = seen & (torch.arange(k.shape[2], device=q.device) < keys[:, None, None, None])
    blind = ~seen.any(-1, keepdim=True)
    return seen | blind, blind  # a row without a key would be NaN, and so would its gradient


def _alibi(
    q: torch.Tensor, k: torch.Tensor, options: _Options, queries: torch.Tensor | None, keys: torch.Tensor | None
) -> torch.Tensor | None:
    if options.alibi_slopes is None:
        return None
    slopes = options.alibi_slopes.float()
    slopes = slopes[None, :, None, None] if slopes.dim() == 1 else slopes[:, :, None, None]
    return -slopes * _offsets(q, k, queries, keys).abs()


def _sdpa(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    options: _Options,
    mask: torch.Tensor | None,
    bias: torch.Tensor | None,
) -> torch.Tensor:
    if options.softcap:
        raise NotImplementedError("scaled_dot_product_attention has no softcap")
    causal = mask is not None and bias is None and options.causal and options.left is None and mask.shape[0] == 1
    if causal and q.shape[2] == k.shape[2]:
        return F.scaled_dot_product_attention(q, k, v, None, options.dropout_p, is_causal=True, scale=options.scale)
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, -math.inf)
        mask = mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, mask, options.dropout_p, scale=options.scale)


def _eager(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    options: _Options,
    mask: torch.Tensor | None,
    bias: torch.Tensor | None,
) -> torch.Tensor:
    wide = torch.promote_types(q.dtype, torch.float32)
    products = (q.to(wide) @ k.to(wide).transpose(-2, -1)) * options.scale
    if options.softcap:
        products = options.softcap * torch.tanh(products / options.softcap)
    if bias is not None:
        products = products + bias
    if mask is not None:
        products = products.masked_fill(~mask, -math.inf)
    weights = F.dropout(products.softmax(-1), options.dropout_p) if options.dropout_p else products.softmax(-1)
    return (weights @ v.to(wide)).to(q.dtype)


def _packed(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    options: _Options,
    tier: str,
    cu_q: torch.Tensor,
    cu_k: torch.Tensor,
    max_q: int,
    max_k: int,
) -> torch.Tensor:
    """Pad the sequences, attend, and pack the results again, without asking the device for a length."""
    cu_q, cu_k = cu_q.to(torch.int64), cu_k.to(torch.int64)
    queries, keys = cu_q[1:] - cu_q[:-1], cu_k[1:] - cu_k[:-1]
    out = _dense(
        _padded(q, cu_q, max_q), _padded(k, cu_k, max_k), _padded(v, cu_k, max_k), options, tier, queries, keys
    )
    places = torch.arange(q.shape[0], device=q.device)
    sequence = torch.searchsorted(cu_q[1:], places, right=True).clamp_(max=queries.shape[0] - 1)
    return out[sequence, places - cu_q[sequence]]


def _padded(tensor: torch.Tensor, cu: torch.Tensor, longest: int) -> torch.Tensor:
    places = cu[:-1, None] + torch.arange(longest, device=tensor.device)
    return tensor[places.clamp_(max=max(tensor.shape[0] - 1, 0))]


flash_attn = sys.modules[__name__]
