"""What comes before many rows, in one launch: pairs by expert, a table of tiles, x as the kernel behind it takes it."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.scaled_pairs import place_in_order
from rocmend.kernels.language import narrow


@triton.jit
def _route(
    expert, rhs_ptr, order_ptr, table_ptr, pairs, m, experts,
    BM: tl.constexpr, BLOCK: tl.constexpr, ONCE: tl.constexpr, ORDERED: tl.constexpr,
):  # fmt: skip
    """Write the numbers of an expert's pairs behind those of the experts before it, and its tiles.

    Without knowing the tiles of the others: they cannot be more than its first row, in tiles, and one for each. Places
    that are left over become tiles without rows. ONCE: a block holds all pairs. ORDERED: they are by expert already.
    """
    if ONCE:
        pair = tl.arange(0, BLOCK)
        chosen = tl.load(rhs_ptr + pair, mask=pair < pairs, other=experts).to(tl.int32)
        hit = (chosen == expert).to(tl.int32)
        before, mine = tl.sum((chosen < expert).to(tl.int32), axis=0), tl.sum(hit, axis=0)
        place = pair
        if not ORDERED:
            place = before + tl.cumsum(hit, axis=0) - 1
        tl.store(order_ptr + place, pair, mask=hit != 0)
    else:
        less = tl.zeros([BLOCK], tl.int32)
        equal = tl.zeros([BLOCK], tl.int32)
        for start in range(0, pairs, BLOCK):
            pair = start + tl.arange(0, BLOCK)
            chosen = tl.load(rhs_ptr + pair, mask=pair < pairs, other=experts).to(tl.int32)
            less += (chosen < expert).to(tl.int32)
            equal += (chosen == expert).to(tl.int32)
        before, mine = tl.sum(less, axis=0), tl.sum(equal, axis=0)
        place = before
        for start in range(0, pairs, BLOCK):
            pair = start + tl.arange(0, BLOCK)
            chosen = tl.load(rhs_ptr + pair, mask=pair < pairs, other=experts).to(tl.int32)
            hit = (chosen == expert).to(tl.int32)
            tl.store(order_ptr + place + tl.cumsum(hit, axis=0) - 1, pair, mask=hit != 0)
            place += tl.sum(hit, axis=0)
    first, end = before * m // BM + expert, (before + mine) * m // BM + expert + 1
    for start in range(first, end, 64):
        slot = start + tl.arange(0, 64)
        row = (slot - first) * BM
        entry, there = table_ptr + slot * 4, slot < end
        tl.store(entry, tl.zeros([64], tl.int32) + expert, mask=there)
        tl.store(entry + 1, tl.zeros([64], tl.int32) + before, mask=there)
        tl.store(entry + 2, row, mask=there)
        tl.store(entry + 3, tl.minimum(mine * m - row, BM), mask=there)


@triton.jit
def _reorder(
    row, x_ptr, ordered_ptr, sums_ptr, k, padded, groups,
    BITS: tl.constexpr, GROUP: tl.constexpr, SUMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write a row of x in the order of unpacked words, 0 behind its end, and its groups' sums in two parts."""
    for start in range(0, padded, BLOCK):
        place = start + tl.arange(0, BLOCK)
        source = place_in_order(place, BITS)
        x = tl.load(x_ptr + row * k + source, mask=source < k, other=0.0).to(tl.float32)
        tl.store(ordered_ptr + row * padded + place, narrow(x, ordered_ptr.dtype.element_ty), mask=place < padded)
    if SUMS:
        GROUPS: tl.constexpr = BLOCK // GROUP
        for start in range(0, groups, GROUPS):
            group = start + tl.arange(0, GROUPS)
            at = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
            x = tl.load(x_ptr + row * k + at, mask=(group < groups)[:, None], other=0.0).to(tl.float32)
            total = tl.sum(x, axis=1)
            high = narrow(total, sums_ptr.dtype.element_ty)
            low = narrow(total - high.to(tl.float32), sums_ptr.dtype.element_ty)
            tl.store(sums_ptr + row * 2 * groups + group, high, mask=group < groups)
            tl.store(sums_ptr + (row * 2 + 1) * groups + group, low, mask=group < groups)


@triton.jit
def prepare_kernel(
    x_ptr, rhs_ptr, ordered_ptr, table_ptr, pairs, m, experts, k, padded, groups, rows, slots,
    BITS: tl.constexpr, GROUP: tl.constexpr, SUMS: tl.constexpr, BM: tl.constexpr, BLOCK: tl.constexpr,
    ONCE: tl.constexpr, ORDERED: tl.constexpr, WIDTH: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Order pairs and rows of x. Programs: (experts + rows of x).

    The table's entries are an expert, its first pair, a tile's first row of that expert and its rows, [slots, 4];
    behind it are the pairs by expert. Behind x [rows, padded] are the sums, [rows, 2, groups], where SUMS. PDL: it and
    what follows it are launched while what is before them still runs.
    """
    if PDL:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    if program < experts:
        _route(program, rhs_ptr, table_ptr + slots * 4, table_ptr, pairs, m, experts, BM, BLOCK, ONCE, ORDERED)
    else:
        row = (program - experts).to(tl.int64)
        sums_ptr = ordered_ptr + rows.to(tl.int64) * padded
        _reorder(row, x_ptr, ordered_ptr, sums_ptr, k, padded, groups, BITS, GROUP, SUMS, WIDTH)


@triton.jit
def arrange_kernel(
    x_ptr, rhs_ptr, ordered_ptr, sums_ptr, table_ptr, pairs, m, experts, k, slots,
    BITS: tl.constexpr, PAIRED: tl.constexpr, SUMS: tl.constexpr, BK: tl.constexpr, BM: tl.constexpr,
    BLOCK: tl.constexpr, ONCE: tl.constexpr, ORDERED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Order pairs, as ``prepare_kernel`` does, and prepare x. Programs: (experts + rows of x, if they are prepared).

    SUMS: of each BK columns in fp32, [rows, k / BK]. PAIRED: x is copied in the order in which two codes at a time
    leave a word: the one at a place of its lower half, then that of its upper half.
    """
    program = tl.program_id(0)
    if program < experts:
        _route(program, rhs_ptr, table_ptr + slots * 4, table_ptr, pairs, m, experts, BM, BLOCK, ONCE, ORDERED)
    else:
        row = (program - experts).to(tl.int64)
        UNITS: tl.constexpr = WIDTH // BK
        CODES: tl.constexpr = 32 // BITS
        for start in range(0, k, WIDTH):
            unit = start // BK + tl.arange(0, UNITS)
            place = unit[:, None] * BK + tl.arange(0, BK)[None, :]
            source = place
            if PAIRED:
                source = place // CODES * CODES + place % 2 * (CODES // 2) + place % CODES // 2
            x = tl.load(x_ptr + row * k + source, mask=place < k, other=0.0).to(tl.float32)
            if SUMS:
                tl.store(sums_ptr + row * (k // BK) + unit, tl.sum(x, axis=1), mask=unit < k // BK)
            if PAIRED:
                tl.store(ordered_ptr + row * k + place, narrow(x, ordered_ptr.dtype.element_ty), mask=place < k)
