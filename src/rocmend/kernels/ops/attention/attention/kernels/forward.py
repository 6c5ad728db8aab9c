"""Attention forward: one program a block of queries, the softmax kept up while the keys go by."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import dot, narrow
from rocmend.kernels.ops.attention.attention.kernels.pieces import (
    HIDDEN,
    LN2,
    LOG2E,
    NONE,
    dot_chunks,
    dot_split,
    hide,
    index,
    keys_seen,
    tanh,
    tile,
)


@triton.jit
def _walk(
    q1,
    q2,
    m,
    l,
    acc1,
    acc2,
    q_ptr,
    k_ptr,
    v_ptr,
    mask_ptr,
    q_l,
    q_d,
    k_s,
    k_d,
    v_s,
    v_d,
    m_l,
    m_s,
    lo,
    hi,
    first,
    factor,
    cap,
    window,
    queries,
    keys,
    dim,
    dim_v,
    EDGE: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    KIND: tl.constexpr,
    CAP: tl.constexpr,
    POSITIVE: tl.constexpr,
    WIDE: tl.constexpr,
    D1: tl.constexpr,
    D2: tl.constexpr,
    V1: tl.constexpr,
    V2: tl.constexpr,
    PAD_D: tl.constexpr,
    PAD_V: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Take in keys lo … hi; EDGE: some of them are outside, or hidden from some queries."""
    n = index(0, BLOCK_N, WIDE)
    d1 = index(0, D1, WIDE)
    e1 = index(0, V1, WIDE)
    rows = index(0, BLOCK_M, WIDE)
    kind: tl.constexpr = q_ptr.dtype.element_ty
    precise: tl.constexpr = kind == tl.float32
    for start in tl.range(lo, hi, BLOCK_N):
        k_at = k_ptr + tl.cast(start, tl.int64) * k_s
        v_at = v_ptr + tl.cast(start, tl.int64) * v_s
        if CHUNK > 0:
            s = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
            s = dot_chunks(s, q_ptr, k_at, rows, n, q_l, q_d, k_s, k_d, queries - first, keys - start, dim, PAD_D,
                           D1 + D2,
                           CHUNK, WIDE)  # fmt: skip
        else:
            k1 = tile(k_at, d1, n, k_d, k_s, dim, keys - start, PAD_D and D2 == 0, EDGE)
            k2 = k1
            if D2 > 0:
                k2 = tile(k_at, index(D1, D2, WIDE), n, k_d, k_s, dim, keys - start, PAD_D, EDGE)
            s = dot_split(q1, q2, k1, k2, BLOCK_M, BLOCK_N, D2 > 0)
        plain: tl.constexpr = POSITIVE and not EDGE and not CAP and KIND == NONE
        if plain:
            # The scale goes into the exponent's multiply-add.
            top = tl.maximum(m, tl.max(s, 1) * factor)
        else:
            s = tanh(s * factor, precise) * cap if CAP else s * factor
            if EDGE:
                j = start + tl.arange(0, BLOCK_N)[None, :]
                mask_at = mask_ptr
                if KIND != NONE:
                    mask_at = mask_ptr + tl.cast(start, tl.int64) * m_s + rows[:, None] * m_l + n[None, :] * m_s
                i = (first + tl.arange(0, BLOCK_M))[:, None]
                s = hide(s, i, j, mask_at, queries, keys, window, CAUSAL, WINDOW, KIND)
            top = tl.maximum(m, tl.max(s, 1))
        # Where nothing has been seen yet the maximum is -inf, and -inf - -inf is NaN.
        safe = tl.where(top == float("-inf"), 0.0, top)
        p = tl.exp2(s * factor - safe[:, None]) if plain else tl.exp2(s - safe[:, None])
        fade = tl.exp2(m - safe)
        m = top
        l = l * fade + tl.sum(p, 1)
        acc1 = acc1 * fade[:, None]
        p = narrow(p, kind)
        v1 = tile(v_at, n, e1, v_s, v_d, keys - start, dim_v, EDGE, PAD_V and V2 == 0)
        acc1 = dot(p, v1, acc1)
        if V2 > 0:
            v2 = tile(v_at, n, index(V1, V2, WIDE), v_s, v_d, keys - start, dim_v, EDGE, PAD_V)
            acc2 = dot(p, v2, acc2 * fade[:, None])
    return m, l, acc1, acc2


