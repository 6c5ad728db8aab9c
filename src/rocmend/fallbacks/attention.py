"""Attention in three tiers: a vendor's library, PyTorch's own, and plain float arithmetic."""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import Any

import torch
from torch import Tensor

from rocmend.fallbacks.dispatch import call_original

TIERS = ("vendor", "sdpa", "eager")
VENDOR_MODULES = ("aiter", "flash_attn")
"""Libraries with ``flash_attn_func`` on tensors ``(batch, length, heads, head_dim)``, in order of preference."""

_VENDOR_DTYPES = frozenset({torch.float16, torch.bfloat16})
_VENDOR_LARGEST_HEAD = 256


def vendor_name() -> str | None:
    """Return the vendor library that is installed, or None."""
    return next((name for name in VENDOR_MODULES if importlib.util.find_spec(name) is not None), None)


def vendor_takes(query: Tensor, key: Tensor, mask: Tensor | None, *, causal: bool) -> bool:
    """Whether a vendor's library computes this at all: what it cannot express goes to the next tier.

    Their causal mask is aligned at the last key where lengths differ, PyTorch's at the first.
    """
    return (
        query.dtype in _VENDOR_DTYPES
        and query.ndim == 4
        and mask is None
        and query.shape[-1] <= _VENDOR_LARGEST_HEAD
        and (not causal or query.shape[-2] == key.shape[-2])
        and type(query) in {Tensor, torch.nn.Parameter}  # not while a graph is traced
    )


def vendor(  # noqa: PLR0913  PyTorch's own arguments
    query: Tensor, key: Tensor, value: Tensor, *, dropout_p: float, is_causal: bool, scale: float | None
) -> Tensor:
    """Return attention through the installed vendor library; arguments as for PyTorch's function."""
    module: Any = importlib.import_module(vendor_name() or VENDOR_MODULES[-1])
    turned = (tensor.transpose(1, 2) for tensor in (query, key, value))
    found = module.flash_attn_func(*turned, dropout_p=dropout_p, softmax_scale=scale, causal=is_causal)
    result: Tensor = found[0] if isinstance(found, tuple) else found
    return result.transpose(1, 2)


def sdpa(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Tensor:
    """Return attention by PyTorch's own ``scaled_dot_product_attention``, whatever stands over it."""
    operator = torch.ops.aten.scaled_dot_product_attention.default
    result: Tensor = call_original(operator, "CompositeImplicitAutograd", query, key, value, *rest, **options)
    return result


def eager(  # noqa: PLR0913,PLR0917  PyTorch's own signature
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return ``softmax(q k^T * scale + mask) v`` by matrix products and a softmax in float32 (float64 for float64).

    Args:
        query: ``(…, heads, length, head_dim)``.
        key: ``(…, key_heads, keys, head_dim)``.
        value: ``(…, key_heads, keys, value_dim)``.
        attn_mask: Boolean (True takes part) or added to the scores; broadcast to ``(…, heads, length, keys)``.
        dropout_p: Probability with which a weight is dropped.
        is_causal: Query i sees keys up to i.
        scale: Factor of the scores; None for ``1 / sqrt(head_dim)``.
        enable_gqa: Heads share keys and values in groups.

    Returns:
        ``(…, heads, length, value_dim)`` in the query's dtype; zeros where a query sees no key.
    """
    work = torch.float64 if query.dtype is torch.float64 else torch.float32
    q, k, v = (tensor.to(work) for tensor in (query, key, value))
    if enable_gqa and q.shape[-3] != k.shape[-3]:
        k, v = (tensor.repeat_interleave(q.shape[-3] // tensor.shape[-3], -3) for tensor in (k, v))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = (q * factor) @ k.transpose(-2, -1)
    if is_causal:
        causal = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = scores.masked_fill(~causal, -math.inf)
    if attn_mask is not None:
        added = attn_mask.to(work) if attn_mask.dtype is not torch.bool else None
        scores = scores + added if added is not None else scores.masked_fill(~attn_mask, -math.inf)
    blind = (scores == -math.inf).all(-1, keepdim=True)
    weights = scores.masked_fill(blind, 0.0).softmax(-1).masked_fill(blind, 0.0)
    if dropout_p > 0:
        weights = torch.nn.functional.dropout(weights, dropout_p)
    return (weights @ v).to(query.dtype)
