"""Many rows on NVIDIA's matrix units: a tile of an expert's weights is unpacked once for all of its rows in a tile.

What is loaded is what the matrix units take: x comes in the order in which a lane unpacks a word, so that the weights
go from the registers that they were unpacked in; of an affine format, the biases meet the groups' sums of x at the end.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.scaled_pairs import packed_scales, pair_scales, pair_thirds, scaled_halves, scaled_operand
from rocmend.kernels.language import INTERPRETED, dot, narrow, waited


@triton.jit
def _raw(rows, step, groups, GROUPS: tl.constexpr, PACKED: tl.constexpr, EVEN: tl.constexpr):
    """Load GROUPS scales or biases of each row, from ``step * GROUPS`` on."""
    if PACKED:
        found = tl.load(rows + step * (GROUPS // 2) + tl.arange(0, GROUPS // 2)[None, :])
    else:
        group = step * GROUPS + tl.arange(0, GROUPS)[None, :]
        if EVEN:
            found = tl.load(rows + group)
        else:
            found = tl.load(rows + group, mask=group < groups, other=0)
    return found


@triton.jit
def _raws(
    rows, bias_rows, step, groups,
    GROUPS: tl.constexpr, PACKED: tl.constexpr, EVEN: tl.constexpr, BIASED: tl.constexpr,
):  # fmt: skip
    """Load a step's scales, and its biases where they are added to each weight."""
    found = (_raw(rows, step, groups, GROUPS, PACKED, EVEN),)
    if BIASED:
        found = found + (_raw(bias_rows, step, groups, GROUPS, PACKED, EVEN),)
    return found


@triton.jit
def _scales(raw, MODE: tl.constexpr, GROUPS: tl.constexpr, PACKED: tl.constexpr, BN: tl.constexpr, dtype: tl.constexpr):
    """Return what ``_raw`` loaded as the operands take it."""
    if PACKED:
        found = packed_scales(raw, BN, GROUPS, dtype)
    else:
        found = pair_scales(raw, MODE)
    return found


