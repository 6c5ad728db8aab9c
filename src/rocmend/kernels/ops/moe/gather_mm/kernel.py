"""The Triton kernel: tiles of rows that go to the same expert, on the matrix units."""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.common.routing import direct_is_better, route, tiles_at_most
from rocmend.kernels.common.routing_kernels import tile_of
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.language import dot, narrow
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.moe.gather_mm import Problem, shape_class
from rocmend.kernels.ops.moe.gather_mm.function import Arguments
from rocmend.kernels.tuning import config_for


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
    tiles = pairs.count * triton.cdiv(m, height)
    counts, order = None, None
    if not direct:
        tiles = tiles_at_most(pairs.count, m, experts, height)
        counts, order = route(pairs, experts, ordered=given.ordered)
    constants = {
        "HAS_LHS": pairs.lhs is not None, "DIRECT": direct, "ORDERED": order is None,
        "EXPERTS": triton.next_power_of_2(experts),
    }  # fmt: skip
    args = (a, b, out, pairs.lhs, pairs.rhs, order, counts, m, n, k, pairs.divisor, experts, *b.stride())
    launch(grouped_kernel, (tiles * triton.cdiv(n, config["BN"]),), args, constants, config)
    return out
