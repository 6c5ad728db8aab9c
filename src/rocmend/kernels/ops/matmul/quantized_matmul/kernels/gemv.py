"""Rows of x, each against affine weights of 2, 4 or 8 bits, in one launch: up to three weights, or a gated pair.

One row may be normalised first (RMSNorm), with a residual added before: each program does so for the whole row itself.

A program holds x in registers and loops over tiles of weight rows. Its wavefronts split K, so that no partial sums go
through memory, and rows are loaded before they are multiplied, so that many loads are in flight. Each lane loads WIDE
neighbouring words of a row at once, and a code is used where it stands in a mantissa: what the exponent adds comes off
with the sum of x, from which a row's sum starts.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import narrow
from rocmend.kernels.ops.rowwise.rms_norm.kernel import inverse_root

CHAINS = tl.constexpr(2)
"""Sums that a lane keeps of a row: two of them are one packed or dual instruction on AMD GPUs."""


@triton.jit
def _unstack(x, COUNT: tl.constexpr):
    """Split the last axis of [Q, CHAINS, COUNT] into a tuple of [Q, CHAINS], in bit-reversed order."""
    if COUNT == 1:
        return (x.reshape(x.shape[0], x.shape[1]),)
    elif COUNT == 2:  # noqa: RET505  Triton 3.6 compiles what follows a return
        return tl.split(x)
    else:
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
    (``lop3``) applies both. On gfx9, which takes one scalar register in an instruction, ``zero`` is a vector.
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
def _load(w_row, s_row, b_row, q, WIDE: tl.constexpr, SHARE: tl.constexpr, COUNT: tl.constexpr, EVEN: tl.constexpr):
    """Load words [Q, WIDE], scales and biases [Q] of a row.

    ``q`` numbers the groups of WIDE words, of which a row has COUNT; SHARE of them have one scale.
    """
    at = q[:, None] * WIDE + tl.arange(0, WIDE)[None, :]
    g = q // SHARE
    if EVEN:
        return tl.load(w_row + at), tl.load(s_row + g), tl.load(b_row + g)
    else:  # noqa: RET505  Triton 3.6 compiles what follows a return
        inside = q < COUNT
        w = tl.load(w_row + at, mask=inside[:, None], other=0)
        return w, tl.load(s_row + g, mask=inside, other=0.0), tl.load(b_row + g, mask=inside, other=0.0)


@triton.jit
def _fetch(
    rows, PART: tl.constexpr, q, WORDS: tl.constexpr, GROUPS: tl.constexpr,
    WIDE: tl.constexpr, SHARE: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """Load row PART of a tile; with a gate, rows of both weights follow each other."""
    w, s, b = rows[PART % len(rows)]
    ROW: tl.constexpr = PART // len(rows)
    return _load(w + ROW * WORDS, s + ROW * GROUPS, b + ROW * GROUPS, q, WIDE, SHARE, WORDS // WIDE, EVEN)


@triton.jit
def _tile(
    tile, first_of, second_of, third_of, N0, N1, N2,
    WORDS: tl.constexpr, GROUPS: tl.constexpr, COUNT: tl.constexpr, GATED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Return pointers to the first row of a tile in each of its weights (words, scales, biases); its output and column.

    Tiles go through the first weights, then the second and the third; with a gate, through both at once. The last tile
    of weights overlaps the one before where ROWS do not divide them.
    """
    w_ptr, s_ptr, b_ptr, out_ptr = first_of
    N = N0
    tiles_before = 0
    if COUNT > 1 and not GATED:
        second = tl.cdiv(N0, ROWS)
        later = tile >= second
        w_ptr = tl.where(later, second_of[0], w_ptr)
        s_ptr = tl.where(later, second_of[1], s_ptr)
        b_ptr = tl.where(later, second_of[2], b_ptr)
        out_ptr = tl.where(later, second_of[3], out_ptr)
        N = tl.where(later, N1, N)
        tiles_before = tl.where(later, second, 0)
        if COUNT > 2:
            third = second + tl.cdiv(N1, ROWS)
            last = tile >= third
            w_ptr = tl.where(last, third_of[0], w_ptr)
            s_ptr = tl.where(last, third_of[1], s_ptr)
            b_ptr = tl.where(last, third_of[2], b_ptr)
            out_ptr = tl.where(last, third_of[3], out_ptr)
            N = tl.where(last, N2, N)
            tiles_before = tl.where(last, third, tiles_before)
    first = tl.minimum((tile - tiles_before) * ROWS, N - ROWS)
    row = first.to(tl.int64)
    rows = ((w_ptr + row * WORDS, s_ptr + row * GROUPS, b_ptr + row * GROUPS),)
    if GATED:
        rows = rows + ((second_of[0] + row * WORDS, second_of[1] + row * GROUPS, second_of[2] + row * GROUPS),)
    return rows, out_ptr, first


