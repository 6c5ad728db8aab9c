"""Few rows on matrix units: the groups of K are the columns of one product, so that scales follow it.

A row of x stands on the diagonal of a matrix: its first group in the first of eight columns, 0 in the others, its
second group in the second column … The product of a tile of codes with that matrix has one number for each group, which
its scale multiplies. So a matrix instruction serves as many weights as it can, a scale is loaded by the lane that needs
it, and nothing is exchanged between lanes before the end.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.nibbles import (
    factor_of,
    from_pairs,
    offset_of,
    quad_operand,
    quad_pairs,
    quad_words,
    stacked,
)
from rocmend.kernels.common.packing import scale_of
from rocmend.kernels.language import INTERPRETED, dot, narrow


@triton.jit
def _words(
    parts, w_ptr, of_row, slice_of, step, block, words,
    WORDS: tl.constexpr, SLICES: tl.constexpr, EVEN: tl.constexpr, EIGHTS: tl.constexpr,
):  # fmt: skip
    """Add a block of 16 words of EIGHTS times 8 rows of each slice to a tuple: [SLICES * 8, 16] each."""
    at = ((step * SLICES + slice_of) * WORDS + block * 16)[:, None] + tl.arange(0, 16)[None, :]
    for eight in tl.static_range(EIGHTS):
        if EVEN:
            found = tl.load(w_ptr + (of_row[eight] * words)[:, None] + at)
        else:
            found = tl.load(w_ptr + (of_row[eight] * words)[:, None] + at, mask=at < words, other=0)
        parts = parts + (found,)
    return parts


@triton.jit
def _scales(
    parts, scales_ptr, of_row, slice_of, step, groups, SLICES: tl.constexpr, EVEN: tl.constexpr, EIGHTS: tl.constexpr
):
    """Add scales or biases of 8 groups of EIGHTS times 8 rows of each slice to a tuple: [SLICES * 8, 8] each."""
    group = ((step * SLICES + slice_of) * 8)[:, None] + tl.arange(0, 8)[None, :]
    for eight in tl.static_range(EIGHTS):
        # Two at a time: so they come to the lanes that have the product's columns.
        at = tl.max_contiguous((of_row[eight] * groups)[:, None] + group, [1, 2])
        if EVEN:
            found = tl.load(scales_ptr + at)
        else:
            found = tl.load(scales_ptr + at, mask=group < groups, other=0)
        parts = parts + (found,)
    return parts


@triton.jit
def _of_rows(parts, SLICES: tl.constexpr, MATES: tl.constexpr, EIGHTS: tl.constexpr):
    """Return what ``_scales`` loaded as [SLICES, EIGHTS * 8, MATES * 8]."""
    t = tl.permute(tl.reshape(stacked(parts, EIGHTS), [SLICES, 8, 8, EIGHTS]), (0, 3, 1, 2))
    t = tl.broadcast_to(tl.reshape(t, [SLICES, EIGHTS * 8, 1, 8]), [SLICES, EIGHTS * 8, MATES, 8])
    return tl.reshape(t, [SLICES, EIGHTS * 8, MATES * 8])


@triton.jit
def _own(
    row, slice_of, column, step, k,
    SLICES: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Load what each column has of a row of x, a group: for each of the four words of a lane, for each block of words.

    Args:
        row: Pointers to int32: where the row begins.
        slice_of: Slice of each line, [lines].
        column: Column of each line, [lines].
        step: Of K.
        k: Columns of x.
        SLICES: Their number.
        BITS: Of the format.
        GROUP: Of the format.
        EVEN: Whether all of it exists.
    """
    CODES: tl.constexpr = 32 // BITS
    HALF: tl.constexpr = CODES // 2
    place = tl.arange(0, 4 * HALF)
    lane = place // HALF
    found = ()
    for part in tl.static_range((GROUP * BITS + 511) // 512):
        block = _block_of(column, part, BITS, GROUP)
        for j in tl.static_range(4):
            here = ((block[:, None] * 4 + lane[None, :]) * 4 + j) * CODES // GROUP == column[:, None]
            of_slice = (step * SLICES + slice_of) * (4 * GROUP) + block * (16 * HALF)
            at = of_slice[:, None] + (lane * (4 * HALF) + place % HALF)[None, :] + j * HALF
            if not EVEN:
                here = here & (at * 2 < k)
            found = found + (tl.load(row + at, mask=here, other=0),)
    return found


@triton.jit
def _block_of(column, part: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr):
    """Return the block of 16 words in which a part of a column's group lies."""
    return column * (GROUP * BITS) // 512 + part


@triton.jit
def _spread(
    own, block, j: tl.constexpr, SLICES: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, dtype: tl.constexpr
):
    """Return what word j of four lanes of a block meets, on the diagonal: [SLICES, 32, 8]."""
    column = tl.arange(0, 8)[None, None, None, None, :]
    pairs = tl.where(_block_of(column, 0, BITS, GROUP) == block, own[j], 0)
    if GROUP * BITS > 512:
        pairs = tl.where(_block_of(column, 1, BITS, GROUP) == block, own[4 + j], pairs)
    return from_pairs(pairs, SLICES, dtype)


@triton.jit
def _side_by_side(xs, SLICES: tl.constexpr, MATES: tl.constexpr):
    """Return eight columns for each mate: [SLICES, 32, MATES * 8]."""
    if MATES == 1:
        x = xs[0]
    elif MATES == 2:
        x = tl.permute(tl.join(xs[0], xs[1]), (0, 1, 3, 2))
    else:
        x = tl.permute(tl.join(tl.join(xs[0], xs[2]), tl.join(xs[1], xs[3])), (0, 1, 3, 4, 2))
    return tl.reshape(x, [SLICES, 32, MATES * 8])


@triton.jit
def _mates(rhs_ptr, row, m, rows, expert, MATES: tl.constexpr, ROWS: tl.constexpr):
    """Return the number of rows before this one with the same expert, and the next rows with it: ``row`` for none."""
    index = tl.arange(0, ROWS)
    chosen = tl.load(rhs_ptr + index // m, mask=index < rows, other=-1).to(tl.int32)
    same = chosen == expert
    before = tl.sum((same & (index < row)).to(tl.int32), axis=0)
    found = (row,)
    last = row
    for _ in tl.static_range(MATES - 1):
        last = tl.min(tl.where(same & (index > last), index, ROWS), axis=0)
        found = found + (tl.where(last < ROWS, last, row),)
    return before, found


@triton.jit
def diagonal_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, rhs_ptr,
    m, n, k, words, groups, divisor, rows,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, GATED: tl.constexpr, HAS_LHS: tl.constexpr,
    SLICES: tl.constexpr, STEPS: tl.constexpr, EVEN: tl.constexpr, FULL: tl.constexpr, TILES: tl.constexpr,
    MATES: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """TILES * 16 outputs of up to MATES rows of one expert: ``x @ w.T``, or ``silu(x @ w.T) * (x @ up.T)``.

    Each of SLICES wavefronts takes 8 groups of K in a step. Programs: (tiles of n, rows that share a matrix of x, those
    matrices); one whose row is served by an earlier one ends at once. ``words`` and ``groups`` are a row's. EVEN, FULL:
    K and n are whole steps and tiles. ROWS: the power of two from ``rows``.
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    WORDS: tl.constexpr = 8 * GROUP * BITS // 32
    BLOCKS: tl.constexpr = WORDS // 16
    EACH: tl.constexpr = 4 * ((GROUP * BITS + 511) // 512)
    OUTPUTS: tl.constexpr = TILES * 2  # of 8 rows of weights
    EIGHTS: tl.constexpr = OUTPUTS * 2 if GATED else OUTPUTS
    row = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    expert = tl.load(rhs_ptr + row // m).to(tl.int32)
    mates = (row,)
    if MATES > 1:
        before, mates = _mates(rhs_ptr, row, m, rows, expert, MATES, ROWS)
        if before % MATES != 0:
            return
    sources = ()
    for mate in tl.static_range(MATES):
        if HAS_LHS:
            matrix = tl.load(lhs_ptr + mates[mate] // m).to(tl.int64)
        elif mate == 0:
            matrix = tl.program_id(2).to(tl.int64)
        else:
            matrix = (mates[mate] // m // divisor).to(tl.int64)
        source = x_ptr + (matrix * m + mates[mate] % m) * k
        sources = sources + (source.to(tl.pointer_type(tl.int32)),)
    first = tl.program_id(0) * (TILES * 16)
    line = tl.arange(0, SLICES * 8)
    slice_of, column = line // 8, line % 8
    of_row = ()
    for eight in tl.static_range(OUTPUTS):
        # Within an expert's rows 32 bits do.
        one = column + eight * 8
        if not FULL:
            one = tl.minimum(one, n - 1 - first)
        of_row = of_row + (one,)
    weight = expert.to(tl.int64) * n + first
    w_ptr += weight * words
    scales_ptr += weight * groups
    if MODE == "affine":
        biases_ptr += weight * groups
    if GATED:
        up_ptr += weight * words
        up_scales_ptr += weight * groups
        if MODE == "affine":
            up_biases_ptr += weight * groups
    total = tl.zeros([SLICES, EIGHTS * 8, MATES * 8], tl.float32)
    for step in range(STEPS):
        own = ()
        for mate in tl.static_range(MATES):
            own = own + _own(sources[mate], slice_of, column, step, k, SLICES, BITS, GROUP, EVEN)
        scales = _scales((), scales_ptr, of_row, slice_of, step, groups, SLICES, EVEN, OUTPUTS)
        if GATED:
            scales = _scales(scales, up_scales_ptr, of_row, slice_of, step, groups, SLICES, EVEN, OUTPUTS)
        biases = scales
        if MODE == "affine":
            biases = _scales((), biases_ptr, of_row, slice_of, step, groups, SLICES, EVEN, OUTPUTS)
            if GATED:
                biases = _scales(biases, up_biases_ptr, of_row, slice_of, step, groups, SLICES, EVEN, OUTPUTS)
        pairs = ()
        for index in tl.static_range(MATES * EACH):
            pairs = pairs + (quad_pairs(own[index], SLICES, BITS),)
        sums = tl.zeros([SLICES, 16, MATES * 8], tl.float32)
        acc = tl.zeros([SLICES, EIGHTS * 8, MATES * 8], tl.float32)
        # All blocks are under way before the first is waited for.
        for block in tl.range(0, BLOCKS, num_stages=STAGES):
            parts = _words((), w_ptr, of_row, slice_of, step, block, words, WORDS, SLICES, EVEN, OUTPUTS)
            if GATED:
                parts = _words(parts, up_ptr, of_row, slice_of, step, block, words, WORDS, SLICES, EVEN, OUTPUTS)
            sums, acc = _multiply(
                sums, acc, pairs, block, parts, n >> 31, MODE, BITS, GROUP, SLICES, EIGHTS, MATES, dtype
            )
        scale = scale_of(_of_rows(scales, SLICES, MATES, EIGHTS), MODE)
        if MODE == "affine":
            bias = _of_rows(biases, SLICES, MATES, EIGHTS).to(tl.float32)
            # All 16 rows of the sums are the same.
            sums = tl.broadcast_to(tl.reshape(sums, [SLICES, 1, 16, MATES * 8]), [SLICES, EIGHTS // 2, 16, MATES * 8])
            sums = tl.reshape(sums, [SLICES, EIGHTS * 8, MATES * 8])
            total += acc * scale + sums * (bias - offset_of(MODE, BITS, dtype) * scale)
        else:
            total += acc * (scale * factor_of(MODE, dtype))
    out = tl.sum(tl.sum(tl.reshape(total, [SLICES, EIGHTS * 8, MATES, 8]), axis=3), axis=0)
    if GATED:
        out, up = tl.split(tl.permute(tl.reshape(out, [2, OUTPUTS * 8, MATES]), (1, 2, 0)))
        out = out / (1.0 + tl.exp(-out)) * up
    mate = tl.arange(0, MATES)
    into = tl.zeros([MATES], tl.int64) + row
    for index in tl.static_range(1, MATES):
        into = tl.where(mate == index, mates[index].to(tl.int64), into)
    place = first + tl.arange(0, OUTPUTS * 8)
    # A mate that there is not would write what the first one writes.
    there = (place < n)[:, None] & ((mate == 0) | (into != row))[None, :]
    tl.store(out_ptr + into[None, :] * n + place[:, None], narrow(out, out_ptr.dtype.element_ty), mask=there)


@triton.jit
def _multiply(
    sums, acc, pairs, block, parts, zero,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr,
    SLICES: tl.constexpr, EIGHTS: tl.constexpr, MATES: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """Add a block of 16 words of all rows to the groups' sums of x and to the products."""
    EACH: tl.constexpr = 4 * ((GROUP * BITS + 511) // 512)
    words = quad_words(parts, SLICES, EIGHTS)
    for j in tl.static_range(4):
        xs = ()
        for mate in tl.static_range(MATES):
            own = pairs[mate * EACH : (mate + 1) * EACH]
            xs = xs + (_spread(own, block, j, SLICES, BITS, GROUP, dtype),)
        x = _side_by_side(xs, SLICES, MATES)
        if MODE == "affine":
            sums = dot(_ones(zero, SLICES, BITS, dtype), x, sums)
        acc = dot(quad_operand(words[j], zero, SLICES, EIGHTS * 8, MODE, BITS, dtype), x, acc)
    return sums, acc


@triton.jit
def _ones(zero, SLICES: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr):
    """Return what gives Σ x in the other product's layout: 1, or where a code is two nibbles, 1 for one of them."""
    one: tl.constexpr = 0x3C003C00 if dtype == tl.float16 else 0x3F803F80
    pair = tl.zeros([SLICES, 16, 2, 4, 2], tl.int32) + (one + zero)
    if BITS == 8:
        pair = pair & (tl.arange(0, 2) - 1)[None, None, None, None, :]
    v = tl.join(pair.to(tl.int16), (pair >> 16).to(tl.int16)).to(dtype, bitcast=True)
    v = tl.reshape(v, [SLICES, 16, 32])
    return v.to(tl.float32) if INTERPRETED else v
