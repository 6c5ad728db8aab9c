"""Many rows: tiles of rows that go to the same expert, against tiles of its weights, on the matrix units."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.routing_kernels import tile_of
from rocmend.kernels.common.weights import weight_tile
from rocmend.kernels.language import dot, narrow, waited


@triton.jit
def grouped_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr,
    lhs_ptr, rhs_ptr, order_ptr, counts_ptr, m, n, k, words, groups, divisor, experts,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, GATED: tl.constexpr, TRANSPOSE: tl.constexpr,
    HAS_LHS: tl.constexpr, DIRECT: tl.constexpr, ORDERED: tl.constexpr, EXPERTS: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WIDE: tl.constexpr, STAGES: tl.constexpr,
    WAITED: tl.constexpr,
):  # fmt: skip
    """A tile of BM rows and BN columns of ``x @ w`` or ``x @ w.T``, or of ``silu(x @ w.T) * (x @ up.T)``.

    DIRECT: the tiles of a pair follow each other, whatever its expert is; nothing has been counted. Otherwise a tile
    holds rows of one expert; the grid is as large as the most tiles that there can be, and those too many end at once.
    ``words`` and ``groups`` are a row's. WAITED: see ``waited``.
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    blocks = tl.cdiv(n, BN)
    number = tl.program_id(0) // blocks
    column = (tl.program_id(0) % blocks) * BN
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
    x_rows = x_ptr + (matrix * m + row) * k
    of_rows = n
    if not TRANSPOSE:
        of_rows = k
    first_row = expert.to(tl.int64) * of_rows
    target = column + tl.arange(0, BN)
    if TRANSPOSE:
        # As w @ x.T: the matrix units take the weights from the registers that they were unpacked in.
        weight = (first_row + target)[:, None]
        exists = (target < n)[:, None]
        bias_rows = scales_ptr + weight * groups
        up_rows = w_ptr + weight * words
        up_scale_rows = bias_rows
        up_bias_rows = bias_rows
        if MODE == "affine":
            bias_rows = biases_ptr + weight * groups
        if GATED:
            up_rows = up_ptr + weight * words
            up_scale_rows = up_scales_ptr + weight * groups
            if MODE == "affine":
                up_bias_rows = up_biases_ptr + weight * groups
        total = tl.zeros([BN, BM], tl.float32)
        total_up = tl.zeros([BN, BM], tl.float32)
        for start in tl.range(0, k, BK, num_stages=STAGES):
            place = start + tl.arange(0, BK)
            x = tl.load(x_rows[None, :] + place[:, None], mask=inside[None, :] & (place < k)[:, None], other=0.0)
            tile = weight_tile(
                w_ptr + weight * words, scales_ptr + weight * groups, bias_rows, start, k, exists,
                dtype, MODE, BITS, GROUP, BN, BK, WIDE,
            )  # fmt: skip
            total = dot(tile, x, total)
            if WAITED:
                total = waited(total)
            if GATED:
                tile = weight_tile(
                    up_rows, up_scale_rows, up_bias_rows, start, k, exists, dtype, MODE, BITS, GROUP, BN, BK, WIDE
                )
                total_up = dot(tile, x, total_up)
                if WAITED:
                    total_up = waited(total_up)
        if GATED:
            total = total / (1.0 + tl.exp(-total)) * total_up
        out = out_ptr + (pairs.to(tl.int64) * m + row)[None, :] * n + target[:, None]
        tl.store(out, narrow(total, out_ptr.dtype.element_ty), mask=inside[None, :] & exists)
    else:
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
        out = out_ptr + (pairs.to(tl.int64) * m + row)[:, None] * n + target[None, :]
        tl.store(out, narrow(total, out_ptr.dtype.element_ty), mask=inside[:, None] & (target < n)[None, :])
