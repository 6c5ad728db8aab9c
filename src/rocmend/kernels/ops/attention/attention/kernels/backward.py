"""Attention's gradients: dq by blocks of queries, dk and dv by blocks of keys; one program sums an element."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import dot, narrow
from rocmend.kernels.ops.attention.attention.kernels.pieces import (
    LOG2E,
    NONE,
    dot_chunks,
    dot_split,
    hide,
    index,
    keys_seen,
    queries_seeing,
    tanh,
    tile,
)


@triton.jit
def delta_kernel(out_ptr, grad_ptr, delta_ptr, g_b, g_h, g_l, g_d, heads, batch_heads, queries, dim_v,
                 BLOCK: tl.constexpr, ROWS: tl.constexpr):  # fmt: skip
    """Sum out * grad over the last axis."""
    bh = tl.program_id(0) % batch_heads
    first = tl.program_id(0) // batch_heads * ROWS
    rows = tl.arange(0, ROWS)
    live = first + rows < queries
    e = tl.arange(0, BLOCK)
    inside = live[:, None] & (e[None, :] < dim_v)
    row = bh.to(tl.int64) * queries + first
    grad = grad_ptr + (bh // heads).to(tl.int64) * g_b + (bh % heads).to(tl.int64) * g_h + first.to(tl.int64) * g_l
    o = tl.load(out_ptr + row * dim_v + rows[:, None] * dim_v + e[None, :], mask=inside, other=0.0).to(tl.float32)
    at = rows.to(tl.int64)[:, None] * g_l + e.to(tl.int64)[None, :] * g_d
    g = tl.load(grad + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(delta_ptr + row + rows, tl.sum(o * g, 1), live)


@triton.jit
def _weights(s, lse, i, j, factor, cap, window, queries, keys, mask_ptrs,
             EDGE: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, KIND: tl.constexpr, CAP: tl.constexpr,
             PRECISE: tl.constexpr):  # fmt: skip
    """Return the softmax's weights, and the derivative of the soft cap (1.0 without one)."""
    slope = 1.0
    if CAP:
        bent = tanh(s * factor, PRECISE)
        slope = 1.0 - bent * bent
        s = bent * cap
    else:
        s = s * factor
    if EDGE:
        s = hide(s, i, j, mask_ptrs, queries, keys, window, CAUSAL, WINDOW, KIND)
    return tl.exp2(s - lse), slope


@triton.jit
def _walk_keys(q1, q2, g1, g2, lse, delta, dq1, dq2, q_ptr, g_ptr, k_ptr, v_ptr, mask_ptr, q_l, q_d, g_l, g_d, k_s,
               k_d, v_s, v_d, m_l, m_s, lo, hi, first,
               factor, cap, window, queries, keys, dim, dim_v,
               EDGE: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, KIND: tl.constexpr, CAP: tl.constexpr,
               WIDE: tl.constexpr, D1: tl.constexpr, D2: tl.constexpr, V1: tl.constexpr, V2: tl.constexpr,
               PAD_D: tl.constexpr, PAD_V: tl.constexpr, CHUNK: tl.constexpr, BLOCK_M: tl.constexpr,
               BLOCK_N: tl.constexpr):  # fmt: skip
    """Add what keys lo … hi give to dq."""
    kind: tl.constexpr = q_ptr.dtype.element_ty
    n = index(0, BLOCK_N, WIDE)
    rows = index(0, BLOCK_M, WIDE)
    for start in tl.range(lo, hi, BLOCK_N):
        k_at = k_ptr + tl.cast(start, tl.int64) * k_s
        v_at = v_ptr + tl.cast(start, tl.int64) * v_s
        k1 = tile(k_at, n, index(0, D1, WIDE), k_s, k_d, keys - start, dim, EDGE, PAD_D and D2 == 0)
        k2 = k1
        if D2 > 0:
            k2 = tile(k_at, n, index(D1, D2, WIDE), k_s, k_d, keys - start, dim, EDGE, PAD_D)
        s = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        dp = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        if CHUNK > 0:
            s = dot_chunks(s, q_ptr, k_at, rows, n, q_l, q_d, k_s, k_d, queries - first, keys - start, dim, PAD_D,
                           D1 + D2,
                           CHUNK, WIDE)  # fmt: skip
            dp = dot_chunks(dp, g_ptr, v_at, rows, n, g_l, g_d, v_s, v_d, queries - first, keys - start, dim_v, PAD_V,
                            V1 + V2,
                            CHUNK, WIDE)  # fmt: skip
        else:
            s = dot(q1, tl.trans(k1), s)
            if D2 > 0:
                s = dot(q2, tl.trans(k2), s)
            v1 = tile(v_at, index(0, V1, WIDE), n, v_d, v_s, dim_v, keys - start, PAD_V and V2 == 0, EDGE)
            v2 = v1
            if V2 > 0:
                v2 = tile(v_at, index(V1, V2, WIDE), n, v_d, v_s, dim_v, keys - start, PAD_V, EDGE)
            dp = dot_split(g1, g2, v1, v2, BLOCK_M, BLOCK_N, V2 > 0)
        i = (first + tl.arange(0, BLOCK_M))[:, None]
        j = start + tl.arange(0, BLOCK_N)[None, :]
        mask_at = mask_ptr
        if KIND != NONE:
            mask_at = mask_ptr + tl.cast(start, tl.int64) * m_s + rows[:, None] * m_l + n[None, :] * m_s
        p, slope = _weights(s, lse[:, None], i, j, factor, cap, window, queries, keys, mask_at,
                            EDGE, CAUSAL, WINDOW, KIND, CAP, kind == tl.float32)  # fmt: skip
        ds = narrow(p * (dp - delta[:, None]) * slope, kind)
        dq1 = dot(ds, k1, dq1)
        if D2 > 0:
            dq2 = dot(ds, k2, dq2)
    return dq1, dq2


