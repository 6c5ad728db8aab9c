"""Many rows against weights that are packed along the columns of the result: ``x @ w``, as a gradient needs it."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.weights import weight_tile
from rocmend.kernels.language import dot, narrow


@triton.jit
def columns_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, lhs_ptr, table_ptr, m, n, k, words, groups, divisor, slots,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, HAS_LHS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WIDE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """A tile of BM rows of one expert and BN columns of ``x @ w``; the table is that of ``arrange_kernel``.

    Programs: (tiles · blocks of n). ``words`` and ``groups`` are a row's.
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    blocks = tl.cdiv(n, BN)
    entry = table_ptr + tl.program_id(0) // blocks * 4
    rows = tl.load(entry + 3)
    if rows <= 0:
        return
    first_row = tl.load(entry).to(tl.int64) * k
    row = tl.load(entry + 2) + tl.arange(0, BM)
    inside = tl.arange(0, BM) < rows
    pairs = tl.load(table_ptr + slots * 4 + tl.load(entry + 1) + row // m, mask=inside, other=0)
    row = row % m
    if HAS_LHS:
        matrix = tl.load(lhs_ptr + pairs, mask=inside, other=0).to(tl.int64)
    else:
        matrix = (pairs // divisor).to(tl.int64)
    x_rows = x_ptr + (matrix * m + row) * k
    column = tl.program_id(0) % blocks * BN
    total = tl.zeros([BM, BN], tl.float32)
    for start in tl.range(0, k, BK, num_stages=STAGES):
        place = start + tl.arange(0, BK)
        x = tl.load(x_rows[:, None] + place[None, :], mask=inside[:, None] & (place < k)[None, :], other=0.0)
        weight = (first_row + place)[:, None]
        bias_rows = scales_ptr + weight * groups
        if MODE == "affine":
            bias_rows = biases_ptr + weight * groups
        tile = weight_tile(
            w_ptr + weight * words, scales_ptr + weight * groups, bias_rows, column, n, (place < k)[:, None],
            dtype, MODE, BITS, GROUP, BK, BN, WIDE,
        )  # fmt: skip
        total = dot(x, tile, total)
    target = column + tl.arange(0, BN)
    out = out_ptr + (pairs.to(tl.int64) * m + row)[:, None] * n + target[None, :]
    tl.store(out, narrow(total, out_ptr.dtype.element_ty), mask=inside[:, None] & (target < n)[None, :])
