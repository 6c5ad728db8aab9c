"""Matrix products with weights that are unpacked and scaled on their way into the matrix unit."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import scale_of, values
from rocmend.kernels.language import INTERPRETED, dot, narrow, waited


@triton.jit
def _rounded(v, dtype: tl.constexpr, WIDE: tl.constexpr):
    """Return weights of fp32 in another type."""
    if WIDE and not INTERPRETED:
        # To nearest even in integers: GPUs that round to bf16 in software spend a mask on NaN for each number.
        bits = v.to(tl.int32, bitcast=True)
        bits += 0x7FFF + ((bits >> 16) & 1)
        weights = (bits >> 16).to(tl.int16).to(dtype, bitcast=True)
    else:
        weights = narrow(v, dtype)
    return weights


@triton.jit
def _scaled(
    packed,
    scales,
    biases,
    ROWS: tl.constexpr,
    GROUPS: tl.constexpr,
    WIDTH: tl.constexpr,
    MODE: tl.constexpr,
    BITS: tl.constexpr,
    WIDE: tl.constexpr,
    dtype: tl.constexpr,
):
    """Return the weights [ROWS, GROUPS * WIDTH] of words and of the scales and biases [ROWS, GROUPS] of WIDTH codes."""
    WORDS: tl.constexpr = GROUPS * WIDTH * BITS // 32
    plain: tl.constexpr = MODE == "affine" and not INTERPRETED and not WIDE and scales.dtype == dtype
    v = values(packed, ROWS, WORDS, MODE, BITS, tl.float32 if WIDE else dtype)
    v = tl.reshape(v, [ROWS, GROUPS, WIDTH])
    if plain:
        v = v * scales[:, :, None] + biases[:, :, None]
    else:
        v = v.to(tl.float32) * scale_of(scales, MODE)[:, :, None]
        if MODE == "affine":
            v += biases.to(tl.float32)[:, :, None]
        v = _rounded(v, dtype, WIDE)
    return tl.reshape(v, [ROWS, GROUPS * WIDTH])


@triton.jit
def _straddling(
    w_rows,
    scale_rows,
    bias_rows,
    octet,
    inside,
    words,
    ROWS: tl.constexpr,
    OCTETS: tl.constexpr,
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    WIDE: tl.constexpr,
    dtype: tl.constexpr,
):
    """Return the weights [ROWS, 8 * OCTETS] of affine codes that straddle words; eight codes lie in two words.

    w_rows, scale_rows and bias_rows [ROWS, 1] point to the beginning of each row of ``words`` words, octet [1, OCTETS]
    says which eight codes of it, inside [ROWS, OCTETS] where to load.
    """
    bit = octet * (8 * BITS)
    low = tl.load(w_rows + (bit >> 5), mask=inside, other=0).to(tl.uint32, bitcast=True).to(tl.uint64)
    high = tl.load(w_rows + tl.minimum((bit >> 5) + 1, words - 1), mask=inside, other=0).to(tl.uint32, bitcast=True)
    codes = ((high.to(tl.uint64) << 32) | low) >> (bit & 31).to(tl.uint64)
    scale = tl.load(scale_rows + octet * 8 // GROUP, mask=inside, other=0).to(tl.float32)
    bias = tl.load(bias_rows + octet * 8 // GROUP, mask=inside, other=0).to(tl.float32)
    v = ()
    for j in tl.static_range(8):
        code = ((codes >> (j * BITS)).to(tl.uint32) & ((1 << BITS) - 1)).to(tl.int32)
        v = v + (_rounded(code.to(tl.float32) * scale + bias, dtype, WIDE),)
    even = tl.join(tl.join(v[0], v[4]), tl.join(v[2], v[6]))
    odd = tl.join(tl.join(v[1], v[5]), tl.join(v[3], v[7]))
    return tl.reshape(tl.join(even, odd), [ROWS, OCTETS * 8])


@triton.jit
def _grouped(pid, tiles_m, tiles_n, TOGETHER: tl.constexpr):
    """Return the tile of a program: neighbours share weights in the cache."""
    width = TOGETHER * tiles_n
    first = (pid // width) * TOGETHER
    size = tl.minimum(tiles_m - first, TOGETHER)
    return first + (pid % width) % size, (pid % width) // size


@triton.jit
def tiles_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    M,
    N,
    K,
    words,
    groups,
    x_stride,
    x_batch,
    w_batch,
    k_per_split,
    MODE: tl.constexpr,
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    TOGETHER: tl.constexpr,
    STAGES: tl.constexpr,
    WIDE: tl.constexpr,
    EVEN: tl.constexpr,
    WHOLE: tl.constexpr,
    WAITED: tl.constexpr,
):
    """Compute x @ dequantize(w).T, the weights rounded to the type of x: as w @ x.T, weights in registers.

    Programs: (tiles, splits of K, batch). out is [splits, batch, M, N]. EVEN: K is a multiple of BLOCK_K; WHOLE: N is
    one of BLOCK_N, which spares a mask for each element stored. WAITED: see ``waited``.
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    CODES: tl.constexpr = 32 // BITS
    WIDTH: tl.constexpr = min(GROUP, BLOCK_K)  # codes of a group in a tile: a group may be wider than a tile
    GROUPS: tl.constexpr = BLOCK_K // WIDTH if 32 % BITS == 0 else 1
    tile_m, tile_n = _grouped(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), TOGETHER)
    batch = tl.program_id(2).to(tl.int64)
    row = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    n = tl.minimum(row, N - 1).to(tl.int64) + batch * w_batch
    line = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    m = tl.minimum(line, M - 1).to(tl.int64)
    x_rows = x_ptr + batch * x_batch + m[None, :] * x_stride
    w_rows = w_ptr + n[:, None] * words
    scale_rows = scales_ptr + n[:, None] * groups
    bias_rows = scale_rows if biases_ptr is None else biases_ptr + n[:, None] * groups
    first = tl.program_id(1) * k_per_split
    last = tl.minimum(first + k_per_split, K)
    k = tl.arange(0, BLOCK_K)
    word = tl.arange(0, BLOCK_K // CODES if 32 % BITS == 0 else 1)
    group = tl.arange(0, GROUPS)
    acc = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    for start in tl.range(first, last, BLOCK_K, num_stages=STAGES):
        if EVEN:
            x = tl.load(x_rows + (start + k)[:, None])
        else:
            x = tl.load(x_rows + (start + k)[:, None], mask=(start + k < last)[:, None], other=0.0)
        if 32 % BITS == 0:
            if EVEN:
                packed = tl.load(w_rows + start // CODES + word[None, :])
                scales = tl.load(scale_rows + start // GROUP + group[None, :])
                biases = tl.load(bias_rows + start // GROUP + group[None, :])
            else:
                packed = tl.load(
                    w_rows + start // CODES + word[None, :], mask=(start + word * CODES < last)[None, :], other=0
                )
                inside = (start + group * WIDTH < last)[None, :]
                scales = tl.load(scale_rows + start // GROUP + group[None, :], mask=inside, other=0)
                biases = tl.load(bias_rows + start // GROUP + group[None, :], mask=inside, other=0)
            v = _scaled(packed, scales, biases, BLOCK_N, GROUPS, WIDTH, MODE, BITS, WIDE, dtype)
        else:
            octet = start // 8 + tl.arange(0, BLOCK_K // 8)
            inside = (octet * 8 < last)[None, :] & (row < N)[:, None]
            v = _straddling(
                w_rows, scale_rows, bias_rows, octet[None, :], inside, words,
                BLOCK_N, BLOCK_K // 8, GROUP, BITS, WIDE, dtype,
            )  # fmt: skip
        acc = dot(v, x, acc)
        if WAITED:
            acc = waited(acc)
    block = (tl.program_id(1).to(tl.int64) * tl.num_programs(2) + batch) * M
    place = (block + line)[None, :] * N + row[:, None]
    inside = (line < M)[None, :] if WHOLE else (line < M)[None, :] & (row < N)[:, None]
    tl.store(out_ptr + place, narrow(acc, out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def columns_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    M,
    N,
    K,
    words,
    groups,
    x_stride,
    x_batch,
    w_batch,
    k_per_split,
    MODE: tl.constexpr,
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    TOGETHER: tl.constexpr,
    STAGES: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Compute x @ dequantize(w), w [K, N] packed along N, the weights rounded to the type of x.

    Programs: (tiles, splits of K, batch). out is [splits, batch, M, N].
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    CODES: tl.constexpr = 32 // BITS
    WIDTH: tl.constexpr = min(GROUP, BLOCK_N)  # as in tiles_kernel
    GROUPS: tl.constexpr = BLOCK_N // WIDTH if 32 % BITS == 0 else 1
    tile_m, tile_n = _grouped(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), TOGETHER)
    batch = tl.program_id(2).to(tl.int64)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    line = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    m = tl.minimum(line, M - 1).to(tl.int64)
    x_rows = x_ptr + batch * x_batch + m[:, None] * x_stride
    first = tl.program_id(1) * k_per_split
    last = tl.minimum(first + k_per_split, K)
    k = tl.arange(0, BLOCK_K)
    word = tl.arange(0, BLOCK_N // CODES if 32 % BITS == 0 else 1)
    group = tl.arange(0, GROUPS)
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for start in tl.range(first, last, BLOCK_K, num_stages=STAGES):
        x = tl.load(x_rows + (start + k)[None, :], mask=(start + k < last)[None, :], other=0.0)
        r = (start + k).to(tl.int64)
        below = (start + k < last)[:, None]
        w_rows = w_ptr + (r + batch * w_batch)[:, None] * words
        scale_rows = scales_ptr + (r + batch * w_batch)[:, None] * groups
        bias_rows = scale_rows if biases_ptr is None else biases_ptr + (r + batch * w_batch)[:, None] * groups
        if 32 % BITS == 0:
            inside = below & (tile_n * BLOCK_N + word * CODES < N)[None, :]
            packed = tl.load(w_rows + tile_n * (BLOCK_N // CODES) + word[None, :], mask=inside, other=0)
            inside = below & (tile_n * BLOCK_N + group * WIDTH < N)[None, :]
            scales = tl.load(scale_rows + tile_n * BLOCK_N // GROUP + group[None, :], mask=inside, other=0)
            biases = tl.load(bias_rows + tile_n * BLOCK_N // GROUP + group[None, :], mask=inside, other=0)
            v = _scaled(packed, scales, biases, BLOCK_K, GROUPS, WIDTH, MODE, BITS, WIDE, dtype)
        else:
            octet = tile_n * (BLOCK_N // 8) + tl.arange(0, BLOCK_N // 8)
            v = _straddling(
                w_rows, scale_rows, bias_rows, octet[None, :], below & (octet * 8 < N)[None, :], words,
                BLOCK_K, BLOCK_N // 8, GROUP, BITS, WIDE, dtype,
            )  # fmt: skip
        acc = dot(x, v, acc)
    block = (tl.program_id(1).to(tl.int64) * tl.num_programs(2) + batch) * M
    place = (block + line)[:, None] * N + column[None, :]
    tl.store(out_ptr + place, narrow(acc, out_ptr.dtype.element_ty), mask=(line < M)[:, None] & (column < N)[None, :])


@triton.jit
def sum_kernel(parts_ptr, out_ptr, size, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    """Add the partial products of the splits of K, always in the same order."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for part in tl.static_range(SPLITS):
        total += tl.load(parts_ptr + part * size + at, mask=at < size, other=0.0)
    tl.store(out_ptr + at, narrow(total, out_ptr.dtype.element_ty), mask=at < size)
