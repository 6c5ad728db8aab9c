"""A row of x against weights of any format with fused multiply-adds, for what has no matrix instructions to use."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import scale_of, value_of
from rocmend.kernels.language import narrow


@triton.jit
def _apart(x, ROWS: tl.constexpr, COUNT: tl.constexpr):
    """Return the columns of x [ROWS, COUNT] as a tuple: registers of a lane that holds a row. COUNT: a power of two."""
    columns = (x,)
    for level in tl.static_range(COUNT.bit_length() - 1):
        halved = ()
        for at in tl.static_range(1 << level):
            pair = tl.reshape(columns[at], [ROWS, 2, COUNT >> (level + 1)])
            first, second = tl.split(tl.permute(pair, (0, 2, 1)))
            halved = halved + (first, second)
        columns = halved
    flat = ()
    for at in tl.static_range(COUNT):
        flat = flat + (tl.reshape(columns[at], [ROWS]),)
    return flat


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
    EVEN: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_U: tl.constexpr,
):
    """out[m, n] = Σ s·(Σ x·q) + b·Σ x over units: a word, or BITS words of 32 codes where codes straddle words.

    A lane takes whole units: their words, and x 16 bytes at a time where BLOCK_U is at least the number of lanes.
    Programs: (tiles of N, splits of K, batch · M). out is [splits, batch, M, N]. EVEN: BLOCK_U divides the units.
    """
    UNIT: tl.constexpr = 1 if 32 % BITS == 0 else BITS
    CODES: tl.constexpr = 32 * UNIT // BITS
    AT_ONCE: tl.constexpr = min(CODES, 128 // x_ptr.dtype.element_ty.primitive_bitwidth)
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
        first_words = w_rows + (unit * UNIT)[None, :]
        packed = ()
        for at in tl.static_range(UNIT):
            if EVEN:
                word = tl.load(first_words + at)
            else:
                word = tl.load(first_words + at, mask=inside[None, :], other=0)
            packed = packed + (word.to(tl.uint32, bitcast=True),)
        part = tl.zeros([BLOCK_N, BLOCK_U], tl.float32)
        total = tl.zeros([BLOCK_U], tl.float32)
        for begin in tl.static_range(0, CODES, AT_ONCE):
            place = x_row + (unit * CODES + begin)[:, None] + tl.arange(0, AT_ONCE)[None, :]
            some = tl.load(place) if EVEN else tl.load(place, mask=inside[:, None], other=0.0)
            columns = _apart(some, BLOCK_U, AT_ONCE)
            for j in tl.static_range(AT_ONCE):
                x = columns[j].to(tl.float32)
                codes = packed[(begin + j) * BITS // 32] >> ((begin + j) * BITS % 32)
                if (begin + j) * BITS % 32 + BITS > 32:
                    codes = codes | (packed[(begin + j) * BITS // 32 + 1] << (32 - (begin + j) * BITS % 32))
                part += value_of((codes & MASK).to(tl.int32), MODE) * x[None, :]
                total += x
        scales = tl.load(scale_rows + group[None, :], mask=inside[None, :], other=0)
        acc += part * scale_of(scales, MODE)
        if MODE == "affine":
            biases = tl.load(biases_ptr + n[:, None] * groups + group[None, :], mask=inside[None, :], other=0)
            acc += total[None, :] * biases.to(tl.float32)
    block = (tl.program_id(1).to(tl.int64) * (tl.num_programs(2) // M) + batch) * M
    tl.store(out_ptr + (block + m) * N + row, narrow(tl.sum(acc, axis=1), out_ptr.dtype.element_ty), mask=row < N)
