"""Codes out of words as what a matrix unit multiplies, without exchanging anything between lanes.

Four lanes hold the codes of a row for the matrix unit, each a stretch of a unit: a group, or 64 codes of one.
They unpack words of their own in pairs, one code in each half of a register. What order that gives, ``ordered`` puts x
into.

Tensors of words are [4 quarters, 8 rows, SLICES, 2 eights of rows, PER], so that Triton gives a quarter and a row to
each lane, a slice to each wavefront, and the rest to registers.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import value_of
from rocmend.kernels.language import INTERPRETED, dot


@triton.jit
def _four(t):
    """Return the last axis, of 4, as four tensors."""
    even, odd = tl.split(tl.reshape(t, [t.shape[0], t.shape[1], t.shape[2], t.shape[3], t.shape[4], 2, 2]))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def _stretch(words, t, UNIT: tl.constexpr, BITS: tl.constexpr):
    """Return each lane's codes as words of 32 bits, from bit 0 of the first on; a stretch of less fills two halves."""
    LANE: tl.constexpr = UNIT * BITS // 4
    HALF: tl.constexpr = LANE // 2
    if LANE == 64:
        one, two = tl.split(words[0].to(tl.uint32, bitcast=True))
        stretch = (one, two)
    elif LANE == 128:
        stretch = _four(words[0].to(tl.uint32, bitcast=True))
    elif LANE % 32 == 0:
        stretch = ()
        for j in tl.static_range(len(words)):
            stretch = stretch + (words[j].to(tl.uint32, bitcast=True),)
    elif 32 % LANE == 0:
        bits = words[0].to(tl.uint32, bitcast=True) >> (t * LANE & 31).to(tl.uint32)
        stretch = ((bits & ((1 << HALF) - 1)) | ((bits >> HALF) << 16),)
    else:
        shift = (t * LANE & 31).to(tl.uint32)
        stretch = ()
        for j in tl.static_range(len(words)):
            bits = words[j].to(tl.uint32, bitcast=True) >> shift
            if j + 1 < len(words):
                # In two steps: a shift by 32 is none.
                bits = bits | ((words[j + 1].to(tl.uint32, bitcast=True) << 1) << (31 - shift))
            stretch = stretch + (bits,)
    return stretch


