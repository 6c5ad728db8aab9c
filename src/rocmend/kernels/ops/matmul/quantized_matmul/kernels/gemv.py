"""Rows of x, each against affine weights of 2, 4 or 8 bits, in one launch: up to three weights, or a gated pair.

One row may be normalised first (RMSNorm), with a residual added before: each program does so for the whole row itself.

A program holds x in registers and walks over tiles of weight rows, one tile ahead; its wavefronts share K, so that no
partial sums go through memory. Each lane loads WIDE neighbouring words of a row at once, and a code is used where it
stands in a mantissa: what the exponent adds comes off once a tile, with the sum of x that the biases need too.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow
from rocmend.kernels.ops.rowwise.rms_norm.kernel import inverse_root


@triton.jit
def _unstack(x, COUNT: tl.constexpr):
    """Split the last axis of [Q, WIDE, COUNT] into a tuple of [Q, WIDE], in bit-reversed order."""
    if COUNT == 2:
        return tl.split(x)
    else:  # noqa: RET505  Triton 3.6 compiles what follows a return
        even, odd = tl.split(x.reshape(x.shape[0], x.shape[1], COUNT // 2, 2))
        return _unstack(even, COUNT // 2) + _unstack(odd, COUNT // 2)


@triton.constexpr_function
def _place(j, codes):
    """Reverse the bits of j, a number below ``codes``."""
    place, bits = 0, codes.bit_length() - 1
    for bit in range(bits):
        place |= (j >> bit & 1) << (bits - 1 - bit)
    return place


@triton.constexpr_function
def _low(j, paired):
    """Return whether code j of a 4-bit word shares its neighbour's shift, four bits lower in the mantissa."""
    return paired and j in {0, 3, 6}


@triton.jit
def _mantissa(words, zero, J: tl.constexpr, BITS: tl.constexpr, PAIRED: tl.constexpr):
    """Return code J of each word as fp32: 128 + q or, where ``_low``, 128 + q / 16; 1 + q / 2**BITS unless PAIRED.

    ``zero`` is not known to the compiler to be zero: with it mask and exponent are in registers, and ``v_and_or_b32``
    (``lop3``) applies both.
    """
    LAST: tl.constexpr = 12 if _low(J, PAIRED) else 16 if PAIRED else 23 - BITS
    SHIFT: tl.constexpr = J * BITS - LAST
    MASK: tl.constexpr = ((1 << BITS) - 1) << LAST
    EXPONENT: tl.constexpr = 0x43000000 if PAIRED else 0x3F800000
    if SHIFT > 0:
        words = words >> SHIFT
    elif SHIFT < 0:
        words = words << -SHIFT
    return ((words & (MASK + zero)) | (EXPONENT + zero)).to(tl.float32, bitcast=True)