@triton.jit
def _tile(
    w_rows, raws, step, words,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, PACKED: tl.constexpr, HALVES: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, EVEN: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """Return weights of BN rows, BK columns from ``step * BK`` on: one operand, or where HALVES that of each half."""
    WORDS: tl.constexpr = BK * BITS // 32
    GROUPS: tl.constexpr = BK // GROUP
    word = step * WORDS + tl.arange(0, WORDS)[None, :]
    if EVEN:
        packed = tl.load(w_rows + word)
    else:
        packed = tl.load(w_rows + word, mask=word < words, other=0)
    scale = _scales(raws[0], MODE, GROUPS, PACKED, BN, dtype)
    if MODE == "affine" and dtype == tl.float16:
        third = _scales(raws[1], MODE, GROUPS, PACKED, BN, dtype)
    else:
        third = pair_thirds(scale, MODE, BITS)
    if HALVES:
        operands = scaled_halves(packed, scale, third, BN, GROUPS, MODE, BITS, dtype)
    else:
        operands = (scaled_operand(packed, scale, third, BN, WORDS, GROUPS, MODE, BITS, dtype),)
    return operands


@triton.jit
def _x(at, step, inside, place, padded, BK: tl.constexpr, HALVES: tl.constexpr, EVEN: tl.constexpr):
    """Load what the operands of ``_tile`` meet."""
    parts = ()
    for part in tl.static_range(2 if HALVES else 1):
        first = step * BK + part * (BK // 2)
        if EVEN:
            x = tl.load(at + first, mask=inside[None, :], other=0.0)
        else:
            x = tl.load(at + first, mask=inside[None, :] & (first + place < padded), other=0.0)
        if INTERPRETED:
            x = x.to(tl.float32)
        parts = parts + (x,)
    return parts


@triton.jit
def _added(total, tile, x, HALVES: tl.constexpr):
    """Add a step's products; each is waited for, as the registers of its first operand are used again."""
    total = waited(dot(tile[0], x[0], total))
    if HALVES:
        total = waited(dot(tile[1], x[1], total))
    return total


@triton.jit
def _scale_rows(scales_ptr, weight, groups, PACKED: tl.constexpr):
    """Return pointers to rows of scales: to two at a time where PACKED."""
    if PACKED:
        rows = scales_ptr.to(tl.pointer_type(tl.int32)) + weight * (groups // 2)
    else:
        rows = scales_ptr + weight * groups
    return rows


@triton.jit
def _biases(total, bias_rows, sums_at, groups, inside, BG: tl.constexpr):
    """Add the biases' share to the products: each group's bias times its sum of x, which is in two parts."""
    group = tl.arange(0, BG)
    bias = tl.load(bias_rows + group[None, :], mask=(group < groups)[None, :], other=0.0)
    there = inside[None, :] & (group < groups)[:, None]
    high = tl.load(sums_at + group[:, None], mask=there, other=0.0)
    low = tl.load(sums_at + groups + group[:, None], mask=there, other=0.0)
    if INTERPRETED:
        bias, high, low = bias.to(tl.float32), high.to(tl.float32), low.to(tl.float32)
    total = dot(bias, high, total)
    return dot(bias, low, total)


@triton.jit
def _rows(
    x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, pairs_ptr,
    first, rows, weight, column, m, n, padded, words, groups, divisor, matrices,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, GATED: tl.constexpr, HAS_LHS: tl.constexpr,
    EVEN: tl.constexpr, PACKED: tl.constexpr, BG: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    STAGES: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Compute a tile of at most BM rows, from row ``first`` of the pairs that ``pairs_ptr`` points to."""
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    row = first + tl.arange(0, BM)
    inside = tl.arange(0, BM) < rows
    pairs = tl.load(pairs_ptr + row // m, mask=inside, other=0)
    row = row % m
    if HAS_LHS:
        matrix = tl.load(lhs_ptr + pairs, mask=inside, other=0).to(tl.int64)
    else:
        matrix = (pairs // divisor).to(tl.int64)
    source = matrix * m + row
    w_rows, scale_rows = w_ptr + weight * words, _scale_rows(scales_ptr, weight, groups, PACKED)
    bias_rows, up_rows, up_scale_rows, up_bias_rows = scale_rows, w_rows, scale_rows, scale_rows
    if MODE == "affine":
        bias_rows = _scale_rows(biases_ptr, weight, groups, PACKED)
    if GATED:
        up_rows, up_scale_rows = up_ptr + weight * words, _scale_rows(up_scales_ptr, weight, groups, PACKED)
        if MODE == "affine":
            up_bias_rows = _scale_rows(up_biases_ptr, weight, groups, PACKED)
    GROUPS: tl.constexpr = BK // GROUP
    BIASED: tl.constexpr = MODE == "affine" and dtype == tl.float16
    # Half of a step is unpacked while the other half is multiplied, and takes half the registers.
    HALVES: tl.constexpr = EVEN and BK * BITS == 512
    place = tl.arange(0, BK // 2 if HALVES else BK)[:, None]
    x_at = x_ptr + source[None, :] * padded + place
    total = tl.zeros([BN, BM], tl.float32)
    total_up = tl.zeros([BN, BM], tl.float32)
    steps = tl.cdiv(padded, BK)
    if AHEAD:
        next_raws = _raws(scale_rows, bias_rows, 0, groups, GROUPS, PACKED, EVEN, BIASED)
        next_up_raws = next_raws
        if GATED:
            next_up_raws = _raws(up_scale_rows, up_bias_rows, 0, groups, GROUPS, PACKED, EVEN, BIASED)
    for step in tl.range(0, steps, num_stages=STAGES):
        if AHEAD:
            raws, up_raws = next_raws, next_up_raws
            later = tl.minimum(step + 1, steps - 1)
            next_raws = _raws(scale_rows, bias_rows, later, groups, GROUPS, PACKED, EVEN, BIASED)
            if GATED:
                next_up_raws = _raws(up_scale_rows, up_bias_rows, later, groups, GROUPS, PACKED, EVEN, BIASED)
            else:
                next_up_raws = next_raws
        else:
            raws = _raws(scale_rows, bias_rows, step, groups, GROUPS, PACKED, EVEN, BIASED)
            up_raws = raws
            if GATED:
                up_raws = _raws(up_scale_rows, up_bias_rows, step, groups, GROUPS, PACKED, EVEN, BIASED)
        x = _x(x_at, step, inside, place, padded, BK, HALVES, EVEN)
        tile = _tile(w_rows, raws, step, words, MODE, BITS, GROUP, PACKED, HALVES, BN, BK, EVEN, dtype)
        total = _added(total, tile, x, HALVES)
        if GATED:
            tile = _tile(up_rows, up_raws, step, words, MODE, BITS, GROUP, PACKED, HALVES, BN, BK, EVEN, dtype)
            total_up = _added(total_up, tile, x, HALVES)
    if MODE == "affine" and dtype == tl.bfloat16:
        sums_at = x_ptr + (matrices.to(tl.int64) * m * padded + source[None, :] * (2 * groups))
        total = _biases(total, biases_ptr + weight * groups, sums_at, groups, inside, BG)
        if GATED:
            total_up = _biases(total_up, up_biases_ptr + weight * groups, sums_at, groups, inside, BG)
    if GATED:
        total = total / (1.0 + tl.exp(-total)) * total_up
    out = out_ptr + (pairs.to(tl.int64) * m + row)[None, :] * n + column[:, None]
    tl.store(out, narrow(total, out_ptr.dtype.element_ty), mask=inside[None, :] & (column < n)[:, None])


@triton.jit
def tiles_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, table_ptr,
    m, n, padded, words, groups, divisor, matrices, slots,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, GATED: tl.constexpr, HAS_LHS: tl.constexpr,
    EVEN: tl.constexpr, PACKED: tl.constexpr, BG: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    STAGES: tl.constexpr, HALVED: tl.constexpr, AHEAD: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """A tile of BM rows of one expert and BN columns of ``x @ w.T``, or of ``silu(x @ w.T) * (x @ up.T)``.

    x and the table are those of ``prepare_kernel``: x in the order of unpacked words, [matrices * m, padded], then the
    groups' sums in two parts; a table of tiles, some without rows, then the pairs by expert. Programs: (tiles · blocks
    of n). BG: a power of two, from the groups on. HALVED: a tile with half the rows or fewer takes half the products.
    PACKED: scales are loaded two at a time: K is whole steps of an even number of groups. AHEAD: they are loaded into
    registers a step before, as a lane has too few of them to be copied to LDS without waiting. PDL: as there.
    """
    if PDL:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    blocks = tl.cdiv(n, BN)
    entry = table_ptr + tl.program_id(0) // blocks * 4
    rows = tl.load(entry + 3)
    if rows <= 0:
        return
    expert = tl.load(entry).to(tl.int64)
    first = tl.load(entry + 2)
    pairs_ptr = table_ptr + slots * 4 + tl.load(entry + 1)
    column = tl.program_id(0) % blocks * BN + tl.arange(0, BN)
    weight = (expert * n + tl.minimum(column, n - 1))[:, None]
    if HALVED and rows <= BM // 2:
        _rows(
            x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, pairs_ptr,
            first, rows, weight, column, m, n, padded, words, groups, divisor, matrices,
            MODE, BITS, GROUP, GATED, HAS_LHS, EVEN, PACKED, BG, BM // 2, BN, BK, STAGES, AHEAD,
        )  # fmt: skip
    else:
        _rows(
            x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, pairs_ptr,
            first, rows, weight, column, m, n, padded, words, groups, divisor, matrices,
            MODE, BITS, GROUP, GATED, HAS_LHS, EVEN, PACKED, BG, BM, BN, BK, STAGES, AHEAD,
        )  # fmt: skip