@triton.jit
def dq_kernel(q_ptr, k_ptr, v_ptr, mask_ptr, grad_ptr, lse_ptr, delta_ptr, dq_ptr,
              q_b, q_h, q_l, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d, m_b, m_h, m_l, m_s, g_b, g_h, g_l, g_d,
              scale, factor, cap, window, heads, group, batch_heads, queries, keys, dim, dim_v,
              CAUSAL: tl.constexpr, WINDOW: tl.constexpr, KIND: tl.constexpr, CAP: tl.constexpr, WIDE: tl.constexpr,
              D1: tl.constexpr, D2: tl.constexpr, V1: tl.constexpr, V2: tl.constexpr, PAD_D: tl.constexpr,
              PAD_V: tl.constexpr, CHUNK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    """One program a block of queries."""
    block = tl.program_id(0) // batch_heads
    if CAUSAL:
        block = tl.num_programs(0) // batch_heads - 1 - block
    bh = tl.program_id(0) % batch_heads
    b = (bh // heads).to(tl.int64)
    h = (bh % heads).to(tl.int64)
    first = block * BLOCK_M
    wide = first.to(tl.int64)
    q_at = q_ptr + b * q_b + h * q_h + wide * q_l
    g_at = grad_ptr + b * g_b + h * g_h + wide * g_l
    k_at = k_ptr + b * k_b + (h // group) * k_h
    v_at = v_ptr + b * v_b + (h // group) * v_h
    mask_at = mask_ptr
    if KIND != NONE:
        mask_at = mask_ptr + b * m_b + h * m_h + wide * m_l

    rows = index(0, BLOCK_M, WIDE)
    dq1 = tl.zeros((BLOCK_M, D1), tl.float32)
    dq2 = 0.0
    if D2 > 0:
        dq2 = tl.zeros((BLOCK_M, D2), tl.float32)
    q1 = 0.0
    q2 = 0.0
    g1 = 0.0
    g2 = 0.0
    if CHUNK == 0:
        q1 = tile(q_at, rows, index(0, D1, WIDE), q_l, q_d, queries - first, dim, True, PAD_D and D2 == 0)
        g1 = tile(g_at, rows, index(0, V1, WIDE), g_l, g_d, queries - first, dim_v, True, PAD_V and V2 == 0)
        if D2 > 0:
            q2 = tile(q_at, rows, index(D1, D2, WIDE), q_l, q_d, queries - first, dim, True, PAD_D)
        if V2 > 0:
            g2 = tile(g_at, rows, index(V1, V2, WIDE), g_l, g_d, queries - first, dim_v, True, PAD_V)
    row = bh.to(tl.int64) * queries + first
    live = first + tl.arange(0, BLOCK_M) < queries
    # A query that sees nothing has the logarithm -inf: as +inf it makes every weight 0.
    lse = tl.load(lse_ptr + row + tl.arange(0, BLOCK_M), mask=live, other=float("inf")) * LOG2E
    lse = tl.where(lse == float("-inf"), float("inf"), lse)
    delta = tl.load(delta_ptr + row + tl.arange(0, BLOCK_M), mask=live, other=0.0)

    lo, clean_lo, clean_hi, hi = keys_seen(first, queries, keys, window, BLOCK_M, BLOCK_N, CAUSAL, WINDOW, KIND)
    if WINDOW:
        dq1, dq2 = _walk_keys(
            q1, q2, g1, g2, lse, delta, dq1, dq2, q_at, g_at, k_at, v_at, mask_at, q_l, q_d, g_l, g_d, k_s, k_d, v_s,
            v_d, m_l, m_s,
            lo, tl.minimum(clean_lo, hi), first, factor, cap, window, queries, keys, dim, dim_v,
            True, CAUSAL, WINDOW, KIND, CAP, WIDE, D1, D2, V1, V2, PAD_D, PAD_V, CHUNK, BLOCK_M, BLOCK_N,
        )  # fmt: skip
    if KIND == NONE:
        dq1, dq2 = _walk_keys(
            q1, q2, g1, g2, lse, delta, dq1, dq2, q_at, g_at, k_at, v_at, mask_at, q_l, q_d, g_l, g_d, k_s, k_d, v_s,
            v_d, m_l, m_s,
            clean_lo, clean_hi, first, factor, cap, window, queries, keys, dim, dim_v,
            False, CAUSAL, WINDOW, KIND, CAP, WIDE, D1, D2, V1, V2, PAD_D, PAD_V, CHUNK, BLOCK_M, BLOCK_N,
        )  # fmt: skip
    dq1, dq2 = _walk_keys(
        q1, q2, g1, g2, lse, delta, dq1, dq2, q_at, g_at, k_at, v_at, mask_at, q_l, q_d, g_l, g_d, k_s, k_d, v_s,
            v_d, m_l, m_s,
        clean_hi, hi, first, factor, cap, window, queries, keys, dim, dim_v,
        True, CAUSAL, WINDOW, KIND, CAP, WIDE, D1, D2, V1, V2, PAD_D, PAD_V, CHUNK, BLOCK_M, BLOCK_N,
    )  # fmt: skip

    kind = dq_ptr.dtype.element_ty
    d = tl.arange(0, D1)
    at = dq_ptr + row * dim + tl.arange(0, BLOCK_M)[:, None] * dim
    tl.store(at + d[None, :], narrow(dq1 * scale, kind), live[:, None] & (d[None, :] < dim))
    if D2 > 0:
        d = D1 + tl.arange(0, D2)
        tl.store(at + d[None, :], narrow(dq2 * scale, kind), live[:, None] & (d[None, :] < dim))


@triton.jit
def _walk_queries(k1, k2, v1, v2, dk1, dk2, dv1, dv2, k_ptr, v_ptr, k_s, k_d, v_s, v_d, q_ptr, g_ptr, lse_ptr,
                  delta_ptr, mask_ptr, q_l, q_d, g_l, g_d,
                  m_l, m_s, lo, hi, first, factor, cap, window, queries, keys, dim, dim_v,
                  EDGE: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, KIND: tl.constexpr,
                  CAP: tl.constexpr, WIDE: tl.constexpr, D1: tl.constexpr, D2: tl.constexpr, V1: tl.constexpr,
                  V2: tl.constexpr, PAD_D: tl.constexpr, PAD_V: tl.constexpr, CHUNK: tl.constexpr,
                  BLOCK_M: tl.constexpr,
                  BLOCK_N: tl.constexpr):  # fmt: skip
    """Add what queries lo … hi give to dk and dv; scores stand as [keys, queries]."""
    kind: tl.constexpr = q_ptr.dtype.element_ty
    n = index(0, BLOCK_N, WIDE)
    rows = index(0, BLOCK_M, WIDE)
    for start in tl.range(lo, hi, BLOCK_M):
        wide = tl.cast(start, tl.int64)
        left = queries - start
        q_at = q_ptr + wide * q_l
        g_at = g_ptr + wide * g_l
        q1 = tile(q_at, rows, index(0, D1, WIDE), q_l, q_d, left, dim, EDGE, PAD_D and D2 == 0)
        g1 = tile(g_at, rows, index(0, V1, WIDE), g_l, g_d, left, dim_v, EDGE, PAD_V and V2 == 0)
        q2 = q1
        g2 = g1
        if D2 > 0:
            q2 = tile(q_at, rows, index(D1, D2, WIDE), q_l, q_d, left, dim, EDGE, PAD_D)
        if V2 > 0:
            g2 = tile(g_at, rows, index(V1, V2, WIDE), g_l, g_d, left, dim_v, EDGE, PAD_V)
        s = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
        if CHUNK > 0:
            s = dot_chunks(
                s, k_ptr, q_at, n, rows, k_s, k_d, q_l, q_d, keys - first, left, dim, PAD_D, D1 + D2, CHUNK, WIDE
            )
        else:
            s = dot(k1, tl.trans(q1), s)
            if D2 > 0:
                s = dot(k2, tl.trans(q2), s)
        i = start + tl.arange(0, BLOCK_M)
        if EDGE:
            lse = tl.load(lse_ptr + i, mask=i < queries, other=float("inf")) * LOG2E
            delta = tl.load(delta_ptr + i, mask=i < queries, other=0.0)
        else:
            lse = tl.load(lse_ptr + i) * LOG2E
            delta = tl.load(delta_ptr + i)
        lse = tl.where(lse == float("-inf"), float("inf"), lse)
        mask_at = mask_ptr
        if KIND != NONE:
            mask_at = mask_ptr + wide * m_l + rows[None, :] * m_l + n[:, None] * m_s
        j = (first + tl.arange(0, BLOCK_N))[:, None]
        p, slope = _weights(s, lse[None, :], i[None, :], j, factor, cap, window, queries, keys, mask_at,
                            EDGE, CAUSAL, WINDOW, KIND, CAP, kind == tl.float32)  # fmt: skip
        weights = narrow(p, kind)
        dv1 = dot(weights, g1, dv1)
        if V2 > 0:
            dv2 = dot(weights, g2, dv2)
        dp = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
        if CHUNK > 0:
            dp = dot_chunks(
                dp, v_ptr, g_at, n, rows, v_s, v_d, g_l, g_d, keys - first, left, dim_v, PAD_V, V1 + V2, CHUNK, WIDE
            )
        else:
            dp = dot(v1, tl.trans(g1), dp)
            if V2 > 0:
                dp = dot(v2, tl.trans(g2), dp)
        ds = narrow(p * (dp - delta[None, :]) * slope, kind)
        dk1 = dot(ds, q1, dk1)
        if D2 > 0:
            dk2 = dot(ds, q2, dk2)
    return dk1, dk2, dv1, dv2


@triton.jit
def dkv_kernel(q_ptr, k_ptr, v_ptr, mask_ptr, grad_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
               q_b, q_h, q_l, q_d, k_b, k_h, k_s, k_d, v_b, v_h, v_s, v_d, m_b, m_h, m_l, m_s, g_b, g_h, g_l, g_d,
               scale, factor, cap, window, kv_heads, group, batch_heads, queries, keys, dim, dim_v,
               CAUSAL: tl.constexpr, WINDOW: tl.constexpr, KIND: tl.constexpr, CAP: tl.constexpr, WIDE: tl.constexpr,
               D1: tl.constexpr, D2: tl.constexpr, V1: tl.constexpr, V2: tl.constexpr, PAD_D: tl.constexpr,
               PAD_V: tl.constexpr, CHUNK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    """One program a block of keys; it sums over the query heads of its group."""
    block = tl.program_id(0) // batch_heads
    bh = tl.program_id(0) % batch_heads
    b = (bh // kv_heads).to(tl.int64)
    kv = (bh % kv_heads).to(tl.int64)
    first = block * BLOCK_N
    wide = first.to(tl.int64)
    k_at = k_ptr + b * k_b + kv * k_h + wide * k_s
    v_at = v_ptr + b * v_b + kv * v_h + wide * v_s

    n = index(0, BLOCK_N, WIDE)
    dk1 = tl.zeros((BLOCK_N, D1), tl.float32)
    dv1 = tl.zeros((BLOCK_N, V1), tl.float32)
    dk2 = 0.0
    dv2 = 0.0
    if D2 > 0:
        dk2 = tl.zeros((BLOCK_N, D2), tl.float32)
    if V2 > 0:
        dv2 = tl.zeros((BLOCK_N, V2), tl.float32)
    k1 = 0.0
    k2 = 0.0
    v1 = 0.0
    v2 = 0.0
    if CHUNK == 0:
        k1 = tile(k_at, n, index(0, D1, WIDE), k_s, k_d, keys - first, dim, True, PAD_D and D2 == 0)
        v1 = tile(v_at, n, index(0, V1, WIDE), v_s, v_d, keys - first, dim_v, True, PAD_V and V2 == 0)
        if D2 > 0:
            k2 = tile(k_at, n, index(D1, D2, WIDE), k_s, k_d, keys - first, dim, True, PAD_D)
        if V2 > 0:
            v2 = tile(v_at, n, index(V1, V2, WIDE), v_s, v_d, keys - first, dim_v, True, PAD_V)

    lo, clean_lo, clean_hi, hi = queries_seeing(first, queries, keys, window, BLOCK_M, BLOCK_N, CAUSAL, WINDOW, KIND)
    for member in range(group):
        h = kv * group + member
        q_at = q_ptr + b * q_b + h * q_h
        g_at = grad_ptr + b * g_b + h * g_h
        row = (b * kv_heads * group + h) * queries
        mask_at = mask_ptr
        if KIND != NONE:
            mask_at = mask_ptr + b * m_b + h * m_h + wide * m_s
        dk1, dk2, dv1, dv2 = _walk_queries(
            k1, k2, v1, v2, dk1, dk2, dv1, dv2, k_at, v_at, k_s, k_d, v_s, v_d, q_at, g_at, lse_ptr + row,
            delta_ptr + row, mask_at, q_l, q_d, g_l, g_d,
            m_l, m_s, lo, tl.minimum(clean_lo, hi), first, factor, cap, window, queries, keys, dim, dim_v,
            True, CAUSAL, WINDOW, KIND, CAP, WIDE, D1, D2, V1, V2, PAD_D, PAD_V, CHUNK, BLOCK_M, BLOCK_N,
        )  # fmt: skip
        if KIND == NONE:
            dk1, dk2, dv1, dv2 = _walk_queries(
                k1, k2, v1, v2, dk1, dk2, dv1, dv2, k_at, v_at, k_s, k_d, v_s, v_d, q_at, g_at, lse_ptr + row,
                delta_ptr + row, mask_at, q_l, q_d, g_l,
                g_d, m_l, m_s, clean_lo, clean_hi, first, factor, cap, window, queries, keys, dim, dim_v,
                False, CAUSAL, WINDOW, KIND, CAP, WIDE, D1, D2, V1, V2, PAD_D, PAD_V, CHUNK, BLOCK_M, BLOCK_N,
            )  # fmt: skip
        dk1, dk2, dv1, dv2 = _walk_queries(
            k1, k2, v1, v2, dk1, dk2, dv1, dv2, k_at, v_at, k_s, k_d, v_s, v_d, q_at, g_at, lse_ptr + row,
            delta_ptr + row, mask_at, q_l, q_d, g_l, g_d,
            m_l, m_s, clean_hi, hi, first, factor, cap, window, queries, keys, dim, dim_v,
            True, CAUSAL, WINDOW, KIND, CAP, WIDE, D1, D2, V1, V2, PAD_D, PAD_V, CHUNK, BLOCK_M, BLOCK_N,
        )  # fmt: skip

    live = (first + tl.arange(0, BLOCK_N) < keys)[:, None]
    row = bh.to(tl.int64) * keys + first
    kind = dk_ptr.dtype.element_ty
    dk = dk_ptr + row * dim + tl.arange(0, BLOCK_N)[:, None] * dim
    dv = dv_ptr + row * dim_v + tl.arange(0, BLOCK_N)[:, None] * dim_v
    d = tl.arange(0, D1)[None, :]
    e = tl.arange(0, V1)[None, :]
    tl.store(dk + d, narrow(dk1 * scale, kind), live & (d < dim))
    tl.store(dv + e, narrow(dv1, kind), live & (e < dim_v))
    if D2 > 0:
        d = D1 + tl.arange(0, D2)[None, :]
        tl.store(dk + d, narrow(dk2 * scale, kind), live & (d < dim))
    if V2 > 0:
        e = V1 + tl.arange(0, V2)[None, :]
        tl.store(dv + e, narrow(dv2, kind), live & (e < dim_v))
