"""Rows that go to the same expert brought together, without atomics, and multiplied on the matrix units."""

from __future__ import annotations

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.pairs import Pairs
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.language import dot, narrow
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.moe.gather_mm import Problem, shape_class
from rocmend.kernels.ops.moe.gather_mm.function import Arguments
from rocmend.kernels.tuning import Config, config_for

_CONFIG = Config({"BLOCK": 1024, "num_warps": 4})


class Routing(NamedTuple):
    """Pairs by expert.

    Args:
        counts: Pairs of each expert, int32.
        order: Numbers of the pairs, those of an expert side by side; None where they are in that order already.
    """

    counts: torch.Tensor
    order: torch.Tensor | None


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


def route(pairs: Pairs, experts: int, *, ordered: bool) -> Routing:
    """Count the pairs of each expert and order them by expert, unless they are; the host waits for nothing."""
    device = pairs.rhs.device
    counts = allocate.empty((experts,), dtype=torch.int32, device=device)
    constants: dict[str, object] = {}
    launch(count_kernel, (experts,), (pairs.rhs, counts, pairs.count), constants, _CONFIG)
    if ordered:
        return Routing(counts, None)
    order = allocate.empty((pairs.count,), dtype=torch.int32, device=device)
    constants = {"EXPERTS": next_power_of_2(experts)}
    launch(order_kernel, (experts,), (pairs.rhs, counts, order, pairs.count), constants, _CONFIG)
    return Routing(counts, order)


def direct_is_better(count: int, m: int, experts: int, height: int) -> bool:
    """Say whether each pair gets tiles of its own: few pairs share an expert, or one fills tiles by itself."""
    if m == 1:
        return experts * 4 >= count * 3
    return m >= height or experts >= count


def tiles_at_most(count: int, m: int, experts: int, height: int) -> int:
    """Return the most tiles that the rows can take, whatever their experts are: each may leave one that is not full."""
    return count * m // height + min(experts, count)


@triton.jit
def grouped_kernel(
    a_ptr, b_ptr, out_ptr, lhs_ptr, rhs_ptr, order_ptr, counts_ptr,
    m, n, k, divisor, experts, b_batch, b_row, b_column,
    HAS_LHS: tl.constexpr, DIRECT: tl.constexpr, ORDERED: tl.constexpr, EXPERTS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A tile of BM rows and BN columns of ``a @ b``.

    DIRECT: the tiles of a pair follow each other, whatever its expert is; nothing has been counted. Otherwise a tile
    holds rows of one expert; the grid is as large as the most tiles that there can be, and those too many end at once.
    """
    blocks = tl.cdiv(n, BN)
    number = tl.program_id(0) // blocks
    column = (tl.program_id(0) % blocks) * BN + tl.arange(0, BN)
    if DIRECT:
        tiles = tl.cdiv(m, BM)
        pair = number // tiles
        expert = tl.load(rhs_ptr + pair).to(tl.int32)
        row = (number % tiles) * BM + tl.arange(0, BM)
        inside = row < m
        pairs = tl.zeros([BM], tl.int32) + pair
    else:
        expert, first, rows, before = tile_of(number, counts_ptr, experts, m, EXPERTS, BM)
        if expert >= experts:
            return
        row = first + tl.arange(0, BM)
        inside = row < rows
        pairs = before + row // m
        row = row % m
        if not ORDERED:
            pairs = tl.load(order_ptr + pairs, mask=inside, other=0)
    if HAS_LHS:
        matrix = tl.load(lhs_ptr + pairs, mask=inside, other=0).to(tl.int64)
    else:
        matrix = (pairs // divisor).to(tl.int64)
    a_rows = a_ptr + (matrix * m + row)[:, None] * k
    b_columns = b_ptr + expert.to(tl.int64) * b_batch + column.to(tl.int64)[None, :] * b_column
    total = tl.zeros([BM, BN], tl.float32)
    for start in tl.range(0, k, BK, num_stages=STAGES):
        place = start + tl.arange(0, BK)
        a = tl.load(a_rows + place[None, :], mask=inside[:, None] & (place < k)[None, :], other=0.0)
        there = (place < k)[:, None] & (column < n)[None, :]
        b = tl.load(b_columns + place.to(tl.int64)[:, None] * b_row, mask=there, other=0.0)
        total = dot(a, b, total)
    out = out_ptr + (pairs.to(tl.int64) * m + row)[:, None] * n + column[None, :]
    tl.store(out, narrow(total, out_ptr.dtype.element_ty), mask=inside[:, None] & (column < n)[None, :])


def run(given: Arguments) -> Tensor:
    """Multiply; see ``function.gather_mm``."""
    a, b, pairs = given.a, given.b, given.pairs
    (_, m, k), (experts, _, n) = a.shape, b.shape
    out = allocate.empty((pairs.count, m, n), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    if k == 0:
        return out.zero_()
    problem = Problem(NAMES[a.dtype], pairs.count, m, n, k, experts)
    config = config_for("gather_mm", "grouped", shape_class(problem), executor.target_for(a.device))
    height = config["BM"]
    direct = direct_is_better(pairs.count, m, experts, height)
    tiles = pairs.count * cdiv(m, height)
    counts, order = None, None
    if not direct:
        tiles = tiles_at_most(pairs.count, m, experts, height)
        counts, order = route(pairs, experts, ordered=given.ordered)
    constants = {
        "HAS_LHS": pairs.lhs is not None, "DIRECT": direct, "ORDERED": order is None,
        "EXPERTS": next_power_of_2(experts),
    }  # fmt: skip
    args = (a, b, out, pairs.lhs, pairs.rhs, order, counts, m, n, k, pairs.divisor, experts, *b.stride())
    launch(grouped_kernel, (tiles * cdiv(n, config["BN"]),), args, constants, config)
    return out
