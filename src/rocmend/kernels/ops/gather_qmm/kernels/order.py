"""What comes before ``resident``, in one launch: pairs by expert, and x as tiles take it."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def _places_of(
    expert, rhs_ptr, table_ptr, pairs, experts, divisor, BLOCK: tl.constexpr, ONCE: tl.constexpr, ORDERED: tl.constexpr
):
    """Write how many pairs the experts before one have, and behind all of those its pairs and their rows of x."""
    order_ptr = table_ptr + experts + 1
    less = tl.zeros([BLOCK], tl.int32)
    for start in range(0, pairs, BLOCK):
        pair = start + tl.arange(0, BLOCK)
        chosen = tl.load(rhs_ptr + pair, mask=pair < pairs, other=experts).to(tl.int32)
        less += (chosen < expert).to(tl.int32)
    before = tl.sum(less, axis=0)
    tl.store(table_ptr + expert, before)
    if expert == 0:
        tl.store(table_ptr + experts, pairs)
    for start in range(0, pairs, BLOCK):
        pair = start + tl.arange(0, BLOCK)
        chosen = tl.load(rhs_ptr + pair, mask=pair < pairs, other=experts).to(tl.int32)
        hit = (chosen == expert).to(tl.int32)
        place = pair
        if not ORDERED:
            place = before + tl.cumsum(hit, axis=0) - 1
        tl.store(order_ptr + place, pair, mask=hit != 0)
        tl.store(order_ptr + pairs + place, pair // divisor, mask=hit != 0)
        if not ONCE:
            before += tl.sum(hit, axis=0)


@triton.jit
def order_kernel(
    x_ptr, rhs_ptr, ordered_ptr, table_ptr, pairs, experts, rows, k, width, divisor,
    BITS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr, ONCE: tl.constexpr, ORDERED: tl.constexpr,
    LINES: tl.constexpr, WIDTH: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Order pairs and rows of x. Programs: (experts + rows of x, LINES at a time).

    Args:
        x_ptr: [rows, k].
        rhs_ptr: [pairs], each pair's expert.
        ordered_ptr: [rows, width]: x in the order of unpacked words, that of ``place_in_order``; behind it, of
            32 groups and then of the next 32, the sums of x rounded and what is left of them.
        table_ptr: [experts + 1 + 2 * pairs]: pairs before each expert's, and all; pairs by expert; their rows of x.
        pairs: Their number.
        experts: Their number.
        rows: Of x.
        k: Columns of x, a multiple of 16 words' codes.
        width: Of a row of x in order: k, and 64 for each 32 groups where GROUP.
        divisor: Pairs of a row of x.
        BITS: Of a code.
        GROUP: Columns that a sum is of; 0 for none.
        BLOCK: Pairs that are looked at at a time.
        ONCE: That is all of them.
        ORDERED: Pairs are by expert already.
        LINES: Rows of x of a program.
        WIDTH: Columns that are brought into order at a time.
        PDL: It and what follows it are launched while what is before them still runs.
    """
    if PDL:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    if program < experts:
        _places_of(program, rhs_ptr, table_ptr, pairs, experts, divisor, BLOCK, ONCE, ORDERED)
    else:
        # Of 16 words: lanes, words of a lane, halves of a word, codes of a half; neighbours are loaded and stored.
        CODES: tl.constexpr = 32 // BITS
        line = (program - experts) * LINES + tl.arange(0, LINES)
        row = line.to(tl.int64)[:, None] * k
        to = line.to(tl.int64)[:, None] * width
        for start in range(0, k, WIDTH):
            place = start + tl.arange(0, WIDTH)[None, :]
            inside = (line < rows)[:, None] & (place < k)
            given = tl.load(x_ptr + row + place, mask=inside, other=0.0)
            x = tl.reshape(given, [LINES, WIDTH // (16 * CODES), 4, 4, 2, CODES // 2])
            x = tl.reshape(tl.permute(x, (0, 1, 3, 5, 2, 4)), [LINES, WIDTH])
            tl.store(ordered_ptr + to + place, x, mask=inside)
            if GROUP > 0:
                total = tl.sum(tl.reshape(given.to(tl.float32), [LINES, WIDTH // GROUP, GROUP]), axis=2)
                high = narrow(total, ordered_ptr.dtype.element_ty)
                low = narrow(total - high.to(tl.float32), ordered_ptr.dtype.element_ty)
                group = start // GROUP + tl.arange(0, WIDTH // GROUP)[None, :]
                at = ordered_ptr + to + k + group // 32 * 64 + group % 32
                there = (line < rows)[:, None] & (k + group // 32 * 64 < width)
                tl.store(at, high, mask=there)
                tl.store(at + 32, low, mask=there)
        if GROUP > 0:
            # Up to 32 groups there are zeros.
            group = tl.cdiv(k, WIDTH) * (WIDTH // GROUP) + tl.arange(0, 32)[None, :]
            at = ordered_ptr + to + k + group // 32 * 64 + group % 32
            there = (line < rows)[:, None] & (k + group // 32 * 64 < width)
            nothing = tl.zeros([LINES, 32], ordered_ptr.dtype.element_ty)
            tl.store(at, nothing, mask=there)
            tl.store(at + 32, nothing, mask=there)
