"""``attention`` and ``safe_attention``: the first of three tiers that works on this device."""

from __future__ import annotations

import functools
import logging
from typing import Any

import torch
from torch import Tensor

from rocmend.fallbacks.attention import TIERS, eager, sdpa, vendor, vendor_name, vendor_takes
from rocmend.fallbacks.choice import Choice, choose, try_path
from rocmend.fallbacks.dispatch import Override
from rocmend.fallbacks.handle import Choices, Handle, device_type_of, mode_of
from rocmend.fallbacks.outcomes import Outcome

MODES = ("auto", *TIERS)

log = logging.getLogger("rocmend.fallbacks")


class SafeAttention(Handle):
    """PyTorch's ``scaled_dot_product_attention`` routed by a mode, until restored. A context manager.

    Attributes:
        mode: auto, vendor, sdpa or eager.
        device_type: The type of device whose attention is routed.
    """


def safe_attention(mode: str | None = None, *, device: str | None = None) -> SafeAttention:
    """Route ``scaled_dot_product_attention`` through the first tier that works, from now on or in a ``with`` block.

    Args:
        mode: ``auto`` tries the tiers in order, once a dtype and head size, in a child process with a time limit;
            ``vendor``, ``sdpa`` and ``eager`` name one. None or ``auto`` give way to ``ROCMEND_SAFE_ATTENTION``.
        device: Type of device, ``cuda`` (AMD GPUs too) or ``cpu``; None for the GPU where PyTorch sees one.

    Returns:
        A handle: ``.restore()`` or leaving its ``with`` block puts everything back.

    Raises:
        UsageError: The mode or the device type is not one that there is.
    """
    return SafeAttention(_mode("safe_attention", mode), device_type_of("safe_attention", device))


def attention(  # noqa: PLR0913,PLR0917  PyTorch's own signature
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
    mode: str | None = None,
) -> Tensor:
    """Return attention by the first tier that works here: a vendor's library, PyTorch's own, plain arithmetic.

    The choice is made once for each dtype and head size by trying tiers in a child process, kept, and logged. What a
    vendor's library cannot express (a mask, float32, a causal mask over unequal lengths) goes to the next tier.

    Args:
        query: ``(batch, heads, length, head_dim)``.
        key: ``(batch, key_heads, keys, head_dim)``.
        value: ``(batch, key_heads, keys, value_dim)``.
        attn_mask: Boolean (True takes part) or added to the scores.
        dropout_p: Probability with which a weight is dropped.
        is_causal: Query i sees keys up to i.
        scale: Factor of the scores; None for ``1 / sqrt(head_dim)``.
        enable_gqa: Heads share keys and values in groups.
        mode: As for ``safe_attention``.

    Returns:
        ``(batch, heads, length, value_dim)``.

    Raises:
        NoWorkingPathError: No tier works.
    """
    takes = vendor_takes(query, key, attn_mask, causal=is_causal)
    tier = _mode("attention", mode)
    if tier == "auto":
        tier = choices.find(query.device, query.dtype, query.shape[-1], takes).path
    if tier == "vendor" and takes:
        return vendor(query, key, value, dropout_p=dropout_p, is_causal=is_causal, scale=scale)
    if tier == "vendor":
        _say_not_taken(str(query.dtype), masked=attn_mask is not None)
    compute = eager if tier == "eager" else sdpa
    return compute(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)


@functools.cache
def _say_not_taken(dtype: str, *, masked: bool) -> None:
    """Log, once for each kind of call, that the vendor's library does not take it."""
    what = f"{dtype} with a mask" if masked else f"{dtype} of this shape"
    log.warning("rocmend: attention: %s cannot express %s: PyTorch's own is used", vendor_name() or "no library", what)


def _mode(subject: str, mode: str | None) -> str:
    return mode_of(subject, mode, MODES, "ROCMEND_SAFE_ATTENTION")


def _choose(device: torch.device, dtype: torch.dtype, head_dim: int, with_vendor: bool) -> Choice:
    name = str(dtype).removeprefix("torch.")
    subject = ("attention", name, str(head_dim))

    def attempt(tier: str) -> Outcome:
        if tier == "vendor" and vendor_name() is None:
            return Outcome(tier, "unsupported", "neither aiter nor flash_attn is installed")
        return try_path(device, subject, tier)

    tiers = TIERS if with_vendor and vendor_name() is not None else TIERS[1:]
    return choose(f"attention {name} head_dim {head_dim} on {device}", tiers, attempt, fastest=False)


def _usual(_device: torch.device, _dtype: torch.dtype, _head_dim: int, with_vendor: bool) -> str:
    return "vendor" if vendor_name() and with_vendor else "sdpa"


choices = Choices(_choose, _usual)


def _routed(query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Tensor:
    """Stand for ``aten::scaled_dot_product_attention``."""
    handle = SafeAttention.deciding(query)
    if handle is None:
        return sdpa(query, key, value, *rest, **options)
    return attention(query, key, value, *rest, **options, mode=handle.mode)


SafeAttention.override = Override({"scaled_dot_product_attention": _routed}, above_autograd=True)
