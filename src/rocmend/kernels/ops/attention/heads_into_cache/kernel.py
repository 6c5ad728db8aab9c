"""The Triton kernel: one head of one token a program."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow
from rocmend.kernels.ops.rowwise.rms_norm.kernel import inverse_root


@triton.jit
def _weighted(x, scale, weight_ptr, column, inside, dtype: tl.constexpr):
    """Normalise, round, weight and round: the order of rms_norm."""
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0).to(tl.float32)
    normal = narrow(x * scale, dtype).to(tl.float32)
    return narrow(normal * weight, dtype).to(tl.float32)


@triton.jit
def _turned(
    source, stride_d, out, out_stride_d, weight_ptr, place, inverse, dims, size, eps,
    NORM: tl.constexpr, TRADITIONAL: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """Normalise a head, rotate its first dims elements and write it."""
    dtype: tl.constexpr = out.dtype.element_ty
    pair = tl.arange(0, PAIRS)
    half = dims // 2
    inside = pair < half
    if TRADITIONAL:
        first_at = 2 * pair
        second_at = 2 * pair + 1
    else:
        first_at = pair
        second_at = half + pair
    first = tl.load(source + first_at * stride_d, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(source + second_at * stride_d, mask=inside, other=0.0).to(tl.float32)
    if NORM:
        squares = tl.sum(first * first + second * second, axis=0)
    if REST > 0:
        rest_at = dims + tl.arange(0, REST)
        there = rest_at < size
        rest = tl.load(source + rest_at * stride_d, mask=there, other=0.0).to(tl.float32)
        if NORM:
            squares += tl.sum(rest * rest, axis=0)
    if NORM:
        scale = inverse_root(squares + tl.zeros((1,), tl.float32), size, eps)
        first = _weighted(first, scale, weight_ptr, first_at, inside, dtype)
        second = _weighted(second, scale, weight_ptr, second_at, inside, dtype)
    angle = place * inverse
    cosine = tl.cos(angle)
    sine = tl.sin(angle)
    tl.store(out + first_at * out_stride_d, narrow(first * cosine - second * sine, dtype), mask=inside)
    tl.store(out + second_at * out_stride_d, narrow(first * sine + second * cosine, dtype), mask=inside)
    if REST > 0:
        if NORM:
            rest = _weighted(rest, scale, weight_ptr, rest_at, there, dtype)
        tl.store(out + rest_at * out_stride_d, narrow(rest, dtype), mask=there)


@triton.jit
def heads_kernel(
    q_ptr, k_ptr, v_ptr, q_weight_ptr, k_weight_ptr, freqs_ptr, offset_ptr, q_out_ptr, k_cache_ptr, v_cache_ptr,
    offset, exponent, scale, q_eps, k_eps, heads, kv_heads, tokens, dims, size, value_size, freqs_stride,
    q_b, q_h, q_t, q_d, k_b, k_h, k_t, k_d, v_b, v_h, v_t, v_d,
    kc_b, kc_h, kc_t, kc_d, vc_b, vc_h, vc_t, vc_d,
    HAS_OFFSET: tl.constexpr, HAS_FREQS: tl.constexpr, Q_NORM: tl.constexpr, K_NORM: tl.constexpr,
    TRADITIONAL: tl.constexpr, PAIRS: tl.constexpr, REST: tl.constexpr, VALUES: tl.constexpr,
):  # fmt: skip
    """Program (batch, token, head): query heads first, then keys, then values."""
    every = heads + 2 * kv_heads
    head = tl.program_id(0) % every
    token = tl.program_id(0) // every % tokens
    batch = (tl.program_id(0) // every // tokens).to(tl.int64)
    if HAS_OFFSET:
        offset = tl.load(offset_ptr).to(tl.int32)
    at = (token + offset).to(tl.int64)
    if head < heads + kv_heads:
        pair = tl.arange(0, PAIRS)
        if HAS_FREQS:
            freqs = tl.load(freqs_ptr + pair * freqs_stride, mask=pair < dims // 2, other=1.0).to(tl.float32)
            inverse = tl.div_rn(tl.full((PAIRS,), 1.0, tl.float32), freqs)
        else:
            inverse = tl.exp2(pair.to(tl.float32) * exponent)
        place = (token + offset).to(tl.float32) * scale
        if head < heads:
            _turned(
                q_ptr + batch * q_b + head * q_h + token * q_t, q_d,
                q_out_ptr + ((batch * heads + head) * tokens + token) * size, 1,
                q_weight_ptr, place, inverse, dims, size, q_eps, Q_NORM, TRADITIONAL, PAIRS, REST,
            )  # fmt: skip
        else:
            mine = head - heads
            _turned(
                k_ptr + batch * k_b + mine * k_h + token * k_t, k_d,
                k_cache_ptr + batch * kc_b + mine * kc_h + at * kc_t, kc_d,
                k_weight_ptr, place, inverse, dims, size, k_eps, K_NORM, TRADITIONAL, PAIRS, REST,
            )  # fmt: skip
    else:
        mine = head - heads - kv_heads
        column = tl.arange(0, VALUES)
        inside = column < value_size
        value = tl.load(v_ptr + batch * v_b + mine * v_h + token * v_t + column * v_d, mask=inside)
        tl.store(v_cache_ptr + batch * vc_b + mine * vc_h + at * vc_t + column * vc_d, value, mask=inside)
