"""The Triton kernel: one launch rotates a tensor, or two (queries and keys)."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def _rotate(
    x_ptr, out_ptr, batch, head, token, heads, tokens, cosine, sine,
    stride_b, stride_h, stride_t, stride_d, dims, size,
    TRADITIONAL: tl.constexpr, TOKENS: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """Rotate one head at TOKENS places and copy what lies behind dims."""
    source = x_ptr + batch * stride_b + head * stride_h + token * stride_t
    out = out_ptr + ((batch * heads + head) * tokens + token) * size
    there = token < tokens
    pair = tl.arange(0, PAIRS)[None, :]
    if TRADITIONAL:
        column = tl.arange(0, 2 * PAIRS)[None, :]
        inside = there & (column < dims)
        both = tl.load(source + column * stride_d, mask=inside, other=0.0).to(tl.float32)
        first, second = tl.split(tl.reshape(both, (TOKENS, PAIRS, 2)))
        turned = tl.join(first * cosine - second * sine, first * sine + second * cosine)
        turned = tl.reshape(turned, (TOKENS, 2 * PAIRS))
        tl.store(out + column, narrow(turned, out_ptr.dtype.element_ty), mask=inside)
    else:
        half = dims // 2
        inside = there & (pair < half)
        first = tl.load(source + pair * stride_d, mask=inside, other=0.0).to(tl.float32)
        second = tl.load(source + (half + pair) * stride_d, mask=inside, other=0.0).to(tl.float32)
        tl.store(out + pair, narrow(first * cosine - second * sine, out_ptr.dtype.element_ty), mask=inside)
        tl.store(out + half + pair, narrow(first * sine + second * cosine, out_ptr.dtype.element_ty), mask=inside)
    if REST > 0:
        column = dims + tl.arange(0, REST)[None, :]
        inside = there & (column < size)
        tl.store(out + column, tl.load(source + column * stride_d, mask=inside), mask=inside)


@triton.jit
def rope_kernel(
    x_ptr, out_ptr, y_ptr, y_out_ptr, offset_ptr, freqs_ptr, offset, offset_stride, exponent, scale,
    heads, y_heads, tokens, stride_b, stride_h, stride_t, stride_d, y_stride_b, y_stride_h, y_stride_t, y_stride_d,
    dims, size, freqs_stride,
    HAS_OFFSET: tl.constexpr, HAS_FREQS: tl.constexpr, HAS_SECOND: tl.constexpr, INVERSE: tl.constexpr,
    TRADITIONAL: tl.constexpr, TOKENS: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr, HEADS: tl.constexpr,
):  # fmt: skip
    """HEADS heads at TOKENS places of one batch entry; the angles are computed once for all of them."""
    token_tiles = tl.cdiv(tokens, TOKENS)
    x_tiles = tl.cdiv(heads, HEADS)
    tiles = x_tiles
    if HAS_SECOND:
        tiles += tl.cdiv(y_heads, HEADS)
    head_tile = tl.program_id(0) % tiles
    token = (tl.program_id(0) // tiles) % token_tiles * TOKENS + tl.arange(0, TOKENS)[:, None]
    batch = (tl.program_id(0) // tiles // token_tiles).to(tl.int64)
    pair = tl.arange(0, PAIRS)[None, :]
    if HAS_OFFSET:
        offset = tl.load(offset_ptr + batch * offset_stride).to(tl.int32)
    place = (token + offset).to(tl.float32) * scale
    if HAS_FREQS:
        freqs = tl.load(freqs_ptr + pair * freqs_stride, mask=pair < dims // 2, other=1.0).to(tl.float32)
        inverse = tl.div_rn(tl.full((1, PAIRS), 1.0, tl.float32), freqs)
    else:
        inverse = tl.exp2(pair.to(tl.float32) * exponent)
    angle = place * inverse
    cosine = tl.cos(angle)
    sine = tl.sin(angle)
    if INVERSE:
        sine = -sine
    token = token.to(tl.int64)
    for step in tl.static_range(HEADS):
        if head_tile < x_tiles:
            head = head_tile * HEADS + step
            if head < heads:
                _rotate(
                    x_ptr, out_ptr, batch, head, token, heads, tokens, cosine, sine,
                    stride_b, stride_h, stride_t, stride_d, dims, size, TRADITIONAL, TOKENS, PAIRS, REST,
                )  # fmt: skip
        elif HAS_SECOND:
            head = (head_tile - x_tiles) * HEADS + step
            if head < y_heads:
                _rotate(
                    y_ptr, y_out_ptr, batch, head, token, y_heads, tokens, cosine, sine,
                    y_stride_b, y_stride_h, y_stride_t, y_stride_d, dims, size, TRADITIONAL, TOKENS, PAIRS, REST,
                )  # fmt: skip
