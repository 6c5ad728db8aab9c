"""Nibbles of quantized words as operands of matrix instructions, two an instruction, in the lanes that they lie in.

What lies in a word in pairs, a nibble of the lower half and the same one of the upper half, becomes two numbers of a
half type in place: a mask and the exponent of a power of two (one instruction) make ``128 + q`` or ``1024 + q`` of it,
and what was added is taken off behind the product. A code of 8 bits is two such nibbles; the exponent of the upper one
is four larger, so that it counts 16 times. A float of 4 bits is put where sign, exponent and fraction stand.

The order in which they come is the one in which four lanes of a matrix instruction hold a row, four numbers each in a
turn: so a lane unpacks words that it loaded itself. What they are multiplied with is brought into the same order.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import INTERPRETED


@triton.jit
def moved(words, by: tl.constexpr):
    """Return words shifted to the left by a number of bits, or to the right by a negative one."""
    if by > 0:
        words = words << by
    if by < 0:
        words = words >> (-by)
    return words


@triton.jit
def pair_at(words, p: tl.constexpr, zero, MODE: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr):
    """Return nibble p of both halves of words as two numbers of a half type in an int32, with ``offset_of`` added.

    Args:
        words: int32.
        p: 0 to 3.
        zero: 0, which the compiler must not know: the exponent then stands in a register, and mask and or are one.
        MODE: ``affine``, ``mxfp4`` or ``nvfp4``.
        BITS: 4 or 8; 4 for the floats.
        dtype: bf16 or fp16.
    """
    if MODE == "affine":
        # The exponent of 128 or 1024; of the upper nibble of 8 bits, four more.
        step: tl.constexpr = (p % 2) * 4 if BITS == 8 else 0
        ones: tl.constexpr = (0x64006400 + step * 0x04000400) if dtype == tl.float16 else (
            0x43004300 + step * 0x00800080
        )  # fmt: skip
        pair = (moved(words, -4 * p) & 0x000F000F) | (ones + zero)
    else:
        to: tl.constexpr = 9 if dtype == tl.float16 else 6
        sign = moved(words, 12 - 4 * p) & -0x7FFF8000
        pair = sign | (moved(words, to - 4 * p) & (0x00070007 << to))
    return pair


@triton.jit
def stacked(parts, COUNT: tl.constexpr):
    """Return COUNT tensors, 2, 4 or 8, along a new last axis."""
    if COUNT == 2:
        t = tl.join(parts[0], parts[1])
    elif COUNT == 4:
        t = tl.join(tl.join(parts[0], parts[2]), tl.join(parts[1], parts[3]))
    else:
        even = tl.join(tl.join(parts[0], parts[4]), tl.join(parts[2], parts[6]))
        odd = tl.join(tl.join(parts[1], parts[5]), tl.join(parts[3], parts[7]))
        t = tl.join(even, odd)
    return tl.reshape(t, [parts[0].shape[0], parts[0].shape[1], COUNT])


@triton.jit
def quad_words(parts, SLICES: tl.constexpr, EIGHTS: tl.constexpr):
    """Return words of eight rows each, EIGHTS of [SLICES * 8, 16], as four of [SLICES, EIGHTS * 8, 4].

    Four lanes have four words of a row each; the first result has the first word of each of them.
    """
    t = tl.permute(tl.reshape(stacked(parts, EIGHTS), [SLICES, 8, 4, 2, 2, EIGHTS]), (0, 5, 1, 2, 3, 4))
    even, odd = tl.split(tl.reshape(t, [SLICES, EIGHTS * 8, 4, 2, 2]))
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def quad_operand(
    words, zero, SLICES: tl.constexpr, ROWS: tl.constexpr, MODE: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr
):
    """Return the nibbles of words of rows as [SLICES, ROWS, 32]: fp32 in the interpreter, else of a half type.

    Args:
        words: One for each of four lanes, [SLICES, ROWS, 4].
        zero: As for ``pair_at``.
        SLICES: Wavefronts, each with columns of its own.
        ROWS: A multiple of 16.
        MODE: As for ``pair_at``.
        BITS: As for ``pair_at``.
        dtype: As for ``pair_at``.
    """
    # The interpreter loses denormals of bf16.
    held: tl.constexpr = tl.float16 if INTERPRETED and MODE != "affine" else dtype
    even = tl.join(pair_at(words, 0, zero, MODE, BITS, held), pair_at(words, 2, zero, MODE, BITS, held))
    odd = tl.join(pair_at(words, 1, zero, MODE, BITS, held), pair_at(words, 3, zero, MODE, BITS, held))
    pair = tl.permute(tl.join(even, odd), (0, 1, 3, 2, 4))
    v = tl.join(pair.to(tl.int16), (pair >> 16).to(tl.int16)).to(held, bitcast=True)
    v = tl.reshape(v, [SLICES, ROWS, 32])
    if INTERPRETED:
        v = v.to(tl.float32)
    if MODE != "affine" and dtype == tl.bfloat16:
        # As they lie, the exponents of bf16 are so small that the product would lose bits: 2^14, 2^126.
        v = v * tl.full([SLICES, ROWS, 32], 16384.0 if INTERPRETED else 8.507059173023462e37, v.dtype)
    return v


@triton.jit
def quad_pairs(x, SLICES: tl.constexpr, BITS: tl.constexpr):
    """Return numbers in the order of ``quad_operand``, two in an int32: [SLICES, 2, 4, 2, 8].

    Args:
        x: Those that four words of 8 columns meet, as they lie in memory, two in an int32: [SLICES * 8, 64 / BITS].
        SLICES: Wavefronts.
        BITS: 4 or 8.
    """
    if BITS == 8:
        a, b = tl.split(tl.reshape(x, [SLICES, 8, 4, 2]))
    else:
        a, b = tl.split(tl.permute(tl.reshape(x, [SLICES, 8, 4, 2, 2]), (0, 1, 2, 4, 3)))
    x = tl.join((a & 0xFFFF) | (b << 16), ((a >> 16) & 0xFFFF) | (b & -0x10000))
    if BITS == 8:
        # Both nibbles of a code meet the same number.
        x = tl.reshape(tl.permute(x, (0, 3, 2, 1)), [SLICES, 2, 4, 1, 8])
        x = tl.broadcast_to(x, [SLICES, 2, 4, 2, 8])
    else:
        x = tl.permute(x, (0, 3, 2, 4, 1))
    return x


@triton.jit
def from_pairs(pair, SLICES: tl.constexpr, dtype: tl.constexpr):
    """Return numbers of ``quad_pairs`` as an operand: [SLICES, 32, 8] in a half type, in the interpreter in fp32."""
    x = tl.join(pair.to(tl.int16), (pair >> 16).to(tl.int16)).to(dtype, bitcast=True)
    x = tl.reshape(tl.permute(x, (0, 1, 2, 3, 5, 4)), [SLICES, 32, 8])
    return x.to(tl.float32) if INTERPRETED else x


@triton.jit
def offset_of(MODE: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr):
    """Return what is added to each code: the powers of two that ``pair_at`` puts in."""
    one: tl.constexpr = 1024.0 if dtype == tl.float16 else 128.0
    return (one * 17 if BITS == 8 else one) if MODE == "affine" else 0.0


@triton.jit
def factor_of(MODE: tl.constexpr, dtype: tl.constexpr):
    """Return by how much numbers of ``quad_operand`` are too small."""
    return 16384.0 if MODE != "affine" and dtype == tl.float16 else 1.0
