"""A row of x against weights of any format with fused multiply-adds, for what has no matrix instructions to use."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import scale_of, value_of
from rocmend.kernels.language import narrow


@triton.jit
def rows_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    M,
    N,
    units,
    words,
    groups,
    x_stride,
    x_batch,
    w_batch,
    units_per_split,
    MODE: tl.constexpr,
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_U: tl.constexpr,
):
    """out[m, n] = Σ s·(Σ x·q) + b·Σ x over units: a word, or BITS words of 32 codes where codes straddle words.

    Programs: (tiles of N, splits of K, batch · M). out is [splits, batch, M, N].
    """
    UNIT: tl.constexpr = 1 if 32 % BITS == 0 else BITS
    CODES: tl.constexpr = 32 * UNIT // BITS
    MASK: tl.constexpr = (1 << BITS) - 1
    batch = (tl.program_id(2) // M).to(tl.int64)
    m = (tl.program_id(2) % M).to(tl.int64)
    row = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    n = tl.minimum(row, N - 1).to(tl.int64) + batch * w_batch
    x_row = x_ptr + batch * x_batch + m * x_stride
    w_rows = w_ptr + n[:, None] * words
    scale_rows = scales_ptr + n[:, None] * groups
    first = tl.program_id(1) * units_per_split
    last = tl.minimum(first + units_per_split, units)
    acc = tl.zeros([BLOCK_N, BLOCK_U], tl.float32)
    for start in range(first, last, BLOCK_U):
        unit = start + tl.arange(0, BLOCK_U)
        inside = unit < last
        group = unit * CODES // GROUP
        part = tl.zeros([BLOCK_N, BLOCK_U], tl.float32)
        total = tl.zeros([BLOCK_U], tl.float32)
        packed = tl.load(w_rows + (unit * UNIT)[None, :], mask=inside[None, :], other=0).to(tl.uint32, bitcast=True)
        for j in tl.static_range(CODES):
            x = tl.load(x_row + unit * CODES + j, mask=inside, other=0.0).to(tl.float32)
            codes = packed >> (j * BITS % 32)
            if (j + 1) * BITS // 32 != j * BITS // 32 and j + 1 < CODES:
                at = (unit * UNIT)[None, :] + (j + 1) * BITS // 32
                packed = tl.load(w_rows + at, mask=inside[None, :], other=0).to(tl.uint32, bitcast=True)
                if (j + 1) * BITS % 32 != 0:
                    codes = codes | (packed << (32 - j * BITS % 32))
            part += value_of((codes & MASK).to(tl.int32), MODE) * x[None, :]
            total += x
        scales = tl.load(scale_rows + group[None, :], mask=inside[None, :], other=0)
        acc += part * scale_of(scales, MODE)
        if MODE == "affine":
            biases = tl.load(biases_ptr + n[:, None] * groups + group[None, :], mask=inside[None, :], other=0)
            acc += total[None, :] * biases.to(tl.float32)
    block = (tl.program_id(1).to(tl.int64) * (tl.num_programs(2) // M) + batch) * M
    tl.store(out_ptr + (block + m) * N + row, narrow(tl.sum(acc, axis=1), out_ptr.dtype.element_ty), mask=row < N)
