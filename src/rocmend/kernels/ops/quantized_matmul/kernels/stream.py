"""One row of x of a half type against affine 4-bit weights: x stays in registers, rows of weights stream past.

What bounds it is how many instructions a weight costs and how many bytes are under way. A code is used where it stands:
in the upper bits of the mantissa of 128 (``128 + q``), or four bits lower (``128 + q/16``) with x times 16. So four
shifts serve eight codes, and with the exponent in a register the mask and the or are one instruction. Two rows are
loaded ahead.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow


@triton.jit
def planes4_kernel(
    x_ptr,
    planes_ptr,
    sums_ptr,
    groups,
    words,
    x_stride,
    GROUP: tl.constexpr,
    BLOCK_G: tl.constexpr,
    PDL: tl.constexpr,
):
    """Write x in fp32 as planes [batch, 8, words], those of the lower places times 16, and two sums of each group.

    sums is [batch, 2, groups]: Σ x, and what the exponents add to Σ x·q. Programs: (blocks of groups, batch).
    """
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
    WORDS: tl.constexpr = GROUP // 8
    batch = tl.program_id(1).to(tl.int64)
    group = tl.program_id(0) * BLOCK_G + tl.arange(0, BLOCK_G)
    word = group[:, None, None] * WORDS + tl.arange(0, WORDS)[None, :, None]
    code = tl.arange(0, 8)[None, None, :]
    inside = (group < groups)[:, None, None]
    x = tl.load(x_ptr + batch * x_stride + word * 8 + code, mask=inside, other=0.0).to(tl.float32)
    scaled = tl.where((code == 0) | (code == 3) | (code == 6), x * 16, x)
    tl.store(planes_ptr + batch * words * 8 + code * words + word, scaled, mask=inside)
    sums = sums_ptr + batch * 2 * groups + group
    tl.store(sums, tl.sum(tl.sum(x, axis=2), axis=1), mask=group < groups)
    tl.store(sums + groups, tl.sum(tl.sum(scaled, axis=2), axis=1) * 128, mask=group < groups)


@triton.jit
def _lower(words, exponent):
    """Return 128 + q/16 for the codes in bits 12 to 15."""
    return ((words & 0xF000) | exponent).to(tl.float32, bitcast=True)


@triton.jit
def _upper(words, exponent):
    """Return 128 + q for the codes in bits 16 to 19."""
    return ((words & 0xF0000) | exponent).to(tl.float32, bitcast=True)


@triton.jit
def stream_kernel(
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
    GROUP: tl.constexpr,
    HELD: tl.constexpr,
    EVEN: tl.constexpr,
    PDL: tl.constexpr,
):
    """Compute out[n] = Σ_g s · (Σ x·q) + b · Σ x over the groups of a chunk of K.

    A program is one wavefront: it holds x for HELD words of K and walks over rows. Programs: (walkers, chunks, batch).
    out is [chunks, batch, N].
    """
    WORDS: tl.constexpr = GROUP // 8
    BLOCK_G: tl.constexpr = HELD // WORDS
    # Not known to be 128.0 by the compiler, which so keeps it in a register.
    exponent = 0x43000000 + (N >> 31)
    batch = tl.program_id(2).to(tl.int64)
    walkers = tl.num_programs(0)
    first = tl.program_id(1) * BLOCK_G
    g = first + tl.arange(0, BLOCK_G)
    inside = g < groups
    word = g[:, None] * WORDS + tl.arange(0, WORDS)[None, :]
    w_rows = w_ptr + batch * w_batch * words + word
    s_rows = scales_ptr + batch * w_batch * groups + g
    b_rows = biases_ptr + batch * w_batch * groups + g
    row = tl.program_id(0)
    after = row + walkers
    there = g * 0 + after < N
    if EVEN:
        w0 = tl.load(w_rows + row.to(tl.int64) * words)
        s0 = tl.load(s_rows + row.to(tl.int64) * groups)
        b0 = tl.load(b_rows + row.to(tl.int64) * groups)
        w1 = tl.load(w_rows + after.to(tl.int64) * words, mask=there[:, None], other=0)
        s1 = tl.load(s_rows + after.to(tl.int64) * groups, mask=there, other=0.0)
        b1 = tl.load(b_rows + after.to(tl.int64) * groups, mask=there, other=0.0)
    else:
        w0 = tl.load(w_rows + row.to(tl.int64) * words, mask=inside[:, None], other=0)
        s0 = tl.load(s_rows + row.to(tl.int64) * groups, mask=inside, other=0.0)
        b0 = tl.load(b_rows + row.to(tl.int64) * groups, mask=inside, other=0.0)
        w1 = tl.load(w_rows + after.to(tl.int64) * words, mask=(inside & there)[:, None], other=0)
        s1 = tl.load(s_rows + after.to(tl.int64) * groups, mask=inside & there, other=0.0)
        b1 = tl.load(b_rows + after.to(tl.int64) * groups, mask=inside & there, other=0.0)
    if PDL:
        # In this order: the next one may read weights that were written before this one began to wait.
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    x_at = planes_ptr + batch * words * 8 + word
    sums = sums_ptr + batch * 2 * groups + g
    here = inside[:, None]
    x0 = tl.load(x_at, mask=here, other=0.0)
    x1 = tl.load(x_at + words, mask=here, other=0.0)
    x2 = tl.load(x_at + 2 * words, mask=here, other=0.0)
    x3 = tl.load(x_at + 3 * words, mask=here, other=0.0)
    x4 = tl.load(x_at + 4 * words, mask=here, other=0.0)
    x5 = tl.load(x_at + 5 * words, mask=here, other=0.0)
    x6 = tl.load(x_at + 6 * words, mask=here, other=0.0)
    x7 = tl.load(x_at + 7 * words, mask=here, other=0.0)
    total = tl.load(sums, mask=inside, other=0.0)
    offset = tl.load(sums + groups, mask=inside, other=0.0)
    place = (tl.program_id(1).to(tl.int64) * tl.num_programs(2) + batch) * N
    for n in range(tl.program_id(0), N, walkers):
        w, s, b = w0, s0, b0
        w0, s0, b0 = w1, s1, b1
        later = n + 2 * walkers
        there = g * 0 + later < N
        if EVEN:
            w1 = tl.load(w_rows + later.to(tl.int64) * words, mask=there[:, None], other=0)
            s1 = tl.load(s_rows + later.to(tl.int64) * groups, mask=there, other=0.0)
            b1 = tl.load(b_rows + later.to(tl.int64) * groups, mask=there, other=0.0)
        else:
            w1 = tl.load(w_rows + later.to(tl.int64) * words, mask=(inside & there)[:, None], other=0)
            s1 = tl.load(s_rows + later.to(tl.int64) * groups, mask=inside & there, other=0.0)
            b1 = tl.load(b_rows + later.to(tl.int64) * groups, mask=inside & there, other=0.0)
        up = w << 12
        acc = _lower(up, exponent) * x0
        acc += _upper(up, exponent) * x1
        acc += _upper(w << 8, exponent) * x2
        acc += _lower(w, exponent) * x3
        acc += _upper(w, exponent) * x4
        acc += _upper(w >> 4, exponent) * x5
        down = w >> 12
        acc += _lower(down, exponent) * x6
        acc += _upper(down, exponent) * x7
        part = s.to(tl.float32) * (tl.sum(acc, axis=1) - offset) + b.to(tl.float32) * total
        tl.store(out_ptr + place + n, narrow(tl.sum(part, axis=0), out_ptr.dtype.element_ty))


@triton.jit
def chunks_kernel(parts_ptr, out_ptr, size, CHUNKS: tl.constexpr, BLOCK: tl.constexpr, PDL: tl.constexpr):
    """Compute out = Σ parts over [CHUNKS, size], in order."""
    if PDL:
        tl.extra.cuda.gdc_wait()
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], tl.float32)
    for chunk in tl.static_range(CHUNKS):
        acc += tl.load(parts_ptr + chunk * size + place, mask=place < size, other=0.0)
    tl.store(out_ptr + place, narrow(acc, out_ptr.dtype.element_ty), mask=place < size)