@triton.jit
def _load(w_rows, s_rows, b_rows, q, WIDE: tl.constexpr, SHARE: tl.constexpr, EVEN: tl.constexpr, count):
    """Load words [ROWS, Q, WIDE], scales and biases [ROWS, Q] of the rows that the pointers [ROWS] begin.

    ``q`` numbers the groups of WIDE words, of which a row has ``count``; SHARE of them have one scale.
    """
    at = (q[:, None] * WIDE + tl.arange(0, WIDE)[None, :])[None, :, :]
    if EVEN:
        w = tl.load(w_rows[:, None, None] + at)
        s = tl.load(s_rows[:, None] + (q // SHARE)[None, :])
        b = tl.load(b_rows[:, None] + (q // SHARE)[None, :])
    else:
        inside = q < count
        w = tl.load(w_rows[:, None, None] + at, mask=inside[None, :, None], other=0)
        s = tl.load(s_rows[:, None] + (q // SHARE)[None, :], mask=inside[None, :], other=0.0)
        b = tl.load(b_rows[:, None] + (q // SHARE)[None, :], mask=inside[None, :], other=0.0)
    return w, s, b


@triton.jit
def _rows(
    tile, t, w0_ptr, s0_ptr, b0_ptr, out0_ptr, w1_ptr, s1_ptr, b1_ptr, out1_ptr, w2_ptr, s2_ptr, b2_ptr, out2_ptr,
    N0, N1, N2, words, groups, COUNT: tl.constexpr, GATED: tl.constexpr, BLOCK_N: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Return pointers [ROWS] to words, scales and biases of part t of a tile; its output, first column and columns.

    Tiles go through the first weights, then the second and the third; with a gate, through rows of both in turn.
    """
    TILE: tl.constexpr = BLOCK_N * PARTS
    w_ptr, s_ptr, b_ptr, out_ptr, N = w0_ptr, s0_ptr, b0_ptr, out0_ptr, N0
    tiles_before = 0
    place = tl.arange(0, 2 * BLOCK_N if GATED else BLOCK_N)
    if GATED:
        up = place % 2 == 1
        w_ptr = tl.where(up, w1_ptr, w_ptr)
        s_ptr = tl.where(up, s1_ptr, s_ptr)
        b_ptr = tl.where(up, b1_ptr, b_ptr)
        place = place // 2
    elif COUNT > 1:
        second = tl.cdiv(N0, TILE)
        later = tile >= second
        w_ptr = tl.where(later, w1_ptr, w_ptr)
        s_ptr = tl.where(later, s1_ptr, s_ptr)
        b_ptr = tl.where(later, b1_ptr, b_ptr)
        out_ptr = tl.where(later, out1_ptr, out_ptr)
        N = tl.where(later, N1, N)
        tiles_before = tl.where(later, second, 0)
        if COUNT > 2:
            third = second + tl.cdiv(N1, TILE)
            last = tile >= third
            w_ptr = tl.where(last, w2_ptr, w_ptr)
            s_ptr = tl.where(last, s2_ptr, s_ptr)
            b_ptr = tl.where(last, b2_ptr, b_ptr)
            out_ptr = tl.where(last, out2_ptr, out_ptr)
            N = tl.where(last, N2, N)
            tiles_before = tl.where(last, third, tiles_before)
    first = (tile - tiles_before) * TILE
    n = tl.minimum(first + place * PARTS + t, N - 1).to(tl.int64)
    return w_ptr + n * words, s_ptr + n * groups, b_ptr + n * groups, out_ptr, first, N


@triton.jit
def _join(parts, COUNT: tl.constexpr):
    """Join 1, 2 or 4 tensors [ROWS, Q] to [ROWS, Q, COUNT]."""
    if COUNT == 1:
        return parts[0][:, :, None]
    elif COUNT == 2:  # noqa: RET505  Triton 3.6 compiles what follows a return
        return tl.join(parts[0], parts[1])
    else:
        four = tl.join(tl.join(parts[0], parts[2]), tl.join(parts[1], parts[3]))
        return four.reshape(four.shape[0], four.shape[1], 4)


@triton.jit
def _row(ptr, at, inside, EVEN: tl.constexpr):
    """Load the elements of a row that a program holds."""
    if EVEN:
        return tl.load(ptr + at)
    else:  # noqa: RET505  Triton 3.6 compiles what follows a return
        return tl.load(ptr + at, mask=inside, other=0.0)


@triton.jit
def _keep(ptr, at, inside, values, EVEN: tl.constexpr):
    """Store a row that all programs hold, in fp32 but rounded: the first one does."""
    if tl.program_id(0) == 0:
        if EVEN:
            tl.store(ptr + at, values.to(ptr.dtype.element_ty))
        else:
            tl.store(ptr + at, values.to(ptr.dtype.element_ty), mask=inside)


@triton.jit
def _rounded(x, dtype: tl.constexpr, BY_BITS: tl.constexpr):
    """Return fp32 x rounded to a type, in fp32.

    BY_BITS: bf16 by integer arithmetic, where no instruction does it. NaN is not looked for: it stays
    NaN, as its low bits are zero where it comes from bf16 or from an operation.
    """
    if BY_BITS:
        bits = x.to(tl.uint32, bitcast=True)
        return ((bits + (((bits >> 16) & 1) + 0x7FFF)) & 0xFFFF0000).to(tl.float32, bitcast=True)
    else:  # noqa: RET505  Triton 3.6 compiles what follows a return
        return narrow(x, dtype).to(tl.float32)


@triton.jit
def _normalised(
    x, residual, weight, total_ptr, normed_ptr, at, inside, n, eps,
    dtype: tl.constexpr, EVEN: tl.constexpr, BY_BITS: tl.constexpr,
):  # fmt: skip
    """Return in fp32 the RMSNorm of x, or of x + residual, rounded as ``add_rms_norm``: sum, quotient, product."""
    x = x.to(tl.float32)
    if residual is not None:
        x = _rounded(x + residual.to(tl.float32), dtype, BY_BITS)
        _keep(total_ptr, at, inside, x, EVEN)
    squares = tl.sum(tl.sum(tl.sum(x * x, axis=2), axis=1), axis=0, keep_dims=True)
    normal = _rounded(x * inverse_root(squares, n, eps)[:, None, None], dtype, BY_BITS)
    if weight is not None:
        normal = _rounded(normal * weight.to(tl.float32), dtype, BY_BITS)
    if normed_ptr is not None:
        _keep(normed_ptr, at, inside, normal, EVEN)
    return normal


@triton.jit
def gemv_kernel(
    x_ptr, w0_ptr, s0_ptr, b0_ptr, out0_ptr, w1_ptr, s1_ptr, b1_ptr, out1_ptr, w2_ptr, s2_ptr, b2_ptr, out2_ptr,
    lhs_ptr, rhs_ptr, residual_ptr, norm_ptr, total_ptr, normed_ptr,
    N0, N1, N2, words, groups, tiles, walkers, x_stride, w_batch, divisor, eps,
    GROUP: tl.constexpr, BITS: tl.constexpr, COUNT: tl.constexpr, GATED: tl.constexpr, PAIRED: tl.constexpr,
    EXPERTS: tl.constexpr, NORM: tl.constexpr, BY_BITS: tl.constexpr, WORDS: tl.constexpr, WIDE: tl.constexpr,
    EVEN: tl.constexpr, BLOCK_N: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    """Compute out[n] = Σ_g s · Σ x·q + b · Σ x for the rows of each weight; ``silu(first) · second`` where GATED.

    Programs: walkers over tiles of PARTS times BLOCK_N rows, for each number of the batch. WORDS is a power of two that
    holds a row's words.
    With EXPERTS, a number of the batch multiplies row ``lhs[number]`` (or ``number // divisor``) of x with the weights
    of expert ``rhs[number]``; without, the products and each step of a gate are rounded to the type of the output.
    With NORM the one row is normalised first: ``x + residual`` (kept in ``total``) or x, times ``norm``; the result is
    kept in ``normed`` where that is given.
    """
    CODES: tl.constexpr = 32 // BITS
    SHARE: tl.constexpr = GROUP // (WIDE * CODES)
    UNIT: tl.constexpr = 1 if PAIRED else 1 << BITS
    dtype: tl.constexpr = out0_ptr.dtype.element_ty
    zero = words >> 31
    batch = (tl.program_id(0) // walkers).to(tl.int64)
    walker = tl.program_id(0) % walkers
    out0_ptr += batch * N0
    if EXPERTS:
        if lhs_ptr is None:
            x_ptr += batch // divisor * x_stride
        else:
            x_ptr += tl.load(lhs_ptr + batch).to(tl.int64) * x_stride
        first_row = tl.load(rhs_ptr + batch).to(tl.int64) * w_batch
    else:
        x_ptr += batch * x_stride
        first_row = batch * w_batch
    w0_ptr += first_row * words
    s0_ptr += first_row * groups
    b0_ptr += first_row * groups
    if GATED:
        w1_ptr += first_row * words
        s1_ptr += first_row * groups
        b1_ptr += first_row * groups
    q = tl.arange(0, WORDS // WIDE)
    count = words // WIDE
    at = (q[:, None] * WIDE + tl.arange(0, WIDE)[None, :])[:, :, None] * CODES + tl.arange(0, CODES)[None, None, :]
    inside = (q < count)[:, None, None]
    # Before the weights: what is loaded first arrives first, and normalising need not wait for memory.
    x = _row(x_ptr, at, inside, EVEN)
    residual = None if residual_ptr is None else _row(residual_ptr, at, inside, EVEN)
    gain = None if norm_ptr is None else _row(norm_ptr, at, inside, EVEN)
    tile = walker
    w_rows, s_rows, b_rows, out_ptr, first, N = _rows(
        tile, 0, w0_ptr, s0_ptr, b0_ptr, out0_ptr, w1_ptr, s1_ptr, b1_ptr, out1_ptr, w2_ptr, s2_ptr, b2_ptr, out2_ptr,
        N0, N1, N2, words, groups, COUNT, GATED, BLOCK_N, PARTS,
    )  # fmt: skip
    w_next, s_next, b_next = _load(w_rows, s_rows, b_rows, q, WIDE, SHARE, EVEN, count)
    if NORM:
        x = _normalised(x, residual, gain, total_ptr, normed_ptr, at, inside, words * CODES, eps, dtype, EVEN, BY_BITS)
    unstacked = _unstack(x.to(tl.float32), CODES)
    total = tl.zeros([WORDS // WIDE, WIDE], tl.float32)
    offset = tl.zeros([WORDS // WIDE, WIDE], tl.float32)
    held = ()
    for j in tl.static_range(CODES):
        one = unstacked[_place(j, CODES)]
        total += one
        if _low(j, PAIRED):
            one = one * 16
        offset += one
        held = held + (one[None, :, :],)
    total = tl.sum(total, axis=1)[None, :]
    offset = tl.sum(offset, axis=1)[None, :] * (128 if PAIRED else 1)
    for tile in range(walker, tiles, walkers):
        out_here, first_here, N_here = out_ptr, first, N
        parts = ()
        for t in tl.static_range(PARTS):
            w, s, b = w_next, s_next, b_next
            after = tile if t + 1 < PARTS else tl.minimum(tile + walkers, tiles - 1)
            w_rows, s_rows, b_rows, out_ptr, first, N = _rows(
                after, (t + 1) % PARTS, w0_ptr, s0_ptr, b0_ptr, out0_ptr, w1_ptr, s1_ptr, b1_ptr, out1_ptr,
                w2_ptr, s2_ptr, b2_ptr, out2_ptr, N0, N1, N2, words, groups, COUNT, GATED, BLOCK_N, PARTS,
            )  # fmt: skip
            w_next, s_next, b_next = _load(w_rows, s_rows, b_rows, q, WIDE, SHARE, EVEN, count)
            acc = tl.zeros([w.shape[0], WORDS // WIDE, WIDE], tl.float32)
            for j in tl.static_range(CODES):
                acc = tl.fma(_mantissa(w, zero, j, BITS, PAIRED), held[j], acc)
            part = (s.to(tl.float32) * UNIT) * (tl.sum(acc, axis=2) - offset) + b.to(tl.float32) * total
            parts = parts + (part,)
        product = tl.sum(_join(parts, PARTS), axis=1)  # one exchange between wavefronts for all parts
        n = first_here + tl.arange(0, BLOCK_N * PARTS)
        if GATED:
            gate, up = tl.split(product.reshape(BLOCK_N, 2, PARTS).permute(0, 2, 1))
            if not EXPERTS:
                gate = narrow(gate, dtype).to(tl.float32)
                up = narrow(up, dtype).to(tl.float32)
                sigmoid = narrow(tl.div_rn(tl.full(gate.shape, 1.0, tl.float32), 1.0 + tl.exp(-gate)), dtype)
                product = narrow(gate * sigmoid.to(tl.float32), dtype).to(tl.float32) * up
            else:
                product = gate / (1.0 + tl.exp(-gate)) * up
        product = product.reshape(BLOCK_N * PARTS)
        tl.store(out_here + n, narrow(product, dtype), mask=n < N_here)