@triton.jit
def _from(stretch, AT: tl.constexpr):
    """Return 32 bits of a stretch from one of its places on."""
    bits = stretch[AT // 32] >> (AT % 32)
    if AT % 32 != 0 and len(stretch) > AT // 32 + 1:
        bits = bits | (stretch[AT // 32 + 1] << (32 - AT % 32))
    return bits


@triton.jit
def _window(stretch, i: tl.constexpr, UNIT: tl.constexpr, BITS: tl.constexpr):
    """Return a word with the codes of pair i from bit 0 and from bit 16 on, other bits between; 32 % BITS == 0."""
    ACROSS: tl.constexpr = min(16, UNIT * BITS // 8) // BITS
    return stretch[i // ACROSS] >> (i % ACROSS * BITS)


@triton.jit
def _neighbours(stretch, i: tl.constexpr, ones, BITS: tl.constexpr):
    """Return codes 2 i and 2 i + 1 from bit 0 and from bit 16 on, and ``ones``: for codes that straddle words."""
    MASK: tl.constexpr = (1 << BITS) - 1
    AT: tl.constexpr = (2 * i + 1) * BITS
    if AT < 16:
        upper = stretch[0] << (16 - AT)
    else:
        upper = _from(stretch, AT - 16)
    return (_from(stretch, 2 * i * BITS) & MASK) | ones | (upper & (MASK << 16))


@triton.jit
def _stacked(t):
    """Return tensors stacked along new last axes of 2, the first of a power of two of them at all zeros."""
    if len(t) == 1:
        stack = t[0]
    elif len(t) == 2:
        stack = tl.join(t[0], t[1])
    elif len(t) == 4:
        stack = tl.join(tl.join(t[0], t[2]), tl.join(t[1], t[3]))
    else:
        evens = tl.join(tl.join(t[0], t[4]), tl.join(t[2], t[6]))
        stack = tl.join(evens, tl.join(tl.join(t[1], t[5]), tl.join(t[3], t[7])))
    return stack


@triton.jit
def _operand(pairs, UNIT: tl.constexpr, dtype: tl.constexpr):
    """Return [PER * SLICES, 16, UNIT] of pairs of numbers, which are bits of the type (codes in the interpreter)."""
    pair = _stacked(pairs)
    SLICES: tl.constexpr = pairs[0].shape[2]
    PER: tl.constexpr = pairs[0].shape[4]
    pair = tl.reshape(pair, [4, 8, SLICES, 2, PER, UNIT // 16, 2])
    pair = tl.permute(pair, (4, 2, 3, 1, 5, 0, 6))
    if INTERPRETED:
        numbers = tl.join((pair & 0xFFFF).to(tl.int32), (pair >> 16).to(tl.int32))
    else:
        numbers = tl.join(pair.to(tl.uint16), (pair >> 16).to(tl.uint16)).to(dtype, bitcast=True)
    return tl.reshape(numbers, [PER * SLICES, 16, UNIT])


@triton.jit
def ordered(x, UNIT: tl.constexpr, BITS: tl.constexpr):
    """Return x [4, 8, SLICES, M / 8, PER, ·, ·], codes of a lane last, as [PER * SLICES, UNIT, M] in that order."""
    ACROSS: tl.constexpr = min(16, UNIT * BITS // 8) // BITS if 32 % BITS == 0 else 1
    SLICES: tl.constexpr = x.shape[2]
    EIGHTS: tl.constexpr = x.shape[3]
    PER: tl.constexpr = x.shape[4]
    if ACROSS == 1:
        x = tl.reshape(x, [4, 8, SLICES, EIGHTS, PER, UNIT // 16, 2, 2])
        x = tl.permute(x, (4, 2, 5, 0, 6, 7, 3, 1))
    else:
        x = tl.reshape(x, [4, 8, SLICES, EIGHTS, PER, UNIT // (8 * ACROSS), 2, ACROSS // 2, 2])
        x = tl.permute(x, (4, 2, 5, 7, 0, 8, 6, 3, 1))
    return tl.reshape(x, [PER * SLICES, UNIT, EIGHTS * 8])


@triton.jit
def _codes(
    stretch, ones, UNIT: tl.constexpr, BITS: tl.constexpr, MASK: tl.constexpr, DOWN: tl.constexpr, dtype: tl.constexpr
):
    """Return codes of affine, or those of their bits that MASK leaves after a shift, with ``ones`` in each half."""
    pairs = ()
    for i in tl.static_range(UNIT // 8):
        if 32 % BITS == 0:
            pairs = pairs + (((_window(stretch, i, UNIT, BITS) >> DOWN) & (MASK * 0x10001)) | ones,)
        else:
            pairs = pairs + (_neighbours(stretch, i, ones, BITS),)
    return _operand(pairs, UNIT, dtype)


@triton.jit
def _floats(stretch, UNIT: tl.constexpr, MODE: tl.constexpr, dtype: tl.constexpr):
    """Return E2M1 or E4M3 as fp16, too small by what the biases of the exponents differ by, or as bf16."""
    EIGHT: tl.constexpr = MODE == "mxfp8"
    HALF: tl.constexpr = dtype == tl.float16
    # Exponent and mantissa end where those of the type do; the sign goes to the top.
    UP: tl.constexpr = 10 - (3 if EIGHT else 1) if HALF else 7 - (3 if EIGHT else 1)
    REST: tl.constexpr = ((0x7F if EIGHT else 7) << UP) * 0x10001
    pairs = ()
    for i in tl.static_range(UNIT // 8):
        window = _window(stretch, i, UNIT, 8 if EIGHT else 4)
        bits = ((window << UP) & REST) | ((window << (8 if EIGHT else 12)) & 0x80008000)
        if EIGHT:
            # Only 0x7f carries into bit 7: NaN.
            carried = ((window & 0x007F007F) + 0x00010001) & 0x00800080
            bits = bits | carried * (0xFC if HALF else 0xFF)
        pairs = pairs + (bits,)
    numbers = _operand(pairs, UNIT, dtype)
    if not HALF:
        numbers *= tl.full([1], 2.0**120 if EIGHT else 2.0**126, tl.bfloat16)
    return numbers


@triton.jit
def product_of(words, t, zero, x, UNIT: tl.constexpr, BITS: tl.constexpr, MODE: tl.constexpr, dtype: tl.constexpr):
    """Return Σ x·q for each unit, of affine with what ``beside`` times ``totals_of`` takes off again."""
    stretch = _stretch(words, t, UNIT, BITS)
    # A sum whose value the compiler does not know: so a mask and an or are one instruction, which holds one constant.
    ones = zero.to(tl.uint32) + (0x64006400 if dtype == tl.float16 else 0x43004300)
    none = tl.zeros([x.shape[0], 16, x.shape[2]], tl.float32)
    if INTERPRETED:
        product = dot(value_of(_codes(stretch, ones & 0, UNIT, BITS, (1 << BITS) - 1, 0, dtype), MODE), x, none)
    elif MODE != "affine":
        product = dot(_floats(stretch, UNIT, MODE, dtype), x, none)
    elif BITS == 8 and dtype == tl.bfloat16:
        # 128 + q holds 7 bits: four at a time.
        product = dot(_codes(stretch, ones, UNIT, BITS, 15, 4, dtype), x, none) * 16.0
        product += dot(_codes(stretch, ones, UNIT, BITS, 15, 0, dtype), x, none)
    else:
        product = dot(_codes(stretch, ones, UNIT, BITS, (1 << BITS) - 1, 0, dtype), x, none)
    return product


@triton.jit
def beside(BITS: tl.constexpr, dtype: tl.constexpr):
    """Return how often ``product_of`` holds 1024 or 128 times the sum of x beside Σ x·q."""
    return 0.0 if INTERPRETED else (17.0 if BITS == 8 and dtype == tl.bfloat16 else 1.0)


@triton.jit
def totals_of(x, zero, SLICES: tl.constexpr, PER: tl.constexpr, UNIT: tl.constexpr, dtype: tl.constexpr):
    """Return -1024 Σ x for each unit in fp16, -128 Σ x in bf16, -Σ x in the interpreter.

    It is the product with a constant, and so has the layout of the other one.
    """
    bits = zero.to(tl.uint32) + (0x00010001 if INTERPRETED else (0xE400E400 if dtype == tl.float16 else 0xC300C300))
    constant = tl.zeros([4, 8, SLICES, 2, PER], tl.uint32) + bits
    constants = ()
    for _ in tl.static_range(UNIT // 8):
        constants = constants + (constant,)
    ones = _operand(constants, UNIT, dtype)
    if INTERPRETED:
        ones = -ones.to(tl.float32)
    return dot(ones, x, tl.zeros([PER * SLICES, 16, x.shape[2]], tl.float32))


@triton.jit
def units_of(t, PER: tl.constexpr):
    """Return [PER * SLICES, rows, columns] as PER tensors [SLICES, rows, columns]."""
    SLICES: tl.constexpr = t.shape[0] // PER
    if PER == 1:
        units = (t,)
    else:
        t = tl.permute(tl.reshape(t, [PER // 2, 2, SLICES, t.shape[1], t.shape[2]]), (0, 2, 3, 4, 1))
        even, odd = tl.split(t)
        if PER == 2:
            units = (
                tl.reshape(even, [SLICES, t.shape[2], t.shape[3]]),
                tl.reshape(odd, [SLICES, t.shape[2], t.shape[3]]),
            )
        else:
            evens = units_of(tl.reshape(even, [PER // 2 * SLICES, t.shape[2], t.shape[3]]), PER // 2)
            odds = units_of(tl.reshape(odd, [PER // 2 * SLICES, t.shape[2], t.shape[3]]), PER // 2)
            units = ()
            for p in tl.static_range(PER // 2):
                units = units + (evens[p], odds[p])
    return units