@triton.jit
def _every_second(parts, FIRST: tl.constexpr, COUNT: tl.constexpr):
    """Return COUNT elements of a tuple, every second one from FIRST on."""
    chosen = ()
    for i in tl.static_range(COUNT):
        chosen = chosen + (parts[FIRST + 2 * i],)
    return chosen


@triton.jit
def _join(parts, COUNT: tl.constexpr):
    """Join a power of two of tensors [Q] to [Q, 2, 2, …], in order."""
    if COUNT == 1:
        return parts[0]
    else:  # noqa: RET505  Triton 3.6 compiles what follows a return
        even = _join(_every_second(parts, 0, COUNT // 2), COUNT // 2)
        return tl.join(even, _join(_every_second(parts, 1, COUNT // 2), COUNT // 2))


@triton.jit
def _sums(parts, COUNT: tl.constexpr):
    """Return the sums [COUNT] of so many tensors [Q].

    For the split, Triton transposes through LDS: each lane then adds up elements of one row, and few shuffles are left.
    Without it, every row's sum would take a shuffle and an addition in all lanes for each power of two.
    """
    x = _join(parts, COUNT)
    Q: tl.constexpr = x.shape[0]
    if Q > 1:
        even, odd = tl.split(x.reshape(Q // 2, 2, COUNT).permute(0, 2, 1))
        x = even + odd
    else:
        x = x.reshape(Q, COUNT)
    return tl.sum(x, axis=0)


@triton.jit
def _product(
    w, s, b, held, total, offset, zero,
    BITS: tl.constexpr, PAIRED: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """Return each lane's part of s · Σ x·q + b · Σ x; ``offset`` takes off what the exponent adds to codes."""
    CODES: tl.constexpr = 32 // BITS
    UNIT: tl.constexpr = 1 if PAIRED else 1 << BITS
    words = _unstack(w.reshape(w.shape[0], CHAINS, STEPS), STEPS)
    acc = offset
    for i in tl.static_range(STEPS):
        for j in tl.static_range(CODES):
            acc = tl.fma(_mantissa(words[_place(i, STEPS)], zero, j, BITS, PAIRED), held[i * CODES + j], acc)
    return (s.to(tl.float32) * UNIT) * tl.sum(acc, axis=1) + b.to(tl.float32) * total


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
    N0, N1, N2, tiles, walkers, x_stride, w_batch, divisor, eps,
    GROUP: tl.constexpr, BITS: tl.constexpr, COUNT: tl.constexpr, GATED: tl.constexpr, PAIRED: tl.constexpr,
    EXPERTS: tl.constexpr, NORM: tl.constexpr, BY_BITS: tl.constexpr, APART: tl.constexpr, WORDS: tl.constexpr,
    PADDED: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """Compute out[n] = Σ_g s · Σ x·q + b · Σ x for the rows of each weight; ``silu(first) · second`` where GATED.

    Programs: walkers over tiles of ROWS rows (of both weights with a gate), for each number of the batch. PADDED is a
    power of two that holds a row's WORDS. AHEAD rows are loaded before they are multiplied, at most those of a tile.
    With EXPERTS, a number of the batch multiplies row ``lhs[number]`` (or ``number // divisor``) of x with the weights
    of expert ``rhs[number]``; without, the products and each step of a gate are rounded to the type of the output.
    With NORM the one row is normalised first: ``x + residual`` (kept in ``total``) or x, times ``norm``; the result is
    kept in ``normed`` where that is given.
    """
    CODES: tl.constexpr = 32 // BITS
    GROUPS: tl.constexpr = WORDS * CODES // GROUP
    SHARE: tl.constexpr = GROUP // (WIDE * CODES)
    EVEN: tl.constexpr = PADDED == WORDS
    Q: tl.constexpr = PADDED // WIDE
    STEPS: tl.constexpr = WIDE // CHAINS
    PARTS: tl.constexpr = 2 * ROWS if GATED else ROWS
    dtype: tl.constexpr = out0_ptr.dtype.element_ty
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
    w0_ptr += first_row * WORDS
    s0_ptr += first_row * GROUPS
    b0_ptr += first_row * GROUPS
    if GATED:
        w1_ptr += first_row * WORDS
        s1_ptr += first_row * GROUPS
        b1_ptr += first_row * GROUPS
    first_of = (w0_ptr, s0_ptr, b0_ptr, out0_ptr)
    second_of = (w1_ptr, s1_ptr, b1_ptr, out1_ptr)
    third_of = (w2_ptr, s2_ptr, b2_ptr, out2_ptr)
    q = tl.arange(0, Q)
    at = (q[:, None] * WIDE + tl.arange(0, WIDE)[None, :])[:, :, None] * CODES + tl.arange(0, CODES)[None, None, :]
    inside = (q < WORDS // WIDE)[:, None, None]
    if APART:
        zero = ((tiles + q) >> 31)[:, None]
    else:
        zero = tiles >> 31
    # Before the weights: what is loaded first arrives first, and normalising need not wait for memory.
    x = _row(x_ptr, at, inside, EVEN)
    residual = None if residual_ptr is None else _row(residual_ptr, at, inside, EVEN)
    gain = None if norm_ptr is None else _row(norm_ptr, at, inside, EVEN)
    rows, out_ptr, first = _tile(
        walker, first_of, second_of, third_of, N0, N1, N2, WORDS, GROUPS, COUNT, GATED, ROWS
    )  # fmt: skip
    ring = ()
    for part in tl.static_range(AHEAD):
        ring = ring + (_fetch(rows, part, q, WORDS, GROUPS, WIDE, SHARE, EVEN),)
    if NORM:
        x = _normalised(x, residual, gain, total_ptr, normed_ptr, at, inside, WORDS * CODES, eps, dtype, EVEN, BY_BITS)
    unstacked = _unstack(x.to(tl.float32).reshape(Q, CHAINS, STEPS * CODES), STEPS * CODES)
    total = tl.zeros([Q, CHAINS], tl.float32)
    offset = tl.zeros([Q, CHAINS], tl.float32)
    held = ()
    for i in tl.static_range(STEPS * CODES):
        one = unstacked[_place(i, STEPS * CODES)]
        total += one
        if _low(i % CODES, PAIRED):
            one = one * 16
        offset -= one
        held = held + (one,)
    total = tl.sum(total, axis=1)
    if PAIRED:
        offset *= 128
    for tile in range(walker, tiles, walkers):
        out_here, first_here = out_ptr, first
        parts = ()
        for part in tl.static_range(PARTS):
            w, s, b = ring[0]
            if part + AHEAD == PARTS:
                rows, out_ptr, first = _tile(
                    tl.minimum(tile + walkers, tiles - 1), first_of, second_of, third_of, N0, N1, N2,
                    WORDS, GROUPS, COUNT, GATED, ROWS,
                )  # fmt: skip
            ring = ring[1:] + (_fetch(rows, (part + AHEAD) % PARTS, q, WORDS, GROUPS, WIDE, SHARE, EVEN),)
            parts = parts + (_product(w, s, b, held, total, offset, zero, BITS, PAIRED, STEPS),)
        product = _sums(parts, PARTS)
        if GATED:
            gate, up = tl.split(product.reshape(ROWS, 2))
            if not EXPERTS:
                gate = narrow(gate, dtype).to(tl.float32)
                up = narrow(up, dtype).to(tl.float32)
                sigmoid = narrow(tl.div_rn(tl.full(gate.shape, 1.0, tl.float32), 1.0 + tl.exp(-gate)), dtype)
                product = narrow(gate * sigmoid.to(tl.float32), dtype).to(tl.float32) * up
            else:
                product = gate / (1.0 + tl.exp(-gate)) * up
        tl.store(out_here + first_here + tl.arange(0, ROWS), narrow(product, dtype))
