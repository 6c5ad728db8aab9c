"""A few rows of x against affine weights: one matrix product a group, scaled in fp32 after it."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import magic, unpack, values
from rocmend.kernels.language import INTERPRETED, dot, narrow


@triton.jit
def _codes(
    words, SLICES: tl.constexpr, ROWS: tl.constexpr, WORDS: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr
):
    """Return the codes of words [SLICES, ROWS, WORDS], plus what the bit trick leaves in them, exactly."""
    flat = tl.reshape(words, [SLICES * ROWS, WORDS])
    if INTERPRETED:
        codes = unpack(flat, SLICES * ROWS, WORDS, BITS).to(tl.float32)
    elif (dtype == tl.bfloat16) and (BITS == 8):
        codes = values(flat, SLICES * ROWS, WORDS, "affine", BITS, dtype)
    else:
        codes = magic(flat, SLICES * ROWS, WORDS, BITS, dtype)
    return tl.reshape(codes, [SLICES, ROWS, WORDS * (32 // BITS)])


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
    SLICES: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
    EVEN: tl.constexpr,
):
    """out[m, n] = Σ_g s[n,g] · Σ x·q + b[n,g] · Σ x, products exact: SLICES groups an iteration, a wavefront each.

    A row of weights is read by SLICES wavefronts at once, which add up what they have at the end: with one or a few
    rows of x it is their number that keeps memory busy. Programs: (tiles of N, splits of the groups, batch · tiles
    of M). out is [splits, batch, M, N].
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    WORDS: tl.constexpr = GROUP * BITS // 32
    # What stands in the codes beside them: 1024 or 128 of the bit trick, taken off with the bias.
    OFFSET: tl.constexpr = (
        0 if INTERPRETED or (dtype == tl.bfloat16 and BITS == 8) else (1024 if dtype == tl.float16 else 128)
    )
    tiles_m = tl.cdiv(M, BLOCK_M)
    batch = (tl.program_id(2) // tiles_m).to(tl.int64)
    row = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    n = tl.minimum(row, N - 1).to(tl.int64) + batch * w_batch
    line = (tl.program_id(2) % tiles_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    m = tl.minimum(line, M - 1).to(tl.int64)
    first = tl.program_id(1) * groups_per_split
    last = tl.minimum(first + groups_per_split, groups)
    slices = tl.arange(0, SLICES)
    k = tl.arange(0, GROUP)
    x_at = x_ptr + batch * x_batch + (m[None, None, :] * x_stride + (slices * GROUP)[:, None, None] + k[None, :, None])
    w_at = w_ptr + (n[None, :, None] * words + (slices * WORDS)[:, None, None] + tl.arange(0, WORDS)[None, None, :])
    scale_at = scales_ptr + (n[None, :] * groups + slices[:, None])
    bias_at = biases_ptr + (n[None, :] * groups + slices[:, None])
    ones = tl.full([SLICES, BLOCK_N, GROUP], 1.0, tl.float32 if INTERPRETED else dtype)
    zero = tl.zeros([SLICES, BLOCK_N, BLOCK_M], tl.float32)
    acc = tl.zeros([SLICES, BLOCK_N, BLOCK_M], tl.float32)
    for g in tl.range(first, last, SLICES, num_stages=STAGES):
        if EVEN:
            packed = tl.load(w_at + g * WORDS)
            x = tl.load(x_at + g * GROUP)
            scales = tl.load(scale_at + g)
            biases = tl.load(bias_at + g)
        else:
            inside = g + slices < last
            packed = tl.load(w_at + g * WORDS, mask=inside[:, None, None], other=0)
            x = tl.load(x_at + g * GROUP, mask=inside[:, None, None], other=0.0)
            scales = tl.load(scale_at + g, mask=inside[:, None], other=0.0)
            biases = tl.load(bias_at + g, mask=inside[:, None], other=0.0)
        if INTERPRETED:
            x = x.to(tl.float32)
        scales = scales.to(tl.float32)
        product = dot(_codes(packed, SLICES, BLOCK_N, WORDS, BITS, dtype), x, zero)
        # The product with ones gives Σ x in the layout of the other product.
        total = dot(ones, x, zero)
        acc += product * scales[:, :, None] + total * (biases.to(tl.float32) - OFFSET * scales)[:, :, None]
    block = (tl.program_id(1).to(tl.int64) * (tl.num_programs(2) // tiles_m) + batch) * M
    place = (block + line)[None, :] * N + row[:, None]
    out = narrow(tl.sum(acc, axis=0), out_ptr.dtype.element_ty)
    tl.store(out_ptr + place, out, mask=(line < M)[None, :] & (row < N)[:, None])
