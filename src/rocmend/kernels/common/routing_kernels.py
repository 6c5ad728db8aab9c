"""Bring rows that go to the same expert together, on the device: no atomics, so the order is always the same."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def count_kernel(expert_ptr, counts_ptr, pairs, BLOCK: tl.constexpr):
    """One program an expert: how many of the pairs go to it."""
    expert = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.int32)
    for start in range(0, pairs, BLOCK):
        pair = start + tl.arange(0, BLOCK)
        chosen = tl.load(expert_ptr + pair, mask=pair < pairs, other=-1).to(tl.int32)
        total += (chosen == expert).to(tl.int32)
    tl.store(counts_ptr + expert, tl.sum(total, axis=0))


@triton.jit
def order_kernel(expert_ptr, counts_ptr, order_ptr, pairs, BLOCK: tl.constexpr, EXPERTS: tl.constexpr):
    """One program an expert: the numbers of its pairs, in ascending order, behind those of the experts before it."""
    expert = tl.program_id(0)
    before = tl.arange(0, EXPERTS)
    place = tl.sum(tl.load(counts_ptr + before, mask=before < expert, other=0), axis=0)
    for start in range(0, pairs, BLOCK):
        pair = start + tl.arange(0, BLOCK)
        chosen = tl.load(expert_ptr + pair, mask=pair < pairs, other=-1).to(tl.int32)
        hit = (chosen == expert).to(tl.int32)
        rank = tl.cumsum(hit, axis=0)
        tl.store(order_ptr + place + rank - 1, pair, mask=hit != 0)
        place += tl.sum(hit, axis=0)


@triton.jit
def tile_of(number, counts_ptr, experts, each, EXPERTS: tl.constexpr, BM: tl.constexpr):
    """Return which expert a tile of BM rows belongs to, its first row there, that expert's rows and its first pair.

    The tiles of an expert follow those of the experts before it; past the last tile the expert is ``experts``.

    Args:
        number: Of the tile.
        counts_ptr: Pairs of each expert, [experts].
        experts: Their number.
        each: Rows of a pair.
        EXPERTS: The power of two from there on.
        BM: Rows of a tile.
    """
    index = tl.arange(0, EXPERTS)
    counts = tl.load(counts_ptr + index, mask=index < experts, other=0)
    tiles = (counts * each + BM - 1) // BM
    ends = tl.cumsum(tiles, axis=0)
    expert = tl.minimum(tl.sum((ends <= number).to(tl.int32), axis=0), experts)
    before = index < expert
    first = number - tl.sum(tl.where(before, tiles, 0), axis=0)
    rows = tl.sum(tl.where(index == expert, counts, 0), axis=0) * each
    return expert, first * BM, rows, tl.sum(tl.where(before, counts, 0), axis=0)
