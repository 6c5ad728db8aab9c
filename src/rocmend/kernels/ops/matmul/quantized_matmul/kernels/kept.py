"""A few rows of x against affine weights: x stays in registers, the weights stream past."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import as_halves_apart, halves_apart, unpack
from rocmend.kernels.language import INTERPRETED, dot, narrow


@triton.jit
def _codes(
    words, zero, SLICES: tl.constexpr, ROWS: tl.constexpr, WORDS: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr
):
    """Return the codes of words [SLICES, ROWS, WORDS] in the order of ``_ordered``, plus what the bit trick leaves."""
    flat = tl.reshape(words, [SLICES * ROWS, WORDS])
    if INTERPRETED:
        codes = unpack(flat, SLICES * ROWS, WORDS, BITS).to(tl.float32)
    else:
        codes = halves_apart(flat, SLICES * ROWS, WORDS, BITS, dtype, zero)
    return tl.reshape(codes, [SLICES, ROWS, WORDS * (32 // BITS)])


@triton.jit
def _ordered(x, SLICES: tl.constexpr, GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BITS: tl.constexpr):
    """Return x [SLICES, GROUP, BLOCK_M] in the order that ``halves_apart`` gives the codes of a word."""
    if INTERPRETED:
        x = x.to(tl.float32)
    else:
        x = as_halves_apart(x, SLICES, GROUP * BITS // 32, BLOCK_M, BITS)
    return x


@triton.jit
def _four(t, SLICES: tl.constexpr, ROWS: tl.constexpr):
    """Return the four columns of t [SLICES, ROWS, 4]."""
    even, odd = tl.split(tl.reshape(t.to(tl.float32), [SLICES, ROWS, 2, 2]))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def kept_kernel(
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
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    SLICES: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
    EVEN: tl.constexpr,
):
    """out[m, n] = Σ_g s[n,g] · Σ x·q + b[n,g] · Σ x, products exact.

    A program holds 4 · SLICES groups of x, each wavefront four of them, and walks over tiles of N: so x is read once,
    and what a tile costs is to unpack it. Programs: (some for the tiles of N, splits of the groups, batch · tiles of
    M). out is [splits, batch, M, N].
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    WORDS: tl.constexpr = GROUP * BITS // 32
    # What stands in the codes beside them: 1024 or 128 of the bit trick, taken off with the bias.
    OFFSET: tl.constexpr = (
        0 if INTERPRETED or (dtype == tl.bfloat16 and BITS == 8) else (1024 if dtype == tl.float16 else 128)
    )
    tiles_m = tl.cdiv(M, BLOCK_M)
    batch = (tl.program_id(2) // tiles_m).to(tl.int64)
    line = (tl.program_id(2) % tiles_m) * BLOCK_M + tl.arange(0, BLOCK_M)
    m = tl.minimum(line, M - 1).to(tl.int64)
    g = (tl.program_id(1) * SLICES + tl.arange(0, SLICES)) * 4
    k = tl.arange(0, GROUP)
    four = tl.arange(0, 4)
    word = tl.arange(0, WORDS)
    x_at = x_ptr + batch * x_batch + (m[None, None, :] * x_stride + (g * GROUP)[:, None, None] + k[None, :, None])
    if EVEN:
        x0, x1 = tl.load(x_at), tl.load(x_at + GROUP)
        x2, x3 = tl.load(x_at + 2 * GROUP), tl.load(x_at + 3 * GROUP)
    else:
        here = (g < groups)[:, None, None]
        x0 = tl.load(x_at, mask=here, other=0.0)
        x1 = tl.load(x_at + GROUP, mask=(g + 1 < groups)[:, None, None], other=0.0)
        x2 = tl.load(x_at + 2 * GROUP, mask=(g + 2 < groups)[:, None, None], other=0.0)
        x3 = tl.load(x_at + 3 * GROUP, mask=(g + 3 < groups)[:, None, None], other=0.0)
    x0, x1 = _ordered(x0, SLICES, GROUP, BLOCK_M, BITS), _ordered(x1, SLICES, GROUP, BLOCK_M, BITS)
    x2, x3 = _ordered(x2, SLICES, GROUP, BLOCK_M, BITS), _ordered(x3, SLICES, GROUP, BLOCK_M, BITS)
    # The product with ones gives Σ x in the layout of the other product.
    ones = tl.full([SLICES, BLOCK_N, GROUP], 1.0, tl.float32 if INTERPRETED else dtype)
    zero = tl.zeros([SLICES, BLOCK_N, BLOCK_M], tl.float32)
    u0, u1, u2, u3 = dot(ones, x0, zero), dot(ones, x1, zero), dot(ones, x2, zero), dot(ones, x3, zero)
    parts = out_ptr + (tl.program_id(1).to(tl.int64) * (tl.num_programs(2) // tiles_m) + batch) * M * N
    for tile in tl.range(tl.program_id(0), tl.cdiv(N, BLOCK_N), tl.num_programs(0), num_stages=STAGES):
        row = tile * BLOCK_N + tl.arange(0, BLOCK_N)
        n = tl.minimum(row, N - 1).to(tl.int64) + batch * w_batch
        w_at = w_ptr + (n[None, :, None] * words + (g * WORDS)[:, None, None] + word[None, None, :])
        scale_at = scales_ptr + (n[None, :, None] * groups + g[:, None, None] + four[None, None, :])
        bias_at = biases_ptr + (n[None, :, None] * groups + g[:, None, None] + four[None, None, :])
        if EVEN:
            w0, w1 = tl.load(w_at), tl.load(w_at + WORDS)
            w2, w3 = tl.load(w_at + 2 * WORDS), tl.load(w_at + 3 * WORDS)
            scales, biases = tl.load(scale_at), tl.load(bias_at)
        else:
            w0 = tl.load(w_at, mask=(g < groups)[:, None, None], other=0)
            w1 = tl.load(w_at + WORDS, mask=(g + 1 < groups)[:, None, None], other=0)
            w2 = tl.load(w_at + 2 * WORDS, mask=(g + 2 < groups)[:, None, None], other=0)
            w3 = tl.load(w_at + 3 * WORDS, mask=(g + 3 < groups)[:, None, None], other=0)
            inside = g[:, None, None] + four[None, None, :] < groups
            scales, biases = tl.load(scale_at, mask=inside, other=0.0), tl.load(bias_at, mask=inside, other=0.0)
        s0, s1, s2, s3 = _four(scales, SLICES, BLOCK_N)
        b0, b1, b2, b3 = _four(biases, SLICES, BLOCK_N)
        p0 = dot(_codes(w0, N >> 31, SLICES, BLOCK_N, WORDS, BITS, dtype), x0, zero)
        acc = p0 * s0[:, :, None] + u0 * (b0 - OFFSET * s0)[:, :, None]
        p1 = dot(_codes(w1, N >> 31, SLICES, BLOCK_N, WORDS, BITS, dtype), x1, zero)
        acc += p1 * s1[:, :, None] + u1 * (b1 - OFFSET * s1)[:, :, None]
        p2 = dot(_codes(w2, N >> 31, SLICES, BLOCK_N, WORDS, BITS, dtype), x2, zero)
        acc += p2 * s2[:, :, None] + u2 * (b2 - OFFSET * s2)[:, :, None]
        p3 = dot(_codes(w3, N >> 31, SLICES, BLOCK_N, WORDS, BITS, dtype), x3, zero)
        acc += p3 * s3[:, :, None] + u3 * (b3 - OFFSET * s3)[:, :, None]
        place = line[None, :].to(tl.int64) * N + row[:, None]
        out = narrow(tl.sum(acc, axis=0), out_ptr.dtype.element_ty)
        tl.store(parts + place, out, mask=(line < M)[None, :] & (row < N)[:, None])