@triton.jit
def forward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    mask_ptr,
    sinks_ptr,
    out_ptr,
    lse_ptr,
    q_b,
    q_h,
    q_l,
    q_d,
    k_b,
    k_h,
    k_s,
    k_d,
    v_b,
    v_h,
    v_s,
    v_d,
    m_b,
    m_h,
    m_l,
    m_s,
    factor,
    cap,
    window,
    heads,
    group,
    batch_heads,
    queries,
    keys,
    dim,
    dim_v,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    KIND: tl.constexpr,
    CAP: tl.constexpr,
    SINKS: tl.constexpr,
    LSE: tl.constexpr,
    POSITIVE: tl.constexpr,
    WIDE: tl.constexpr,
    D1: tl.constexpr,
    D2: tl.constexpr,
    V1: tl.constexpr,
    V2: tl.constexpr,
    PAD_D: tl.constexpr,
    PAD_V: tl.constexpr,
    CHUNK: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Heads go fastest; under a causal mask the blocks with the most keys come first: no long one is left over."""
    program = tl.program_id(0)
    block = program // batch_heads
    if CAUSAL:
        block = tl.num_programs(0) // batch_heads - 1 - block
    bh = program % batch_heads
    b = (bh // heads).to(tl.int64)
    h = bh % heads
    first = block * BLOCK_M
    q_at = q_ptr + b * q_b + h.to(tl.int64) * q_h + first.to(tl.int64) * q_l
    k_at = k_ptr + b * k_b + (h // group).to(tl.int64) * k_h
    v_at = v_ptr + b * v_b + (h // group).to(tl.int64) * v_h
    mask_at = mask_ptr
    if KIND != NONE:
        mask_at = mask_ptr + b * m_b + h.to(tl.int64) * m_h + first.to(tl.int64) * m_l

    rows = index(0, BLOCK_M, WIDE)
    q1 = 0.0
    q2 = 0.0
    if CHUNK == 0:
        q1 = tile(q_at, rows, index(0, D1, WIDE), q_l, q_d, queries - first, dim, True, PAD_D and D2 == 0)
        if D2 > 0:
            q2 = tile(q_at, rows, index(D1, D2, WIDE), q_l, q_d, queries - first, dim, True, PAD_D)
    acc1 = tl.zeros((BLOCK_M, V1), tl.float32)
    acc2 = 0.0
    if V2 > 0:
        acc2 = tl.zeros((BLOCK_M, V2), tl.float32)
    m = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l = tl.zeros((BLOCK_M,), tl.float32)
    if SINKS:
        sink = tl.load(sinks_ptr + h).to(tl.float32) * LOG2E
        m = tl.zeros((BLOCK_M,), tl.float32) + sink
        l = tl.where(m == float("-inf"), 0.0, 1.0)

    lo, clean_lo, clean_hi, hi = keys_seen(first, queries, keys, window, BLOCK_M, BLOCK_N, CAUSAL, WINDOW, KIND)
    if WINDOW:
        m, l, acc1, acc2 = _walk(
            q1, q2, m, l, acc1, acc2, q_at, k_at, v_at, mask_at, q_l, q_d, k_s, k_d, v_s, v_d, m_l, m_s, lo,
            tl.minimum(clean_lo, hi),
            first, factor, cap, window, queries, keys, dim, dim_v, True, CAUSAL, WINDOW, KIND, CAP, POSITIVE, WIDE,
            D1, D2, V1, V2, PAD_D, PAD_V, CHUNK, BLOCK_M, BLOCK_N,
        )  # fmt: skip
    if KIND == NONE:
        m, l, acc1, acc2 = _walk(
            q1, q2, m, l, acc1, acc2, q_at, k_at, v_at, mask_at, q_l, q_d, k_s, k_d, v_s, v_d, m_l, m_s, clean_lo,
            clean_hi,
            first, factor, cap, window, queries, keys, dim, dim_v, False, CAUSAL, WINDOW, KIND, CAP, POSITIVE, WIDE,
            D1, D2, V1, V2, PAD_D, PAD_V, CHUNK, BLOCK_M, BLOCK_N,
        )  # fmt: skip
    m, l, acc1, acc2 = _walk(
        q1, q2, m, l, acc1, acc2, q_at, k_at, v_at, mask_at, q_l, q_d, k_s, k_d, v_s, v_d, m_l, m_s, clean_hi, hi,
        first, factor, cap, window, queries, keys, dim, dim_v, True, CAUSAL, WINDOW, KIND, CAP, POSITIVE, WIDE,
        D1, D2, V1, V2, PAD_D, PAD_V, CHUNK, BLOCK_M, BLOCK_N,
    )  # fmt: skip

    # Without keys the output is 0; with weights that are all 0, which takes an additive -inf, it is NaN.
    part = tl.where(keys == 0, 0.0, 1.0 / l)
    row = bh.to(tl.int64) * queries + first
    live = (first + tl.arange(0, BLOCK_M)) < queries
    e = tl.arange(0, V1)
    out = out_ptr + row * dim_v + tl.arange(0, BLOCK_M)[:, None] * dim_v
    tl.store(
        out + e[None, :], narrow(acc1 * part[:, None], out_ptr.dtype.element_ty), live[:, None] & (e[None, :] < dim_v)
    )
    if V2 > 0:
        e = V1 + tl.arange(0, V2)
        tl.store(
            out + e[None, :],
            narrow(acc2 * part[:, None], out_ptr.dtype.element_ty),
            live[:, None] & (e[None, :] < dim_v),
        )
    if LSE:
        lse = tl.where(m > 0.75 * HIDDEN, (m + tl.log2(l)) * LN2, float("-inf"))
        tl.store(lse_ptr + row + tl.arange(0, BLOCK_M), lse, live)
