"""The Triton kernel: one part of a quantized cache for all query heads of one KV head; parts are merged as decode's."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import dot, narrow
from rocmend.kernels.ops.attention.attention_decode.kernel import (
    LOG2E,
    NONE,
    finish_rows,
    finish_scores,
    soften,
    span,
)


@triton.jit
def load_rows(
    words_ptr,
    scales_ptr,
    biases_ptr,
    far,
    inside,
    w_ss,
    s_ss,
    D: tl.constexpr,
    GROUPS: tl.constexpr,
    GROUP_SIZE: tl.constexpr,
    BITS: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Return rows [BLOCK_N, GROUPS * GROUP_SIZE] of a quantized cache in fp32; 0 past the end and past D."""
    WORDS: tl.constexpr = GROUP_SIZE * BITS // 32
    EACH: tl.constexpr = 32 // BITS
    group = tl.arange(0, GROUPS)
    word = tl.arange(0, WORDS)
    present = inside[:, None] & (group[None, :] < D // GROUP_SIZE)
    place = far[:, None, None] * w_ss + group[None, :, None] * WORDS + word[None, None, :]
    words = tl.load(words_ptr + place, mask=present[:, :, None], other=0).to(tl.uint32, bitcast=True)
    affine = far[:, None] * s_ss + group[None, :]
    scales = tl.load(scales_ptr + affine, mask=present, other=0.0).to(tl.float32)
    biases = tl.load(biases_ptr + affine, mask=present, other=0.0).to(tl.float32)
    shifts = (tl.arange(0, EACH) * BITS).to(tl.uint32)
    codes = (words[:, :, :, None] >> shifts[None, None, None, :]) & ((1 << BITS) - 1)
    rows = codes.to(tl.float32) * scales[:, :, None, None] + biases[:, :, None, None]
    return tl.reshape(rows, [BLOCK_N, GROUPS * GROUP_SIZE])


@triton.jit
def quantized_kernel(
    q_ptr,
    kw_ptr,
    ks_ptr,
    kb_ptr,
    vw_ptr,
    vs_ptr,
    vb_ptr,
    mask_ptr,
    lengths_ptr,
    acc_ptr,
    _counter_ptr,
    out_ptr,
    scale,
    capacity,
    splits,
    tops,
    L,
    q_sb,
    q_sh,
    q_sl,
    kw_sb,
    kw_sh,
    kw_ss,
    ks_sb,
    ks_sh,
    ks_ss,
    vw_sb,
    vw_sh,
    vw_ss,
    vs_sb,
    vs_sh,
    vs_ss,
    m_sb,
    m_sh,
    m_sl,
    m_ss,
    KV: tl.constexpr,
    GROUP: tl.constexpr,
    D: tl.constexpr,
    DV: tl.constexpr,
    DG: tl.constexpr,
    DVG: tl.constexpr,
    GROUP_SIZE: tl.constexpr,
    BITS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DOT: tl.constexpr,
    CAUSAL: tl.constexpr,
    MASK: tl.constexpr,
    LENGTHS: tl.constexpr,
    SPLIT: tl.constexpr,
):
    """Scores, running softmax and weighted sum of values, each block of the cache dequantized in registers."""
    split = tl.program_id(0) % splits
    pair = tl.program_id(0) // splits
    b = (pair // KV).to(tl.int64)
    kv = (pair % KV).to(tl.int64)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    rows_ok = row < GROUP * L
    head = kv * GROUP + row % GROUP
    query = row // GROUP
    length = capacity
    if LENGTHS:
        length = tl.minimum(tl.maximum(tl.load(lengths_ptr + b).to(tl.int32), 0), capacity)
    start, end = span(length, 0, splits, split, 1, BLOCK_N, False)
    position = length - L + query
    if CAUSAL:
        # Keys after the last query of the rows are of no use, unless a row sees none: that one is a mean of all.
        last = length - L + tl.minimum((tl.program_id(1) * ROWS + ROWS - 1) // GROUP, L - 1)
        end = tl.where(length - L + tl.program_id(1) * ROWS // GROUP >= 0, tl.minimum(end, last + 1), end)
    DW: tl.constexpr = DG * GROUP_SIZE
    DVW: tl.constexpr = DVG * GROUP_SIZE
    d = tl.arange(0, DW)
    q_row = q_ptr + b * q_sb + head * q_sh + query * q_sl
    q = tl.load(q_row[:, None] + d[None, :], mask=rows_ok[:, None] & (d[None, :] < D), other=0.0)
    mask_row = mask_ptr
    if MASK != NONE:
        mask_row = mask_ptr + (b * m_sb + head * m_sh + query * m_sl)[:, None]
    column = tl.arange(0, BLOCK_N)
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DVW), tl.float32)
    for at in range(start, end, BLOCK_N):
        n = at + column
        far = n.to(tl.int64)
        k = load_rows(
            kw_ptr + b * kw_sb + kv * kw_sh, ks_ptr + b * ks_sb + kv * ks_sh, kb_ptr + b * ks_sb + kv * ks_sh,
            far, n < end, kw_ss, ks_ss, D, DG, GROUP_SIZE, BITS, BLOCK_N,
        )  # fmt: skip
        if DOT:
            s = dot(q, tl.trans(narrow(k, q_ptr.dtype.element_ty)), tl.zeros((ROWS, BLOCK_N), tl.float32))
        else:
            s = tl.sum(q.to(tl.float32)[:, None, :] * k[None, :, :], axis=2)
        s = finish_scores(
            s * (scale * LOG2E), n, position, end, 1.0, 0, mask_row, rows_ok, m_ss, CAUSAL, MASK, False, False
        )
        p, factor, top, total = soften(s, top, total)
        v = load_rows(
            vw_ptr + b * vw_sb + kv * vw_sh, vs_ptr + b * vs_sb + kv * vs_sh, vb_ptr + b * vs_sb + kv * vs_sh,
            far, n < end, vw_ss, vs_ss, DV, DVG, GROUP_SIZE, BITS, BLOCK_N,
        )  # fmt: skip
        acc = acc * factor[:, None]
        if DOT:
            acc = dot(narrow(p, q_ptr.dtype.element_ty), narrow(v, q_ptr.dtype.element_ty), acc)
        else:
            acc += tl.sum(p[:, :, None] * v[None, :, :], axis=1)
    # Rows of the output are heads times queries: the tile's are queries times heads.
    place = (row % GROUP) * L + query
    base = pair.to(tl.int64) * (GROUP * L)
    finish_rows(
        acc, top, total, length, mask_ptr, acc_ptr, out_ptr, base, place, rows_ok, head, split, splits,
        tops, DV, DVW, False, SPLIT,
    )  # fmt: skip
