"""One row of x against affine weights, with fused multiply-adds: what reads memory fastest."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import scale_of
from rocmend.kernels.language import narrow


@triton.jit
def spread_kernel(
    x_ptr,
    planes_ptr,
    sums_ptr,
    groups,
    words,
    x_stride,
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    BLOCK_G: tl.constexpr,
):
    """Write x in fp32 as planes [batch, codes of a word, words], and the sum of each group.

    A lane that holds neighbouring words then finds what their codes at one place are multiplied with side by side.
    Programs: (blocks of groups, batch).
    """
    CODES: tl.constexpr = 32 // BITS
    WORDS: tl.constexpr = GROUP // CODES
    batch = tl.program_id(1).to(tl.int64)
    group = tl.program_id(0) * BLOCK_G + tl.arange(0, BLOCK_G)
    word = group[:, None, None] * WORDS + tl.arange(0, WORDS)[None, :, None]
    code = tl.arange(0, CODES)[None, None, :]
    inside = (group < groups)[:, None, None]
    x = tl.load(x_ptr + batch * x_stride + word * CODES + code, mask=inside, other=0.0).to(tl.float32)
    tl.store(planes_ptr + batch * words * CODES + code * words + word, x, mask=inside)
    tl.store(sums_ptr + batch * groups + group, tl.sum(tl.sum(x, axis=2), axis=1), mask=group < groups)


@triton.jit
def planes_kernel(
    planes_ptr,
    sums_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    N,
    words,
    groups,
    w_batch,
    groups_per_split,
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_G: tl.constexpr,
    EVEN: tl.constexpr,
):
    """out[n] = Σ_g 2^BITS · s · Σ x·(1 + q/2^BITS) + (b - 2^BITS · s) · Σ x.

    A code becomes 1 + q/2^BITS by standing in the upper bits of a mantissa: a shift, a mask and an or, no conversion.
    Programs: (tiles of N, splits of the groups, batch). out is [splits, batch, N].
    """
    CODES: tl.constexpr = 32 // BITS
    WORDS: tl.constexpr = GROUP // CODES
    STEPS: tl.constexpr = 1 << BITS
    batch = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    n = tl.minimum(row, N - 1).to(tl.int64) + batch * w_batch
    first = tl.program_id(1) * groups_per_split
    last = tl.minimum(first + groups_per_split, groups)
    word = tl.arange(0, WORDS)
    acc = tl.zeros([BLOCK_N, BLOCK_G], tl.float32)
    for start in range(first, last, BLOCK_G):
        g = start + tl.arange(0, BLOCK_G)
        x_at = planes_ptr + batch * words * CODES + (g * WORDS)[:, None] + word[None, :]
        w_at = w_ptr + n[:, None, None] * words + (g * WORDS)[None, :, None] + word[None, None, :]
        group_at = n[:, None] * groups + g[None, :]
        if EVEN:
            packed = tl.load(w_at, eviction_policy="evict_first")
            scales = tl.load(scales_ptr + group_at)
            biases = tl.load(biases_ptr + group_at)
            total = tl.load(sums_ptr + batch * groups + g)
        else:
            inside = g < last
            packed = tl.load(w_at, mask=inside[None, :, None], other=0, eviction_policy="evict_first")
            scales = tl.load(scales_ptr + group_at, mask=inside[None, :], other=0.0)
            biases = tl.load(biases_ptr + group_at, mask=inside[None, :], other=0.0)
            total = tl.load(sums_ptr + batch * groups + g, mask=inside, other=0.0)
        part = tl.zeros([BLOCK_N, BLOCK_G, WORDS], tl.float32)
        for j in tl.static_range(CODES):
            if EVEN:
                x = tl.load(x_at + j * words)
            else:
                x = tl.load(x_at + j * words, mask=inside[:, None], other=0.0)
            codes = (packed >> (j * BITS)) & (STEPS - 1)
            part += ((codes << (23 - BITS)) | 0x3F800000).to(tl.float32, bitcast=True) * x[None, :, :]
        scales = scale_of(scales, "affine") * STEPS
        acc += tl.sum(part, axis=2) * scales + total[None, :] * (biases.to(tl.float32) - scales)
    place = (tl.program_id(1).to(tl.int64) * tl.num_programs(2) + batch) * N + row
    tl.store(out_ptr + place, narrow(tl.sum(acc, axis=1), out_ptr.dtype.element_ty), mask=row < N)
