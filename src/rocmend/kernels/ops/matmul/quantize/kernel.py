"""The Triton kernels: one program for a block of groups. Every rounding is that of the reference."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import e4m3
from rocmend.kernels.language import narrow


@triton.jit
def _rint(x):
    """Round to the nearest integer, half to even."""
    size = tl.abs(x)
    whole = (size + 8388608.0) - 8388608.0
    whole = tl.where(size < 8388608.0, whole, size)
    return tl.where(x < 0, -whole, whole)


@triton.jit
def _to_e4m3(x):
    """Return the e4m3 codes of fp32 numbers: to nearest even; beyond 448, and NaN, it is 448."""
    bits = x.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    # Below 2^-6 the grid is that of fp32 numbers of 2^14: adding that rounds to it.
    denormal = (size.to(tl.float32, bitcast=True) + 16384.0).to(tl.int32, bitcast=True) - (141 << 23)
    normal = (size - (120 << 23) + 0x7FFFF + ((size >> 20) & 1)) >> 20
    code = tl.where(size < (121 << 23), denormal, normal)
    return tl.where(size >= 0x43E00000, 0x7E, code) | ((bits >> 24) & 0x80)


@triton.jit
def _to_e2m1(x):
    """Return the e2m1 codes: between two, the one nearer to zero; 0 has no sign; NaN becomes 0."""
    size = tl.abs(x)
    code = (size > 0.25).to(tl.int32) + (size > 0.75).to(tl.int32) + (size > 1.25).to(tl.int32)
    code += (size > 1.75).to(tl.int32) + (size > 2.5).to(tl.int32) + (size > 3.5).to(tl.int32)
    code += (size > 5.0).to(tl.int32)
    return tl.where((x < 0) & (code > 0), code | 8, code)


@triton.jit
def _store_words(out_ptr, codes, first, groups, BITS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Pack codes [BLOCK, GROUP] and store the words of groups from ``first`` on."""
    if 32 % BITS == 0:
        WORDS: tl.constexpr = GROUP * BITS // 32
        EACH: tl.constexpr = 32 // BITS
        parts = tl.reshape(codes.to(tl.uint32), [BLOCK * WORDS, EACH])
        shifts = (tl.arange(0, EACH) * BITS).to(tl.uint32)
        words = tl.sum(parts << shifts[None, :], axis=1)
        place = first * WORDS + tl.arange(0, BLOCK * WORDS)
        tl.store(out_ptr + place, words.to(tl.int32, bitcast=True), mask=place < groups * WORDS)
    else:
        # 32 codes fill BITS words; each code lies in one word or across two.
        RUNS: tl.constexpr = GROUP // 32
        parts = tl.reshape(codes.to(tl.uint64), [BLOCK * RUNS, 32])
        start = tl.arange(0, 32) * BITS
        run = first * RUNS + tl.arange(0, BLOCK * RUNS)
        for word in tl.static_range(BITS):
            # Shift so that the word stands in bits 32 to 63 of 64.
            shift = start - 32 * word + 32
            inside = (shift > 32 - BITS) & (shift < 64)
            shifted = parts << tl.where(inside, shift, 0).to(tl.uint64)[None, :]
            piece = tl.where(inside[None, :], (shifted >> 32).to(tl.uint32), 0)
            words = tl.sum(piece, axis=1)
            tl.store(out_ptr + run * BITS + word, words.to(tl.int32, bitcast=True), mask=run < groups * RUNS)


