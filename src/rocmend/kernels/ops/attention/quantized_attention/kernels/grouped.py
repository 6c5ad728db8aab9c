"""The Triton kernel for few rows and matrix instructions: codes are multiplied as they are, group by group.

A group's scores are ``scale · (codes · q) + bias · sum(q)``, and its part of the output is ``codes · (p · scale)`` plus
``sum(p · bias)``: scales and biases meet numbers of rows and keys, of which there are far fewer than codes. Keys and
columns are what matrix instructions have sixteen of, rows what they have eight of: few rows are padded to no more.

A code becomes an operand with no conversion where it fits into a half type's mantissa: two of a word at once, as the
upper bits behind a one, so that the operand is ``1 + code / 2^bits``. What the one adds is taken off again in fp32.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.last_block import is_last_block
from rocmend.kernels.language import INTERPRETED, dot, narrow, waited
from rocmend.kernels.ops.attention.attention_decode.kernel import (
    LOG2E,
    NONE,
    finish_scores,
    merge_parts,
    soften,
    span,
)


@triton.constexpr_function
def spare_bits(dtype, bits):
    """Return how many bits of a type's mantissa codes leave, -1 where they are converted instead."""
    mantissa = 7 if dtype == tl.bfloat16 else 10 if dtype == tl.float16 else 0
    return -1 if INTERPRETED.value else max(mantissa - bits, -1)


@triton.jit
def operands(words, one, dtype: tl.constexpr, BITS: tl.constexpr, N: tl.constexpr, WORDS: tl.constexpr):
    """Return codes [N, WORDS * 32 / BITS], or 1 + code / 2^BITS where they fit, in the order that ``element`` tells.

    Codes i and i + HALF of a word become neighbours, and words are dealt out to four lanes: the order in which a lane
    holds the operand of a matrix instruction. ``one`` is twice 1.0 in the type: an argument of the kernel, as two
    constants make two instructions of mask and merge.
    """
    HALF: tl.constexpr = 16 // BITS
    SOME: tl.constexpr = WORDS // 4
    MASK: tl.constexpr = (1 << BITS) - 1
    SPARE: tl.constexpr = spare_bits(dtype, BITS)
    shifts = (tl.arange(0, HALF) * BITS).to(tl.uint32)
    pairs = tl.reshape(words, [N, 4, SOME])[:, :, :, None] >> shifts[None, None, None, :]
    if SPARE >= 0:
        both = ((pairs << SPARE) & ((MASK << SPARE) * 0x10001)) | one.to(tl.uint32, bitcast=True)
        low = (both & 0xFFFF).to(tl.uint16).to(dtype, bitcast=True)
        high = (both >> 16).to(tl.uint16).to(dtype, bitcast=True)
    else:
        low = narrow((pairs & MASK).to(tl.float32), dtype)
        high = narrow(((pairs >> 16) & MASK).to(tl.float32), dtype)
    joined = tl.join(low, high)
    return tl.reshape(tl.permute(joined, 0, 2, 3, 1, 4), [N, WORDS * 2 * HALF])


