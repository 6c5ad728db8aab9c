"""Several products of the same few rows of x in one launch, and a gated one, with the lanes of ``quantized_matmul``.

What a program walks through is the same; which rows of which weights are its own differs.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import INTERPRETED, narrow
from rocmend.kernels.ops.quantized_matmul.kernels.lanes import _added, _moved, _packed, _words


@triton.jit
def _walked(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    n,
    row,
    first_line,
    M,
    words,
    groups,
    x_stride,
    steps,
    zero,
    MODE: tl.constexpr,
    GROUP: tl.constexpr,
    BITS: tl.constexpr,
    SLICES: tl.constexpr,
    PER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    AHEAD: tl.constexpr,
    EVEN: tl.constexpr,
    PDL: tl.constexpr,
):
    """Return Σ_g s[n,g] · Σ x·q + b[n,g] · Σ x of 16 rows of w and BLOCK_M of x in fp32, [16, BLOCK_M].

    ``n`` are the rows of w, int64, [1, 8, 1, 2, 1], the second eight of the 16 along the last axis but one; ``row`` the
    same in order, [1, 16]. Weights are given by one pointer or by one for each of ``n``, scales and biases for each of
    ``row``. ``zero`` is 0, as a number that the compiler does not know. For the rest see ``lanes_kernel``.
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    AFFINE: tl.constexpr = MODE == "affine"
    UNIT: tl.constexpr = min(GROUP, 64)
    # Groups of a wavefront, their bytes, words of at most 8 bytes that hold them, and groups in each.
    GROUPS: tl.constexpr = PER * UNIT // GROUP
    BYTES: tl.constexpr = GROUPS * (2 if AFFINE else 1)
    QUADS: tl.constexpr = max(1, BYTES // 8)
    EACH: tl.constexpr = GROUPS // QUADS
    HOLDER: tl.constexpr = (
        tl.int64 if BYTES >= 8 else (tl.int32 if BYTES == 4 else (tl.int16 if BYTES == 2 else tl.uint8))
    )
    VECTOR: tl.constexpr = min(8, UNIT // 4)
    STEP: tl.constexpr = SLICES * PER
    WORDS: tl.constexpr = STEP * UNIT * BITS // 32
    HOLDERS: tl.constexpr = STEP * UNIT // GROUP // EACH
    # What is left out where codes become fp16.
    FACTOR: tl.constexpr = (
        1.0 if INTERPRETED or AFFINE or dtype == tl.bfloat16 else 2.0 ** (8 if MODE == "mxfp8" else 14)
    )
    units = groups * (GROUP // UNIT)
    quarter = tl.arange(0, 4)[:, None, None, None, None]
    slices = tl.arange(0, SLICES)[None, None, :, None, None]
    unit = slices * PER + tl.arange(0, PER)[None, None, None, None, :]
    # Where all steps are whole, one comparison tells for all units.
    seen = unit * 0 if EVEN else unit
    # A lane must not find the words of its neighbours beside its own, or Triton has it load those.
    t = quarter | zero
    w_rows = w_ptr + (n * words + unit * (UNIT * BITS // 32))
    holder = tl.arange(0, SLICES)[:, None] * QUADS
    seen_holder = holder * 0 if EVEN else holder
    s_rows, b_rows = (), ()
    for q in tl.static_range(QUADS):
        s_rows = s_rows + (scales_ptr.to(tl.pointer_type(HOLDER)) + (row * (groups // EACH) + (holder + q)),)
        if AFFINE:
            b_rows = b_rows + (biases_ptr.to(tl.pointer_type(HOLDER)) + (row * (groups // EACH) + (holder + q)),)
    x_eight = tl.arange(0, 8)[None, :, None, None, None, None, None]
    x_line = tl.arange(0, BLOCK_M // 8)[None, None, None, :, None, None, None] * 8 + x_eight
    x_line += first_line
    x_unit = tl.arange(0, SLICES)[None, None, :, None, None, None, None] * PER
    x_unit += tl.arange(0, PER)[None, None, None, None, :, None, None]
    x_code = tl.arange(0, 4)[:, None, None, None, None, None, None] * (UNIT // 4)
    x_code += tl.arange(0, UNIT // 4 // VECTOR)[None, None, None, None, None, :, None] * VECTOR
    x_code += tl.arange(0, VECTOR)[None, None, None, None, None, None, :]
    x_rows = x_ptr + x_line.to(tl.int64) * x_stride + (x_unit * UNIT + x_code)
    x_given = x_line < M
    # Where all steps are whole, what is loaded behind the last one is not used.
    FIRST: tl.constexpr = 0 if EVEN else 2
    LATER: tl.constexpr = 1 if EVEN else 2
    w0 = _words(w_rows, t, unit < units, UNIT, BITS, FIRST)
    s0 = _packed(s_rows, holder < groups // EACH, FIRST)
    b0 = _packed(b_rows, holder < groups // EACH, FIRST)
    if AHEAD == 2:
        w1 = _words(w_rows + WORDS, t, unit + STEP < units, UNIT, BITS, FIRST)
        s1 = _packed(_moved(s_rows, HOLDERS), holder + HOLDERS < groups // EACH, FIRST)
        b1 = _packed(_moved(b_rows, HOLDERS), holder + HOLDERS < groups // EACH, FIRST)
    if PDL:
        tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
    sums = tl.zeros([SLICES, 16, BLOCK_M], tl.float32)
    for step in range(0, steps, AHEAD):
        x_here = x_given if EVEN else x_given & (x_unit + step * STEP < units)
        x = tl.load(x_rows + step * (STEP * UNIT), mask=x_here, other=0.0)
        sums = _added(sums, x, w0, s0, b0, t, zero, UNIT, BITS, MODE, PER, EACH, dtype)
        later = step + AHEAD
        w0 = _words(w_rows + later * WORDS, t, seen + later * STEP < units, UNIT, BITS, LATER)
        s0 = _packed(_moved(s_rows, later * HOLDERS), seen_holder + later * HOLDERS < groups // EACH, LATER)
        b0 = _packed(_moved(b_rows, later * HOLDERS), seen_holder + later * HOLDERS < groups // EACH, LATER)
        if AHEAD == 2:
            x_here = x_given if EVEN else x_given & (x_unit + (step + 1) * STEP < units)
            x = tl.load(x_rows + (step + 1) * (STEP * UNIT), mask=x_here, other=0.0)
            sums = _added(sums, x, w1, s1, b1, t, zero, UNIT, BITS, MODE, PER, EACH, dtype)
            w1 = _words(w_rows + (later + 1) * WORDS, t, seen + (later + 1) * STEP < units, UNIT, BITS, LATER)
            s1 = _packed(
                _moved(s_rows, (later + 1) * HOLDERS), seen_holder + (later + 1) * HOLDERS < groups // EACH, LATER
            )
            b1 = _packed(
                _moved(b_rows, (later + 1) * HOLDERS), seen_holder + (later + 1) * HOLDERS < groups // EACH, LATER
            )
    return tl.sum(sums, axis=0) * FACTOR


@triton.jit
def many_kernel(
    x_ptr, w0_ptr, s0_ptr, b0_ptr, out0_ptr, w1_ptr, s1_ptr, b1_ptr, out1_ptr, w2_ptr, s2_ptr, b2_ptr, out2_ptr,
    M, N0, N1, N2, words, groups, x_stride, steps,
    MODE: tl.constexpr, GROUP: tl.constexpr, BITS: tl.constexpr, COUNT: tl.constexpr, SLICES: tl.constexpr,
    PER: tl.constexpr, BLOCK_M: tl.constexpr, AHEAD: tl.constexpr, EVEN: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Multiply x with COUNT (2 or 3) weights, each as ``lanes_kernel`` does.

    Programs: (tiles of 16 rows of the first weights, then of the second and the third, tiles of M).
    """
    AFFINE: tl.constexpr = MODE == "affine"
    tile = tl.program_id(0)
    second = tl.cdiv(N0, 16)
    third = second + tl.cdiv(N1, 16)
    later = tile >= second
    w_ptr = tl.where(later, w1_ptr, w0_ptr)
    s_ptr = tl.where(later, s1_ptr, s0_ptr)
    b_ptr = b0_ptr
    if AFFINE:
        b_ptr = tl.where(later, b1_ptr, b0_ptr)
    out_ptr = tl.where(later, out1_ptr, out0_ptr)
    N = tl.where(later, N1, N0)
    before = tl.where(later, second, 0)
    if COUNT == 3:
        last = tile >= third
        w_ptr = tl.where(last, w2_ptr, w_ptr)
        s_ptr = tl.where(last, s2_ptr, s_ptr)
        if AFFINE:
            b_ptr = tl.where(last, b2_ptr, b_ptr)
        out_ptr = tl.where(last, out2_ptr, out_ptr)
        N = tl.where(last, N2, N)
        before = tl.where(last, third, before)
    first = (tile - before) * 16
    first_line = tl.program_id(1) * BLOCK_M
    eight = tl.arange(0, 8)[None, :, None, None, None]
    eights = tl.arange(0, 2)[None, None, None, :, None]
    n = tl.minimum(first + eights * 8 + eight, N - 1).to(tl.int64)
    row = tl.minimum(first + tl.arange(0, 16)[None, :], N - 1).to(tl.int64)
    product = _walked(
        x_ptr, w_ptr, s_ptr, b_ptr, n, row, first_line, M, words, groups, x_stride, steps, N0 >> 31,
        MODE, GROUP, BITS, SLICES, PER, BLOCK_M, AHEAD, EVEN, PDL,
    )  # fmt: skip
    line = first_line + tl.arange(0, BLOCK_M)
    here_n = first + tl.arange(0, 16)
    at = line[None, :].to(tl.int64) * N + here_n[:, None]
    out = narrow(product, out_ptr.dtype.element_ty)
    tl.store(out_ptr + at, out, mask=(line < M)[None, :] & (here_n < N)[:, None])


@triton.jit
def gated_kernel(
    x_ptr, gate_ptr, gate_s_ptr, gate_b_ptr, up_ptr, up_s_ptr, up_b_ptr, out_ptr,
    M, N, words, groups, x_stride, steps,
    MODE: tl.constexpr, GROUP: tl.constexpr, BITS: tl.constexpr, SLICES: tl.constexpr, PER: tl.constexpr,
    BLOCK_M: tl.constexpr, AHEAD: tl.constexpr, EVEN: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Compute silu(x · gateᵀ) · (x · upᵀ), each step rounded as an operation by itself.

    Programs: (tiles of 8 columns, tiles of M): 8 rows of the gate and 8 of up, side by side.
    """
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    AFFINE: tl.constexpr = MODE == "affine"
    first = tl.program_id(0) * 8
    first_line = tl.program_id(1) * BLOCK_M
    eight = tl.arange(0, 8)[None, :, None, None, None]
    of_gate = tl.arange(0, 2)[None, None, None, :, None] == 0
    place = tl.arange(0, 16)[None, :]
    w_ptr = tl.where(of_gate, gate_ptr, up_ptr)
    s_ptr = tl.where(place < 8, gate_s_ptr, up_s_ptr)
    b_ptr = gate_b_ptr
    if AFFINE:
        b_ptr = tl.where(place < 8, gate_b_ptr, up_b_ptr)
    n = tl.minimum(first + eight, N - 1).to(tl.int64)
    row = tl.minimum(first + place % 8, N - 1).to(tl.int64)
    product = _walked(
        x_ptr, w_ptr, s_ptr, b_ptr, n, row, first_line, M, words, groups, x_stride, steps, N >> 31,
        MODE, GROUP, BITS, SLICES, PER, BLOCK_M, AHEAD, EVEN, PDL,
    )  # fmt: skip
    gate, up = tl.split(product.reshape(2, 8, BLOCK_M).permute(1, 2, 0))
    gate = narrow(gate, dtype).to(tl.float32)
    up = narrow(up, dtype).to(tl.float32)
    sigmoid = narrow(tl.div_rn(tl.full(gate.shape, 1.0, tl.float32), 1.0 + tl.exp(-gate)), dtype).to(tl.float32)
    silu = narrow(gate * sigmoid, dtype).to(tl.float32)
    line = first_line + tl.arange(0, BLOCK_M)
    here_n = first + tl.arange(0, 8)
    at = line[None, :].to(tl.int64) * N + here_n[:, None]
    tl.store(out_ptr + at, narrow(silu * up, dtype), mask=(line < M)[None, :] & (here_n < N)[:, None])
