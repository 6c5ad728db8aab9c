"""A few rows of x against affine weights: one matrix product a group, scaled in fp32 after it."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import magic, unpack, values
from rocmend.kernels.language import INTERPRETED, dot, narrow


@triton.jit
def _codes(words, ROWS: tl.constexpr, WORDS: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr):
    """Return codes plus what ``_offset`` says, exactly."""
    if INTERPRETED:
        codes = unpack(words, ROWS, WORDS, BITS).to(tl.float32)
    elif (dtype == tl.bfloat16) and (BITS == 8):
        codes = values(words, ROWS, WORDS, "affine", BITS, dtype)
    else:
        codes = magic(words, ROWS, WORDS, BITS, dtype)
    return codes


@triton.jit
def groups_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    M,
    N,
    words,
    groups,
    x_stride,
    x_batch,
    w_batch,
    groups_per_split,
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
    EVEN: tl.constexpr,
):
    """out[m, n] = Σ_g s[n,g] · Σ x·q + b[n,g] · Σ x, exact products, two groups an iteration.

    Programs: (tiles of N, splits of the groups, batch · tiles of M). out is [splits, batch, M, N].
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    CODES: tl.constexpr = 32 // BITS
    WORDS: tl.constexpr = GROUP // CODES
    # What stands in the weights beside the code: 1024 or 128 of the bit trick, taken off with the bias.
    OFFSET: tl.constexpr = (
        0 if INTERPRETED or (dtype == tl.bfloat16 and BITS == 8) else (1024 if dtype == tl.float16 else 128)
    )
    tiles_m = tl.cdiv(M, BLOCK_M)
    batch = (tl.program_id(2) // tiles_m).to(tl.int64)
    row = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    n = tl.minimum(row, N - 1).to(tl.int64) + batch * w_batch
    line = (tl.program_id(2) % tiles_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    m = tl.minimum(line, M - 1).to(tl.int64)
    x_rows = x_ptr + batch * x_batch + m[None, :] * x_stride
    w_rows = w_ptr + n[:, None] * words
    scale_rows = scales_ptr + n[:, None] * groups
    bias_rows = biases_ptr + n[:, None] * groups
    first = tl.program_id(1) * groups_per_split
    last = tl.minimum(first + groups_per_split, groups)
    word = tl.arange(0, WORDS)
    k = tl.arange(0, GROUP)
    two = tl.arange(0, 2)
    ones = tl.full([BLOCK_N, GROUP], 1.0, tl.float32 if INTERPRETED else dtype)
    zero = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    for g in tl.range(first, last, 2, num_stages=STAGES):
        w0 = tl.load(w_rows + g * WORDS + word[None, :])
        x0 = tl.load(x_rows + (g * GROUP + k)[:, None])
        if EVEN:
            w1 = tl.load(w_rows + (g + 1) * WORDS + word[None, :])
            x1 = tl.load(x_rows + ((g + 1) * GROUP + k)[:, None])
            scales = tl.load(scale_rows + g + two[None, :])
            biases = tl.load(bias_rows + g + two[None, :])
        else:
            there = g + 1 < last
            both = (g + two < last)[None, :]
            w1 = tl.load(w_rows + (g + 1) * WORDS + word[None, :], mask=there & (word >= 0)[None, :], other=0)
            x1 = tl.load(x_rows + ((g + 1) * GROUP + k)[:, None], mask=there & (k >= 0)[:, None], other=0.0)
            scales = tl.load(scale_rows + g + two[None, :], mask=both, other=0.0)
            biases = tl.load(bias_rows + g + two[None, :], mask=both, other=0.0)
        s0, s1 = tl.split(scales.to(tl.float32))
        b0, b1 = tl.split(biases.to(tl.float32))
        x0 = x0.to(tl.float32) if INTERPRETED else x0
        x1 = x1.to(tl.float32) if INTERPRETED else x1
        # The product with ones gives Σ x in the layout of the other product.
        p0 = dot(_codes(w0, BLOCK_N, WORDS, BITS, dtype), x0, zero)
        u0 = dot(ones, x0, zero)
        p1 = dot(_codes(w1, BLOCK_N, WORDS, BITS, dtype), x1, zero)
        u1 = dot(ones, x1, zero)
        acc += p0 * s0[:, None] + u0 * (b0 - OFFSET * s0)[:, None]
        acc += p1 * s1[:, None] + u1 * (b1 - OFFSET * s1)[:, None]
    block = (tl.program_id(1).to(tl.int64) * (tl.num_programs(2) // tiles_m) + batch) * M
    place = (block + line)[None, :] * N + row[:, None]
    tl.store(out_ptr + place, narrow(acc, out_ptr.dtype.element_ty), mask=(line < M)[None, :] & (row < N)[:, None])