@triton.jit
def element(at, BITS: tl.constexpr, WORDS: tl.constexpr):
    """Return which code of a group stands at a place of ``operands``."""
    HALF: tl.constexpr = 16 // BITS
    SOME: tl.constexpr = WORDS // 4
    word = (at // 2 % 4) * SOME + at // (8 * HALF)
    return word * (2 * HALF) + at // 8 % HALF + (at % 2) * HALF


@triton.jit
def grouped_kernel(
    q_ptr, kw_ptr, ks_ptr, kb_ptr, vw_ptr, vs_ptr, vb_ptr, mask_ptr, lengths_ptr, acc_ptr, counter_ptr, out_ptr,
    scale, one, capacity, splits, tops, L, q_sb, q_sh, q_sl, kw_sb, kw_sh, kw_ss, ks_sb, ks_sh, ks_ss,
    vw_sb, vw_sh, vw_ss, vs_sb, vs_sh, vs_ss, m_sb, m_sh, m_sl, m_ss,
    KV: tl.constexpr, GROUP: tl.constexpr, D: tl.constexpr, DV: tl.constexpr, GROUP_SIZE: tl.constexpr,
    BITS: tl.constexpr, ROWS: tl.constexpr, BLOCK_N: tl.constexpr, STAGES: tl.constexpr, CAUSAL: tl.constexpr,
    MASK: tl.constexpr, LENGTHS: tl.constexpr, SPLIT: tl.constexpr, LAST: tl.constexpr, LIVE: tl.constexpr,
    SPLITS: tl.constexpr, WIDTH: tl.constexpr, APART: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Scores, running softmax and weighted sum of values of one part of the cache.

    APART: add up a block's products from zero. NVIDIA's matrix units truncate their sums, and what the one of each
    operand contributes is taken off again: behind 1,000 keys the truncation would outweigh the roundings.
    """
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    DTYPE: tl.constexpr = q_ptr.dtype.element_ty
    WORDS: tl.constexpr = GROUP_SIZE * BITS // 32
    AS_IS: tl.constexpr = spare_bits(DTYPE, BITS) >= 0
    STEPS: tl.constexpr = (1 << BITS) if AS_IS else 1
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
    place = element(tl.arange(0, GROUP_SIZE), BITS, WORDS)
    q_row = q_ptr + b * q_sb + head * q_sh + query * q_sl
    qs = ()
    sums = ()
    for g in tl.static_range(D // GROUP_SIZE):
        q = tl.load(q_row[:, None] + (g * GROUP_SIZE + place)[None, :], mask=rows_ok[:, None], other=0.0)
        qs = qs + (tl.trans(q),)
        sums = sums + (tl.sum(q.to(tl.float32), axis=1),)
    accs = ()
    rests = ()
    for _g in tl.static_range(DV // GROUP_SIZE):
        accs = accs + (tl.zeros((GROUP_SIZE, ROWS), tl.float32),)
        rests = rests + (tl.zeros((ROWS, BLOCK_N), tl.float32),)
    mask_row = mask_ptr
    if MASK != NONE:
        mask_row = mask_ptr + (b * m_sb + head * m_sh + query * m_sl)[:, None]
    column = tl.arange(0, BLOCK_N)
    word = tl.arange(0, WORDS)
    kw_base, vw_base = kw_ptr + b * kw_sb + kv * kw_sh, vw_ptr + b * vw_sb + kv * vw_sh
    ks_at, vs_at = b * ks_sb + kv * ks_sh, b * vs_sb + kv * vs_sh
    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    for at in tl.range(start, end, BLOCK_N, num_stages=STAGES):
        n = at + column
        far = n.to(tl.int64)
        inside = n < end
        s = tl.zeros((ROWS, BLOCK_N), tl.float32)
        for g in tl.static_range(D // GROUP_SIZE):
            words = tl.load(
                kw_base + far[:, None] * kw_ss + (g * WORDS + word)[None, :], mask=inside[:, None], other=0
            ).to(tl.uint32, bitcast=True)
            ks = tl.load(ks_ptr + ks_at + far * ks_ss + g, mask=inside, other=0.0).to(tl.float32)
            kb = tl.load(kb_ptr + ks_at + far * ks_ss + g, mask=inside, other=0.0).to(tl.float32)
            codes = operands(words, one, DTYPE, BITS, BLOCK_N, WORDS)
            part = tl.trans(dot(codes, qs[g], tl.zeros((BLOCK_N, ROWS), tl.float32)))
            ks *= STEPS
            if AS_IS:
                kb -= ks
            s += part * ks[None, :] + sums[g][:, None] * kb[None, :]
        s = finish_scores(
            s * (scale * LOG2E), n, position, end, 1.0, 0, mask_row, rows_ok, m_ss, CAUSAL, MASK, False, False
        )
        p, factor, top, total = soften(s, top, total)
        new_accs = ()
        new_rests = ()
        for g in tl.static_range(DV // GROUP_SIZE):
            words = tl.load(
                vw_base + far[:, None] * vw_ss + (g * WORDS + word)[None, :], mask=inside[:, None], other=0
            ).to(tl.uint32, bitcast=True)
            vs = tl.load(vs_ptr + vs_at + far * vs_ss + g, mask=inside, other=0.0).to(tl.float32)
            vb = tl.load(vb_ptr + vs_at + far * vs_ss + g, mask=inside, other=0.0).to(tl.float32)
            weights = narrow(p * (vs * STEPS)[None, :], DTYPE)
            codes = operands(words, one, DTYPE, BITS, BLOCK_N, WORDS)
            acc = accs[g] * factor[None, :]
            if APART:
                zeros = tl.zeros((GROUP_SIZE, ROWS), tl.float32)
                acc += waited(dot(tl.trans(codes), tl.trans(weights), zeros))  # else the compiler makes it one sum
            else:
                acc = dot(tl.trans(codes), tl.trans(weights), acc)
            new_accs = new_accs + (acc,)
            rest = rests[g] * factor[:, None] + p * vb[None, :]
            if AS_IS:
                rest -= weights.to(tl.float32)
            new_rests = new_rests + (rest,)
        accs = new_accs
        rests = new_rests
    # Rows of the output are heads times queries: the tile's are queries times heads.
    base = pair.to(tl.int64) * (GROUP * L)
    for g in tl.static_range(DV // GROUP_SIZE):
        acc = tl.trans(accs[g]) + tl.sum(rests[g], axis=1)[:, None]
        finish_group(
            acc, top, total, length, acc_ptr, out_ptr, base + row % GROUP * L + query, rows_ok, split, splits, tops,
            g * GROUP_SIZE + place, g, DV, SPLIT,
        )  # fmt: skip
    if LAST:
        if is_last_block(counter_ptr + pair * tl.num_programs(1) + tl.program_id(1), splits):
            live = tl.program_id(1) * ROWS + tl.arange(0, LIVE)
            to = base + live % GROUP * L + live // GROUP
            merge_parts(
                acc_ptr, mask_ptr, out_ptr, to, live < GROUP * L, live, splits, tops, length,
                DV, SPLITS, WIDTH, False,
            )  # fmt: skip


@triton.jit
def finish_group(
    acc, top, total, length, acc_ptr, out_ptr, place, rows_ok, split, splits, tops, dv, g,
    DV: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """Store a part's sums of one group, or the output where there is one part."""
    if SPLIT:
        at = place * splits + split
        if g == 0:
            tl.store(acc_ptr + tops + 2 * at, top, mask=rows_ok)
            tl.store(acc_ptr + tops + 2 * at + 1, total, mask=rows_ok)
        tl.store(acc_ptr + at[:, None] * DV + dv[None, :], acc, mask=rows_ok[:, None])
    else:
        out = tl.where(length > 0, acc / total[:, None], 0.0)
        out = narrow(out, out_ptr.dtype.element_ty)
        tl.store(out_ptr + place[:, None] * DV + dv[None, :], out, mask=rows_ok[:, None])
