"""Many rows: a tile of rows that go to one expert against a tile of its weights, on the matrix units.

An affine weight is multiplied as the integer that it is stored as, which every type of x holds exactly; the product of
a group is scaled in fp32. So unpacking costs one or two instructions a weight, and no weight is rounded. The weights of
the other formats are scaled first: exact in bf16, too.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.chunks import codes8, window8
from rocmend.kernels.common.packing import halves, scale_of
from rocmend.kernels.common.weights import weight_tile
from rocmend.kernels.language import INTERPRETED, dot, exact, narrow, waited


@triton.jit
def _codes(
    w_ptr, w_at, first, zero, ROWS: tl.constexpr, COLUMNS: tl.constexpr, BITS: tl.constexpr, PAIRED: tl.constexpr,
    dtype: tl.constexpr,
):  # fmt: skip
    """Return codes [ROWS, COLUMNS] from column ``first`` on, exactly; where PAIRED, plus 128 (bf16) or 1024 (fp16).

    PAIRED: in the order of ``arrange_kernel``: a shift and ``v_and_or_b32`` put two codes under an exponent. ``zero``
    is not known to the compiler to be 0, so that mask and exponent stand in registers.
    """
    WORDS: tl.constexpr = COLUMNS * BITS // 32
    if 32 % BITS == 0:
        packed = tl.load(w_ptr + first * BITS // 32 + (w_at + tl.arange(0, WORDS)[None, :]))
        if PAIRED:
            pair = packed[:, :, None] >> (tl.arange(0, 16 // BITS) * BITS)[None, None, :]
            if INTERPRETED:
                MASK: tl.constexpr = (1 << BITS) - 1
                codes = tl.join((pair & MASK).to(tl.float32), ((pair >> 16) & MASK).to(tl.float32))
            else:
                ones: tl.constexpr = 0x64006400 if dtype == tl.float16 else 0x43004300
                pair = (pair & ((((1 << BITS) - 1) * 0x10001) + zero)) | (ones + zero)
                codes = tl.join(pair.to(tl.int16), (pair >> 16).to(tl.int16)).to(dtype, bitcast=True)
        else:
            even, odd = halves(packed, BITS)
            codes = tl.join(exact(even.to(tl.float32), dtype), exact(odd.to(tl.float32), dtype))
        codes = tl.reshape(codes, [ROWS, COLUMNS])
    else:
        chunk = first // 8 + tl.arange(0, COLUMNS // 8)
        window = window8(w_ptr + w_at, chunk[None, :], (w_at >= 0) & (chunk >= 0)[None, :], BITS)
        codes = codes8(window[:, :, None], tl.arange(0, 8)[None, None, :], BITS).to(tl.float32)
        codes = tl.reshape(exact(codes, dtype), [ROWS, COLUMNS])
    return codes


@triton.jit
def _terms(scales_ptr, biases_ptr, at, group):
    """Load a group's scales and biases, [BN, 1]."""
    return tl.load(scales_ptr + group + at), tl.load(biases_ptr + group + at)


@triton.jit
def _product(
    w_ptr, w_at, terms, sums, x, start, zero, total,
    BITS: tl.constexpr, PAIRED: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
    dtype: tl.constexpr,
):  # fmt: skip
    """Add the product of BK columns of affine weights, of one group: ``scale * (codes @ x) + bias * sum(x)``."""
    OFFSET: tl.constexpr = 0 if INTERPRETED or not PAIRED else 1024 if dtype == tl.float16 else 128
    codes = _codes(w_ptr, w_at, start, zero, BN, BK, BITS, PAIRED, dtype)
    scale, bias = terms[0].to(tl.float32), terms[1].to(tl.float32)
    product = dot(codes, x, tl.zeros([BN, BM], tl.float32))
    return total + product * scale + sums[None, :] * (bias - OFFSET * scale)


