"""Quantized words to scaled weights of a half type, two at a time, for NVIDIA's packed instructions.

Triton has no arithmetic on both halves of a register, and NVIDIA's assembler, given single halves, pairs them the wrong
way round and swaps them back. So this is assembly: of 4 bits, a weight costs less than one and a half instructions.
What is multiplied with a scale is exact, and rounded once: ``s * (128 + q) - 128 * s`` is one fused operation in bf16.
A bf16 weight of 8 bits is rounded twice, its upper and its lower four bits.

An affine bias is not added in bf16: ``sum(b * x)`` over a group is ``b`` times the group's sum of x, which is a product
of its own.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.packing import scale_of, value_of
from rocmend.kernels.language import INTERPRETED

# $0 from words $1, the scale $2 and a third one $3, twice in a register each: in bf16 -128 (8 bits: -2048) times the
# scale, in fp16 the bias. One for each nibble (or byte) of half a word.
_BF16_4_0 = tl.constexpr(
    "{ .reg .b32 t, u; mov.b32 t, $1; lop3.b32 t, t, 0x000f000f, 0x43004300, 0xea; fma.rn.bf16x2 $0, t, $2, $3; }"
)
_BF16_4_1 = tl.constexpr(
    "{ .reg .b32 t, u; shr.u32 t, $1, 4; lop3.b32 t, t, 0x000f000f, 0x43004300, 0xea; fma.rn.bf16x2 $0, t, $2, $3; }"
)
_BF16_4_2 = tl.constexpr(
    "{ .reg .b32 t, u; shr.u32 t, $1, 8; lop3.b32 t, t, 0x000f000f, 0x43004300, 0xea; fma.rn.bf16x2 $0, t, $2, $3; }"
)
_BF16_4_3 = tl.constexpr(
    "{ .reg .b32 t, u; shr.u32 t, $1, 12; lop3.b32 t, t, 0x000f000f, 0x43004300, 0xea; fma.rn.bf16x2 $0, t, $2, $3; }"
)
_FP16_4_0 = tl.constexpr(
    "{ .reg .b32 t, u; mov.b32 t, $1; lop3.b32 t, t, 0x000f000f, 0x64006400, 0xea; mov.b32 u, 0x64006400; "
    "sub.rn.f16x2 t, t, u; fma.rn.f16x2 $0, t, $2, $3; }"
)
_FP16_4_1 = tl.constexpr(
    "{ .reg .b32 t, u; shr.u32 t, $1, 4; lop3.b32 t, t, 0x000f000f, 0x64006400, 0xea; mov.b32 u, 0x64006400; "
    "sub.rn.f16x2 t, t, u; fma.rn.f16x2 $0, t, $2, $3; }"
)
_FP16_4_2 = tl.constexpr(
    "{ .reg .b32 t, u; shr.u32 t, $1, 8; lop3.b32 t, t, 0x000f000f, 0x64006400, 0xea; mov.b32 u, 0x64006400; "
    "sub.rn.f16x2 t, t, u; fma.rn.f16x2 $0, t, $2, $3; }"
)
_FP16_4_3 = tl.constexpr(
    "{ .reg .b32 t, u; shr.u32 t, $1, 12; lop3.b32 t, t, 0x000f000f, 0x64006400, 0xea; mov.b32 u, "
    "0x64006400; sub.rn.f16x2 t, t, u; fma.rn.f16x2 $0, t, $2, $3; }"
)
_BF16_8_0 = tl.constexpr(
    "{ .reg .b32 t, u; mov.b32 t, $1; shr.u32 u, $1, 4; lop3.b32 t, t, 0x000f000f, 0x43004300, 0xea; "
    "lop3.b32 u, u, 0x000f000f, 0x45004500, 0xea; fma.rn.bf16x2 u, u, $2, $3; { .reg .b32 c, d; mov.b32 c, "
    "0x3f803f80; mov.b32 d, 0xc300c300; fma.rn.bf16x2 t, t, c, d; } fma.rn.bf16x2 $0, t, $2, u; }"
)
_BF16_8_1 = tl.constexpr(
    "{ .reg .b32 t, u; shr.u32 t, $1, 8; shr.u32 u, $1, 12; lop3.b32 t, t, 0x000f000f, 0x43004300, 0xea; "
    "lop3.b32 u, u, 0x000f000f, 0x45004500, 0xea; fma.rn.bf16x2 u, u, $2, $3; { .reg .b32 c, d; mov.b32 c, "
    "0x3f803f80; mov.b32 d, 0xc300c300; fma.rn.bf16x2 t, t, c, d; } fma.rn.bf16x2 $0, t, $2, u; }"
)
_FP16_8_0 = tl.constexpr(
    "{ .reg .b32 t, u; mov.b32 t, $1; lop3.b32 t, t, 0x00ff00ff, 0x64006400, 0xea; mov.b32 u, 0x64006400; "
    "sub.rn.f16x2 t, t, u; fma.rn.f16x2 $0, t, $2, $3; }"
)
_FP16_8_1 = tl.constexpr(
    "{ .reg .b32 t, u; shr.u32 t, $1, 8; lop3.b32 t, t, 0x00ff00ff, 0x64006400, 0xea; mov.b32 u, 0x64006400; "
    "sub.rn.f16x2 t, t, u; fma.rn.f16x2 $0, t, $2, $3; }"
)
_E2M1_0 = tl.constexpr(
    "{ .reg .b32 t, u; shl.b32 t, $1, 12; and.b32 t, t, 0x80008000; shl.b32 u, $1, 6; lop3.b32 t, u, "
    "0x01c001c0, t, 0xea; mov.b32 u, 0x7e807e80; mul.rn.bf16x2 t, t, u; mul.rn.bf16x2 $0, t, $2; }"
)
_E2M1_1 = tl.constexpr(
    "{ .reg .b32 t, u; shl.b32 t, $1, 8; and.b32 t, t, 0x80008000; shl.b32 u, $1, 2; lop3.b32 t, u, "
    "0x01c001c0, t, 0xea; mov.b32 u, 0x7e807e80; mul.rn.bf16x2 t, t, u; mul.rn.bf16x2 $0, t, $2; }"
)
_E2M1_2 = tl.constexpr(
    "{ .reg .b32 t, u; shl.b32 t, $1, 4; and.b32 t, t, 0x80008000; shr.u32 u, $1, 2; lop3.b32 t, u, "
    "0x01c001c0, t, 0xea; mov.b32 u, 0x7e807e80; mul.rn.bf16x2 t, t, u; mul.rn.bf16x2 $0, t, $2; }"
)
_E2M1_3 = tl.constexpr(
    "{ .reg .b32 t, u; mov.b32 t, $1; and.b32 t, t, 0x80008000; shr.u32 u, $1, 6; lop3.b32 t, u, 0x01c001c0, "
    "t, 0xea; mov.b32 u, 0x7e807e80; mul.rn.bf16x2 t, t, u; mul.rn.bf16x2 $0, t, $2; }"
)


@triton.jit
def _doubled(half):
    """Return numbers of a half type, or their bits, twice in an int32."""
    return (half.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF) * 0x10001


@triton.jit
def pair_scales(raw, MODE: tl.constexpr):
    """Return scales (or biases) as they were loaded for ``pair_of``: twice in an int32; in the interpreter in fp32."""
    if INTERPRETED:
        scale = scale_of(raw, MODE)
    elif MODE == "affine":
        scale = _doubled(raw)
    else:
        # A power of two's bits in bf16; 2^-127 is a denormal.
        scale = tl.where(raw == 0, 0x40, raw.to(tl.int32) << 7) * 0x10001
    return scale


@triton.jit
def packed_scales(raw, ROWS: tl.constexpr, GROUPS: tl.constexpr, dtype: tl.constexpr):
    """Return affine scales that were loaded two in an int32, [ROWS, GROUPS / 2], as ``pair_scales`` does."""
    if INTERPRETED:
        even = raw.to(tl.int16).to(dtype, bitcast=True).to(tl.float32)
        odd = (raw >> 16).to(tl.int16).to(dtype, bitcast=True).to(tl.float32)
    else:
        even = (raw & 0xFFFF) | (raw << 16)
        odd = ((raw >> 16) & 0xFFFF) | (raw & -0x10000)
    return tl.reshape(tl.join(even, odd), [ROWS, GROUPS])


@triton.jit
def pair_thirds(scale, MODE: tl.constexpr, BITS: tl.constexpr):
    """Return the third operand of ``pair_of`` for bf16, of scales from ``pair_scales``: a power of two times them."""
    if MODE == "affine" and not INTERPRETED:
        if BITS == 8:
            scale = _times(scale, "{ .reg .b32 c; mov.b32 c, 0xc500c500; mul.rn.bf16x2 $0, $1, c; }")
        else:
            scale = _times(scale, "{ .reg .b32 c; mov.b32 c, 0xc300c300; mul.rn.bf16x2 $0, $1, c; }")
    return scale


@triton.jit
def _times(scale, asm: tl.constexpr):
    return tl.inline_asm_elementwise(asm, "=r,r", [scale], dtype=tl.int32, is_pure=True, pack=1)


@triton.jit
def _assembled(words, scale, third, asm: tl.constexpr):
    return tl.inline_asm_elementwise(asm, "=r,r,r,r", [words, scale, third], dtype=tl.int32, is_pure=True, pack=1)


@triton.jit
def pair_of(words, scale, third, place: tl.constexpr, MODE: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr):
    """Return the weights at one place of both halves of words, scaled: of a half type, in the interpreter in fp32.

    Args:
        words: int32.
        scale: Of each word, from ``pair_scales``.
        third: Of each word: from ``pair_thirds`` in bf16, which leaves an affine bias out; the bias in fp16.
        place: Of the code in half a word: 0 to 16 / BITS - 1.
        MODE: ``affine``; or ``mxfp4``, in bf16 only.
        BITS: 4 or 8.
        dtype: bf16 or fp16.
    """
    if INTERPRETED:
        mask: tl.constexpr = (1 << BITS) - 1
        low = value_of((words >> (place * BITS)) & mask, MODE) * scale
        high = value_of((words >> (place * BITS + 16)) & mask, MODE) * scale
        if MODE == "affine" and dtype == tl.float16:
            low += third
            high += third
    else:
        if MODE != "affine":
            if place == 0:
                pair = _assembled(words, scale, third, _E2M1_0)
            elif place == 1:
                pair = _assembled(words, scale, third, _E2M1_1)
            elif place == 2:
                pair = _assembled(words, scale, third, _E2M1_2)
            else:
                pair = _assembled(words, scale, third, _E2M1_3)
        elif BITS == 8:
            if place == 0:
                pair = _assembled(words, scale, third, _FP16_8_0 if dtype == tl.float16 else _BF16_8_0)
            else:
                pair = _assembled(words, scale, third, _FP16_8_1 if dtype == tl.float16 else _BF16_8_1)
        elif place == 0:
            pair = _assembled(words, scale, third, _FP16_4_0 if dtype == tl.float16 else _BF16_4_0)
        elif place == 1:
            pair = _assembled(words, scale, third, _FP16_4_1 if dtype == tl.float16 else _BF16_4_1)
        elif place == 2:
            pair = _assembled(words, scale, third, _FP16_4_2 if dtype == tl.float16 else _BF16_4_2)
        else:
            pair = _assembled(words, scale, third, _FP16_4_3 if dtype == tl.float16 else _BF16_4_3)
        low = pair.to(tl.int16).to(dtype, bitcast=True)
        high = (pair >> 16).to(tl.int16).to(dtype, bitcast=True)
    return low, high


@triton.jit
def scaled_operand(
    words, scale, third,
    ROWS: tl.constexpr, WORDS: tl.constexpr, GROUPS: tl.constexpr,
    MODE: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """Return weights of words [ROWS, WORDS], scaled, in an order of their own: [ROWS, WORDS * 32 / BITS].

    In each block of 16 words, four in a lane, come first the codes at place 0 of the first words of the four lanes, of
    each word that of its lower and that of its upper half, then those at place 1 …: ``place_in_order`` says where.

    Args:
        words: int32.
        scale: [ROWS, GROUPS], from ``pair_scales``.
        third: Like the scales; see ``pair_of``.
        ROWS: Of the tile.
        WORDS: Of a row, a multiple of 16.
        GROUPS: Of a row.
        MODE: As for ``pair_of``.
        BITS: As for ``pair_of``.
        dtype: As for ``pair_of``.
    """
    v = _in_lanes(words, scale, third, ROWS, WORDS, GROUPS, MODE, BITS, dtype)
    return tl.reshape(tl.permute(v, (0, 1, 3, 4, 2, 5)), [ROWS, WORDS * (32 // BITS)])


@triton.jit
def scaled_halves(
    words, scale, third,
    ROWS: tl.constexpr, GROUPS: tl.constexpr, MODE: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """Return the two halves, along K, of what ``scaled_operand`` returns of 16 words: [ROWS, 256 / BITS] each."""
    v = _in_lanes(words, scale, third, ROWS, 16, GROUPS, MODE, BITS, dtype)
    v = tl.reshape(v, [ROWS, 4, 2, 2, 16 // BITS, 2])
    first, second = tl.split(tl.permute(v, (0, 3, 4, 1, 5, 2)))
    return tl.reshape(first, [ROWS, 256 // BITS]), tl.reshape(second, [ROWS, 256 // BITS])


@triton.jit
def _in_lanes(
    words, scale, third,
    ROWS: tl.constexpr, WORDS: tl.constexpr, GROUPS: tl.constexpr,
    MODE: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr,
):  # fmt: skip
    """Return weights, scaled, as lanes unpack them: [ROWS, blocks of 16 words, lanes, words, places, halves]."""
    EACH: tl.constexpr = WORDS // GROUPS
    scale = tl.reshape(tl.broadcast_to(scale[:, :, None], [ROWS, GROUPS, EACH]), [ROWS, WORDS])
    third = tl.reshape(tl.broadcast_to(third[:, :, None], [ROWS, GROUPS, EACH]), [ROWS, WORDS])
    low0, high0 = pair_of(words, scale, third, 0, MODE, BITS, dtype)
    low1, high1 = pair_of(words, scale, third, 1, MODE, BITS, dtype)
    if BITS == 8:
        low, high = tl.join(low0, low1), tl.join(high0, high1)
    else:
        low2, high2 = pair_of(words, scale, third, 2, MODE, BITS, dtype)
        low3, high3 = pair_of(words, scale, third, 3, MODE, BITS, dtype)
        low = tl.join(tl.join(low0, low2), tl.join(low1, low3))
        high = tl.join(tl.join(high0, high2), tl.join(high1, high3))
    return tl.reshape(tl.join(low, high), [ROWS, WORDS // 16, 4, 4, 16 // BITS, 2])


@triton.jit
def place_in_order(place, BITS: tl.constexpr):
    """Return which column of a row stands at a place of ``scaled_operand``."""
    CODES: tl.constexpr = 32 // BITS
    half, lane = place % 2, place // 2 % 4
    code, word = place // 8 % (CODES // 2), place // (4 * CODES) % 4
    return place // (16 * CODES) * (16 * CODES) + lane * (4 * CODES) + word * CODES + half * (CODES // 2) + code
