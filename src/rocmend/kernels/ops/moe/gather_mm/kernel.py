"""The Triton kernel: tiles of rows that go to the same expert, on the matrix units."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.routing_kernels import tile_of
from rocmend.kernels.language import dot, narrow


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
