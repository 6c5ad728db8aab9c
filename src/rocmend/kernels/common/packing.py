"""Quantized weights in Triton: codes out of words, values out of codes, scales out of their bytes.

A row of codes is a stream of bits, the first code in the lowest bits of the first 32-bit word; a code of 3, 5 or 6 bits
may straddle two words; 32 codes always fill whole words. Words are int32 or uint32 in memory, the bits are the same.
Codes and values are those of ``common/formats.py``: ``affine`` (an unsigned integer), ``mxfp4`` and ``nvfp4`` (E2M1),
``mxfp8`` (E4M3); scales are a float type (affine), E8M0 (the mx formats) or E4M3 (nvfp4).

Source: https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.quantize.html,
https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import INTERPRETED


@triton.jit
def unpack(words, ROWS: tl.constexpr, WORDS: tl.constexpr, BITS: tl.constexpr):
    """Return the codes of words [ROWS, WORDS] as int32 [ROWS, WORDS * 32 / BITS], in order; BITS divides 32."""
    shifts = tl.arange(0, 32 // BITS) * BITS
    codes = (words[:, :, None] >> shifts[None, None, :]) & ((1 << BITS) - 1)
    return tl.reshape(codes, [ROWS, WORDS * (32 // BITS)])


@triton.jit
def spread(scales, ROWS: tl.constexpr, GROUPS: tl.constexpr, TIMES: tl.constexpr):
    """Return scales [ROWS, GROUPS] repeated along the row: [ROWS, GROUPS * TIMES]."""
    return tl.reshape(tl.broadcast_to(scales[:, :, None], [ROWS, GROUPS, TIMES]), [ROWS, GROUPS * TIMES])


@triton.jit
def e2m1(codes):
    """Return 4-bit floats as fp16, exactly: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives."""
    # Exponent and mantissa put where those of fp16 stand are 2^14 too small; fp16 keeps denormals everywhere.
    bits = ((codes & 7) << 9) | ((codes & 8) << 12)
    return bits.to(tl.uint16).to(tl.float16, bitcast=True) * 16384.0


@triton.jit
def e4m3(codes):
    """Return 8-bit floats as fp16, exactly; 0x7f and 0xff are NaN."""
    bits = ((codes & 0x7F) << 7) | ((codes & 0x80) << 8)
    # Only 0x7f carries into bit 7: NaN by arithmetic, where a comparison would cost a mask for each number.
    bits |= (((codes & 0x7F) + 1) >> 7) * 0x7E00
    return bits.to(tl.uint16).to(tl.float16, bitcast=True) * 256.0


@triton.jit
def e8m0(bits):
    """Return powers of two, 2^(bits - 127), as fp32; 0 is 2^-127, a denormal that a GPU may flush."""
    wide = bits.to(tl.int32)
    return tl.where(wide == 0, 0x400000, wide << 23).to(tl.float32, bitcast=True)


@triton.jit
def value_of(codes, MODE: tl.constexpr):
    """Return the value that a code stands for, before scaling: exact in fp32 and fp16, and (8 bits at most) in bf16."""
    if MODE == "affine":
        value = codes.to(tl.float32)
    elif MODE == "mxfp8":
        value = e4m3(codes).to(tl.float32)
    else:
        value = e2m1(codes).to(tl.float32)
    return value


@triton.jit
def scale_of(raw, MODE: tl.constexpr):
    """Return a scale as loaded from memory in fp32."""
    if MODE == "affine":
        scale = raw.to(tl.float32)
    elif MODE == "nvfp4":
        scale = e4m3(raw.to(tl.int32)).to(tl.float32)
    else:
        scale = e8m0(raw)
    return scale


@triton.jit
def values(words, ROWS: tl.constexpr, WORDS: tl.constexpr, MODE: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr):
    """Return the values of words [ROWS, WORDS], BITS dividing 32, in order and exactly: [ROWS, WORDS * 32 / BITS].

    Codes leave a word in pairs, one in each half, and are joined in registers: so a tile takes the layout that matrix
    instructions want as it is loaded, and nothing is exchanged between lanes. In the interpreter the type is fp32.
    """
    if INTERPRETED:
        v = value_of(unpack(words, ROWS, WORDS, BITS), MODE)
    elif MODE == "affine":
        if (dtype == tl.float16) or ((dtype == tl.bfloat16) and (BITS < 8)):
            v = (magic(words, ROWS, WORDS, BITS, dtype) - (1024.0 if dtype == tl.float16 else 128.0)).to(dtype)
        else:
            first, second = halves(words, BITS)
            v = tl.join(first.to(tl.float32).to(dtype), second.to(tl.float32).to(dtype))
            v = tl.reshape(v, [ROWS, WORDS * (32 // BITS)])
    else:
        first, second = halves(words, BITS)
        v = tl.join(value_of(first, MODE).to(dtype), value_of(second, MODE).to(dtype))
        v = tl.reshape(v, [ROWS, WORDS * (32 // BITS)])
    return v


@triton.jit
def halves(words, BITS: tl.constexpr):
    """Return the even and the odd codes of words [ROWS, WORDS]: two of [ROWS, WORDS, 16 / BITS]."""
    pair = words[:, :, None] >> (tl.arange(0, 16 // BITS) * (2 * BITS))[None, None, :]
    return pair & ((1 << BITS) - 1), (pair >> BITS) & ((1 << BITS) - 1)


@triton.jit
def magic(words, ROWS: tl.constexpr, WORDS: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr, zero=0):
    """Return the codes of words [ROWS, WORDS] plus 1024 as fp16, or plus 128 as bf16 (7 bits at most), in order.

    ``zero`` is 0, but better a number that the compiler does not know to be 0, such as ``N >> 31``: the exponent then
    stands in a register, and the mask and the or are one instruction (an instruction has room for one constant).
    """
    pair = words[:, :, None] >> (tl.arange(0, 16 // BITS) * (2 * BITS))[None, None, :]
    # One code into the low half, its neighbour into the high one, under the exponent of 1024 or 128.
    ones: tl.constexpr = 0x64006400 if dtype == tl.float16 else 0x43004300
    pair = (pair & ((1 << BITS) - 1)) | (ones | zero) | ((pair << (16 - BITS)) & (((1 << BITS) - 1) << 16))
    joined = tl.join(pair.to(tl.int16), (pair >> 16).to(tl.int16)).to(dtype, bitcast=True)
    return tl.reshape(joined, [ROWS, WORDS * (32 // BITS)])


@triton.jit
def halves_apart(words, ROWS: tl.constexpr, WORDS: tl.constexpr, BITS: tl.constexpr, dtype: tl.constexpr, zero=0):
    """Return the codes of words [ROWS, WORDS] as ``magic`` does, or as they are where bf16 cannot, in another order.

    A code of the lower half of a word is followed by that of the same place in the upper half, then come the same codes
    of words a quarter of the row apart: so four lanes, which hold neighbours of a row for the matrix unit, unpack
    words of their own, and two instructions give two codes (``zero`` as for ``magic``). ``as_halves_apart`` orders what
    they are multiplied with.
    """
    LANES: tl.constexpr = 4 if WORDS % 4 == 0 else 1
    pair = words[:, :, None] >> (tl.arange(0, 16 // BITS) * BITS)[None, None, :]
    pair = tl.permute(tl.reshape(pair, [ROWS, LANES, WORDS // LANES, 16 // BITS]), (0, 2, 3, 1))
    if (dtype == tl.bfloat16) and (BITS == 8):
        joined = tl.join((pair & 255).to(tl.float32).to(dtype), ((pair >> 16) & 255).to(tl.float32).to(dtype))
    else:
        ones: tl.constexpr = 0x64006400 if dtype == tl.float16 else 0x43004300
        pair = (pair & (((1 << BITS) - 1) * 0x10001)) | (ones | zero)
        joined = tl.join(pair.to(tl.int16), (pair >> 16).to(tl.int16)).to(dtype, bitcast=True)
    return tl.reshape(joined, [ROWS, WORDS * (32 // BITS)])


@triton.jit
def as_halves_apart(x, SLICES: tl.constexpr, WORDS: tl.constexpr, COLUMNS: tl.constexpr, BITS: tl.constexpr):
    """Return x [SLICES, WORDS * 32 / BITS, COLUMNS] in the order of ``halves_apart``."""
    LANES: tl.constexpr = 4 if WORDS % 4 == 0 else 1
    x = tl.reshape(x, [SLICES, LANES, WORDS // LANES, 2, 16 // BITS, COLUMNS])
    return tl.reshape(tl.permute(x, (0, 2, 4, 1, 3, 5)), [SLICES, WORDS * (32 // BITS), COLUMNS])
