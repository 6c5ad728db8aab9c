"""Scaled dot-product attention by every back end, length and head size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import FLOATS, Family

family = Family("attention", tags=("attention", "aotriton", "flashattention"), allowance="library")

LENGTHS = (4, 7, 8, 127)
"""Sequence lengths: below, at and beside the tile sizes of kernels."""


def eager(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **settings: Any) -> torch.Tensor:
    """Return attention written out: softmax(q kᵀ / √d + mask) v."""
    if settings.get("enable_gqa"):
        groups = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    mask = settings.get("attn_mask")
    if settings.get("is_causal"):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    result: torch.Tensor = scores.softmax(-1) @ value
    return result


def fused(backend: str = "") -> Callable[..., torch.Tensor]:
    """Return torch's attention, by one back end only where one is named."""

    def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **settings: Any) -> torch.Tensor:
        function = torch.nn.functional.scaled_dot_product_attention
        if not backend:
            return function(query, key, value, **settings)
        from torch.nn.attention import SDPBackend, sdpa_kernel

        with sdpa_kernel(getattr(SDPBackend, backend)):
            return function(query, key, value, **settings)

    return attend


def shaped(ctx: Context, length: int, head_dim: int, heads: int = 2, keys: int = 0) -> tuple[torch.Tensor, ...]:
    """Return query, key and value."""
    keys = keys or length
    return tuple(ctx.randn(2, heads, size, head_dim) for size in (length, keys, keys))


def over_lengths(ctx: Context, backend: str, *, causal: bool = False) -> Case:
    """Return a case that attends at every length of `LENGTHS`."""
    inputs = tuple(tensor for length in LENGTHS for tensor in shaped(ctx, length, 64))

    def by(function: Callable[..., torch.Tensor]) -> Callable[..., list[torch.Tensor]]:
        return lambda *all_: [function(*all_[at : at + 3], is_causal=causal) for at in range(0, len(all_), 3)]

    return Case(by(fused(backend)), inputs, reference=by(eager))


@family.probe("attention", "attention by the back end that torch chooses, at lengths 4 to 127", FLOATS, smoke=True)
def attention(ctx: Context) -> Case:
    return over_lengths(ctx, "")


@family.probe("attention-math", "attention by plain operations")
def attention_math(ctx: Context) -> Case:
    return over_lengths(ctx, "MATH")


@family.probe("attention-flash", "flash attention", ("float16", "bfloat16"), tags=("flash-attn",))
def attention_flash(ctx: Context) -> Case:
    return over_lengths(ctx, "FLASH_ATTENTION")


@family.probe("attention-efficient", "memory-efficient attention", FLOATS, needs=("cuda",))
def attention_efficient(ctx: Context) -> Case:
    return over_lengths(ctx, "EFFICIENT_ATTENTION")


@family.probe("attention-cudnn", "attention by the vendor's network library", ("float16", "bfloat16"), needs=("cuda",))
def attention_cudnn(ctx: Context) -> Case:
    return over_lengths(ctx, "CUDNN_ATTENTION")


@family.probe("attention-causal", "causal attention", FLOATS)
def attention_causal(ctx: Context) -> Case:
    return over_lengths(ctx, "", causal=True)


def head_size(size: int) -> Callable[[Context], Case]:
    """Return the builder for a head size."""

    def build(ctx: Context) -> Case:
        return Case(fused(), shaped(ctx, 65, size), reference=eager)

    return build


for _size in (64, 96, 128, 192, 256):
    family.probe(f"attention-head-{_size}", f"attention with heads of {_size}", ("float32", "float16", "bfloat16"))(
        head_size(_size)
    )


@family.probe("attention-mask", "attention with a truth mask and with an additive one", ("float32", "float16"))
def attention_mask(ctx: Context) -> Case:
    allowed = (ctx.randn(2, 1, 33, 33) > 0) | torch.eye(33, dtype=torch.bool)
    bias = ctx.randn(2, 2, 33, 33)

    def by(function: Callable[..., torch.Tensor]) -> Callable[..., list[torch.Tensor]]:
        return lambda q, k, v, mask, bias: [function(q, k, v, attn_mask=each) for each in (mask, bias)]

    return Case(by(fused()), (*shaped(ctx, 33, 64), allowed, bias), reference=by(eager))


@family.probe("attention-gqa", "eight query heads share two key heads", ("float32", "float16", "bfloat16"))
def attention_gqa(ctx: Context) -> Case:
    def by(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        return lambda q, k, v: function(q, k, v, enable_gqa=True)

    query, key, value = ctx.randn(2, 8, 17, 64), ctx.randn(2, 2, 17, 64), ctx.randn(2, 2, 17, 64)
    return Case(by(fused()), (query, key, value), reference=by(eager))


@family.probe("attention-decode", "one query against 257 keys", ("float32", "float16", "bfloat16"), tags=("decode",))
def attention_decode(ctx: Context) -> Case:
    return Case(fused(), shaped(ctx, 1, 128, heads=4, keys=257), reference=eager)


@family.probe("attention-backward", "gradients of attention", FLOATS, tags=("training",))
def attention_backward(ctx: Context) -> Case:
    return Case(fused(), shaped(ctx, 33, 64), reference=eager, backward=True)


@family.probe("attention-backward-causal", "gradients of causal attention", ("float32", "bfloat16"), tags=("training",))
def attention_backward_causal(ctx: Context) -> Case:
    def by(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        return lambda q, k, v: function(q, k, v, is_causal=True)

    return Case(by(fused()), shaped(ctx, 65, 128), reference=by(eager), backward=True)


@family.probe("multihead-attention", "torch's multi-head attention layer", ("float32", "float16"))
def multihead(ctx: Context) -> Case:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.MultiheadAttention(64, 4, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.inner(x, x, x, need_weights=False)[0]
            return result

    return Case(Layer().to(ctx.dtype), (ctx.randn(2, 17, 64),), backward=True)