@triton.jit
def _floats(
    w_ptr, w_at, scales_ptr, scale_at, start, k,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    dtype: tl.constexpr,
):  # fmt: skip
    """Return BK columns of weights of another format, scaled; those of 4 bits in the order of ``arrange_kernel``."""
    if BITS == 4:
        GROUPS: tl.constexpr = BK // GROUP
        packed = tl.load(w_ptr + start // 8 + (w_at + tl.arange(0, BK // 8)[None, :]))
        scale = scale_of(tl.load(scales_ptr + start // GROUP + (scale_at + tl.arange(0, GROUPS)[None, :])), MODE)
        scale = tl.reshape(tl.broadcast_to(scale[:, :, None], [BN, GROUPS, GROUP // 8]), [BN, BK // 8, 1])
        pair = packed[:, :, None] >> (tl.arange(0, 4) * 4)[None, None, :]
        # As in ``e2m1``, two at a time.
        pair = ((pair & 0x70007) << 9) | ((pair & 0x80008) << 12)
        low, high = (
            pair.to(tl.int16).to(tl.float16, bitcast=True),
            (pair >> 16).to(tl.int16).to(tl.float16, bitcast=True),
        )
        low, high = (low * 16384.0).to(tl.float32) * scale, (high * 16384.0).to(tl.float32) * scale
        if dtype == tl.bfloat16:  # six bits of a fraction at most
            tile = tl.join(exact(low, dtype), exact(high, dtype))
        else:
            tile = tl.join(narrow(low, dtype), narrow(high, dtype))
        tile = tl.reshape(tile, [BN, BK])
    else:
        tile = weight_tile(
            w_ptr + w_at, scales_ptr + scale_at, None, start, k, w_at >= 0, dtype, MODE, BITS, GROUP, BN, BK, True
        )
    return tile


@triton.jit
def _rows(
    x_ptr, sums_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, pairs_ptr,
    entry, expert, column, m, n, k, words, groups, divisor, zero,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, GATED: tl.constexpr, HAS_LHS: tl.constexpr,
    PAIRED: tl.constexpr, WHOLE: tl.constexpr, LARGE: tl.constexpr, WAITED: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Compute at most BM rows, of the tile at ``entry`` of the table."""
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    rows, first = tl.load(entry + 3), tl.load(entry + 2)
    # Rows that are too many are the last one again, which costs no memory traffic, and are not stored.
    place = tl.minimum(tl.arange(0, BM), rows - 1) + first
    pairs = tl.load(pairs_ptr + place // m)
    if HAS_LHS:
        matrix = tl.load(lhs_ptr + pairs).to(tl.int32)
    else:
        matrix = pairs // divisor
    source = matrix * m + place % m
    sums_at = source * (k // BK)
    if LARGE:
        source = source.to(tl.int64)
    x_at = x_ptr + source[None, :] * k + tl.arange(0, BK)[:, None]
    # Scalar bases with offsets of 32 bits, which gate and up, scales and biases share, take few registers.
    row = tl.minimum(column, n - 1)[:, None]
    w_at, scale_at = row * words, row * groups
    base, scale_base = expert * n * words, expert * n * groups
    w_ptr, scales_ptr = w_ptr + base, scales_ptr + scale_base
    if MODE == "affine":
        biases_ptr += scale_base
    if GATED:
        up_ptr, up_scales_ptr = up_ptr + base, up_scales_ptr + scale_base
        if MODE == "affine":
            up_biases_ptr += scale_base
    total = tl.zeros([BN, BM], tl.float32)
    total_up = tl.zeros([BN, BM], tl.float32)
    if MODE == "affine":
        steps = k // BK
        for step in tl.range(0, steps, num_stages=STAGES):
            group = step * BK // GROUP
            terms, sums = _terms(scales_ptr, biases_ptr, scale_at, group), tl.load(sums_ptr + step + sums_at)
            x = tl.load(x_at + step * BK)
            total = _product(w_ptr, w_at, terms, sums, x, step * BK, zero, total, BITS, PAIRED, BN, BM, BK, dtype)
            if GATED:
                terms = _terms(up_scales_ptr, up_biases_ptr, scale_at, group)
                total_up = _product(
                    up_ptr, w_at, terms, sums, x, step * BK, zero, total_up, BITS, PAIRED, BN, BM, BK, dtype
                )
    else:
        for start in tl.range(0, k, BK, num_stages=STAGES):
            x = tl.load(x_at + start)
            tile = _floats(w_ptr, w_at, scales_ptr, scale_at, start, k, MODE, BITS, GROUP, BN, BK, dtype)
            total = dot(tile, x, total)
            if WAITED:
                total = waited(total)
            if GATED:
                tile = _floats(up_ptr, w_at, up_scales_ptr, scale_at, start, k, MODE, BITS, GROUP, BN, BK, dtype)
                total_up = dot(tile, x, total_up)
                if WAITED:
                    total_up = waited(total_up)
    if GATED:
        total = total / (1.0 + tl.exp(-total)) * total_up
    # Found anew: what is kept across the loop takes registers from it.
    rows, first = tl.load(entry + 3, volatile=True), tl.load(entry + 2, volatile=True)
    place = tl.minimum(tl.arange(0, BM), rows - 1) + first
    row = tl.load(pairs_ptr + place // m) * m + place % m
    if LARGE:
        row = row.to(tl.int64)
    out = out_ptr + (row[None, :] * n + column[:, None])
    inside = (tl.arange(0, BM) < rows)[None, :]
    if not WHOLE:
        inside = inside & (column < n)[:, None]
    tl.store(out, narrow(total, out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def grouped_kernel(
    x_ptr, sums_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr, table_ptr,
    m, n, k, words, groups, divisor, slots,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, GATED: tl.constexpr, HAS_LHS: tl.constexpr,
    PAIRED: tl.constexpr, WHOLE: tl.constexpr, LARGE: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, STAGES: tl.constexpr, HALVED: tl.constexpr,
    WAITED: tl.constexpr,
):  # fmt: skip
    """A tile of BM rows of one expert and BN columns of ``x @ w.T``, or of ``silu(x @ w.T) * (x @ up.T)``.

    x, its sums of each BK columns and the table are those of ``arrange_kernel``. Programs: (tiles · blocks of n).
    K is whole steps. WHOLE: n is whole blocks. LARGE: x or the output has 2^31 elements or more.
    HALVED: a tile with half the rows or fewer takes half the products. WAITED: see ``waited``; affine products are used
    within the loop anyway.
    """
    blocks = tl.cdiv(n, BN)
    entry = table_ptr + tl.program_id(0) // blocks * 4
    rows = tl.load(entry + 3)
    if rows <= 0:
        return
    expert = tl.load(entry).to(tl.int64)
    pairs_ptr = table_ptr + slots * 4 + tl.load(entry + 1)
    column = tl.program_id(0) % blocks * BN + tl.arange(0, BN)
    zero = n >> 31
    if HALVED and rows <= BM // 2:
        _rows(
            x_ptr, sums_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr,
            pairs_ptr, entry, expert, column, m, n, k, words, groups, divisor, zero,
            MODE, BITS, GROUP, GATED, HAS_LHS, PAIRED, WHOLE, LARGE, WAITED, BM // 2, BN, BK, STAGES,
        )  # fmt: skip
    else:
        _rows(
            x_ptr, sums_ptr, w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, out_ptr, lhs_ptr,
            pairs_ptr, entry, expert, column, m, n, k, words, groups, divisor, zero,
            MODE, BITS, GROUP, GATED, HAS_LHS, PAIRED, WHOLE, LARGE, WAITED, BM, BN, BK, STAGES,
        )  # fmt: skip