@triton.jit
def affine_kernel(
    w_ptr, out_ptr, scales_ptr, biases_ptr, groups,
    BITS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Codes of BITS bits with a scale and a bias."""
    dtype: tl.constexpr = scales_ptr.dtype.element_ty
    TOP: tl.constexpr = (1 << BITS) - 1
    first = tl.program_id(0).to(tl.int64) * BLOCK
    group = first + tl.arange(0, BLOCK)
    inside = group < groups
    element = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    w = tl.load(w_ptr + element, mask=inside[:, None], other=0.0).to(tl.float32)
    high = tl.max(tl.where(w == w, w, -float("inf")), axis=1)
    low = tl.min(tl.where(w == w, w, float("inf")), axis=1)
    negative = tl.abs(low) > tl.abs(high)
    step = tl.div_rn(high - low, TOP + tl.zeros_like(high))
    # fp32(1e-7); NaN stays, as it does in the reference.
    scale = tl.where(step < 1e-7, 1e-7, step)
    if BITS == 1:
        bias = low
    else:
        scale = tl.where(negative, scale, -scale)
        edge = tl.where(negative, low, high)
        steps = _rint(tl.div_rn(edge, scale))
        scale = tl.where(steps != 0, tl.div_rn(edge, steps), scale)
        bias = tl.where(steps != 0, edge, 0.0)
    x = tl.div_rn(w - bias[:, None], tl.broadcast_to(scale[:, None], [BLOCK, GROUP]))
    x = tl.where(x == x, tl.minimum(tl.maximum(x, 0.0), 1.0 * TOP), 0.0)
    _store_words(out_ptr, _rint(x).to(tl.int32), first, groups, BITS, GROUP, BLOCK)
    tl.store(scales_ptr + group, narrow(scale, dtype), mask=inside)
    tl.store(biases_ptr + group, narrow(bias, dtype), mask=inside)


@triton.jit
def float_kernel(
    w_ptr, out_ptr, scales_ptr, global_ptr, groups,
    MODE: tl.constexpr, BITS: tl.constexpr, GROUP: tl.constexpr, HAS_GLOBAL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Small floats with a scale of 8 bits."""
    dtype: tl.constexpr = w_ptr.dtype.element_ty
    first = tl.program_id(0).to(tl.int64) * BLOCK
    group = first + tl.arange(0, BLOCK)
    inside = group < groups
    element = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    w = tl.load(w_ptr + element, mask=inside[:, None], other=0.0).to(tl.float32)
    # The order of magnitudes is that of their bits, NaN above infinity: a NaN is found, whatever max does with it.
    largest = tl.max(w.to(tl.int32, bitcast=True) & 0x7FFFFFFF, axis=1).to(tl.float32, bitcast=True)
    limit: tl.constexpr = 6.0 if BITS == 4 else 448.0
    scale = narrow(tl.div_rn(largest, limit + tl.zeros_like(largest)), dtype).to(tl.float32)
    if MODE == "nvfp4":
        encode = 1.0
        if HAS_GLOBAL:
            encode = tl.div_rn(2688.0 + 0.0 * tl.load(global_ptr), tl.load(global_ptr))
        code = _to_e4m3(scale * encode)
        decoded = e4m3(code).to(tl.float32)
        unit = tl.div_rn(w, tl.broadcast_to(tl.where(decoded == 0, 1.0, decoded)[:, None], [BLOCK, GROUP]))
        unit = narrow(unit, dtype).to(tl.float32) * encode
        unit = tl.where((decoded == 0)[:, None], 0.0, unit)
    else:
        bits = scale.to(tl.int32, bitcast=True)
        biased = (bits >> 23) & 0xFF
        # A denormal over 2^-127 is under 2^-126.
        exponent = biased - 127 + ((bits & 0x7FFFFF) > tl.where(biased == 0, 1 << 22, 0)).to(tl.int32)
        exponent = tl.where(bits == 0, 0, tl.maximum(exponent, -127))
        finite = bits < 0x7F800000
        code = tl.where(finite, exponent + 127, 255)
        # Two steps: 2^127 and 2^-128 are not both normal fp32 numbers.
        half = exponent >> 1
        unit = w * ((127 - half) << 23).to(tl.float32, bitcast=True)[:, None]
        unit = unit * ((127 - (exponent - half)) << 23).to(tl.float32, bitcast=True)[:, None]
        unit = narrow(unit, dtype).to(tl.float32)
        odd = tl.where((w == w) & (tl.abs(w) < float("inf")), 0.0, w)
        unit = tl.where(finite[:, None], unit, odd)
    if BITS == 4:
        codes = _to_e2m1(unit)
    else:
        codes = _to_e4m3(unit)
    _store_words(out_ptr, codes, first, groups, BITS, GROUP, BLOCK)
    tl.store(scales_ptr + group, code.to(tl.uint8), mask=inside)
