"""Blocks of PTX for ``digits`` with mxfp4: codes that become bfloat16, times x as it is.

Who loads what is as in ``digits_blocks.py``: eight lanes have a line of 128 bytes of one row, of which those of even
``r`` have the first half. A lane's 16 bytes are 32 codes, which is one group, number ``4 (r % 2) + q`` of eight.

Columns of B are these groups: lane ``(r, q)`` holds group ``r`` of x where that is its quarter's, ``q = r % 4``, else
zeros. So a sum is of one group. Lanes get columns ``2 q`` and ``2 q + 1`` of all rows, of which half are of their own
half. So the first and the second two rows are loaded by halves the other way round: each lane has sums of two rows.

e2m1's bits where bfloat16 has them are its numbers times 2^-126, denormals included. x is multiplied by a power of two
that makes the largest of the 256 numbers one from 2^126 on, so that products have the range that x has; by 2^127 where
that power would be larger. It is undone behind the scales.
"""

from __future__ import annotations

from rocmend.kernels.ops.gather_qmm.kernels.digits_blocks import single, swapped
from rocmend.kernels.ops.quantized_matmul.kernels.blocks import TAKE, block, mma, operands

EVEN, ODD = 0x000F000F, 0x00F000F0
"""Two codes of a word."""
PLACED = 0x81C081C0
"""Bits of e2m1 in bfloat16."""
SPREAD_EVEN, SPREAD_ODD = 0x1040, 0x0104
"""A code times this stands where its sign belongs, and where its other bits do."""
TINY = 0x00400000
"""2^-127, which is a denormal, in fp32."""
ZEROS = 512 + 32
"""Behind x, where other lanes' loads do not meet them in a bank."""
ROOM = ZEROS + 64
"""Bytes of shared memory of a wavefront's 256 columns."""
LEAST, MOST = 126, 254
"""Of the exponent of what results are multiplied by, which is the largest number's."""


def pairs() -> str:
    """Turn 256 numbers of x into pairs in the order of codes, which go to shared memory.

    Takes eight neighbouring numbers of x a lane, in four registers, where the wavefront's room is, and the lane. Gives
    what sums are to be multiplied by.
    """
    raw = [f"${1 + at}" for at in range(4)]
    lines = [".reg .b32 a, b, c, d, m, e, t, to;", ".reg .pred p;"]
    lines += [f"and.b32 {to}, {one}, 0x7fff7fff;" for to, one in zip("abcd", raw, strict=True)]
    lines += ["max.u16x2 a, a, b;", "max.u16x2 c, c, d;", "max.u16x2 a, a, c;", "shr.u32 b, a, 16;"]
    lines += ["and.b32 a, a, 0xffff;", "max.u32 m, a, b;", "redux.sync.max.u32 m, m, 0xffffffff;"]
    lines += ["shr.u32 e, m, 7;", f"max.u32 e, e, {LEAST};", f"sub.u32 t, {LEAST + MOST}, e;", "shl.b32 t, t, 7;"]
    lines.append("prmt.b32 t, t, t, 0x1010;")
    for to, (low, high, pick) in zip(
        "abcd", ((0, 2, 0x5410), (0, 2, 0x7632), (1, 3, 0x5410), (1, 3, 0x7632)), strict=True
    ):
        lines += [f"prmt.b32 {to}, {raw[low]}, {raw[high]}, {pick:#06x};", f"mul.rn.bf16x2 {to}, {to}, t;"]
    lines += ["shl.b32 to, $6, 4;", "add.u32 to, to, $5;"]
    lines += [f"st.shared.b32 [to+{4 * at}], {one};" for at, one in enumerate("abcd")]
    lines += ["setp.lt.u32 p, $6, 16;", "shl.b32 t, $6, 2;", "add.u32 t, t, $5;", f"@p st.shared.b32 [t+{ZEROS}], 0;"]
    return block(*lines, f"min.u32 e, e, {MOST};", "shl.b32 $0, e, 23;")


def places() -> str:
    """Tell where what a lane holds of B lies: four times 16 bytes. Takes the wavefront's room and the lane."""
    lines = [".reg .b32 r, t, z;", ".reg .pred p;", "shr.u32 r, $2, 2;", "xor.b32 t, r, $2;", "and.b32 t, t, 3;"]
    lines += ["setp.eq.u32 p, t, 0;", "shl.b32 t, r, 6;", f"selp.b32 t, t, {ZEROS}, p;"]
    return block(*lines, "add.u32 $0, t, $1;")


PLACES_OF = single("r", "rr")
"""The constraints of ``places``."""


def product() -> str:
    """Multiply a line of each of 16 rows of weights: a lane's share of two of the four rows of which it has words.

    Takes those words, four a row; what the lane holds of B, four tensors; the scales of its two rows, of groups 2 q and
    2 q + 1 each; what results are to be multiplied by; 0, before which is known words are not looked at; and whether
    its rows are the first two of the four.
    """
    words = [operands(2 + 4 * row) for row in range(4)]
    held, scales, (by, none, own) = [operands(18 + 4 * at) for at in range(4)], operands(34), operands(38)[:3]
    lines = [".reg .b32 a, b, c, d, s, t;", ".reg .f32 z, g, h, u, k<8>;", ".reg .pred p;", "mov.f32 z, 0f00000000;"]
    lines.append(f"setp.ne.b32 p, {own}, 0;")
    starts = ["z, z, z, z"] * 2
    for word in range(4):
        for pair in range(2):
            low, high = words[2 * pair][word], words[2 * pair + 1][word]
            sums = ", ".join(f"k{4 * pair + at}" for at in range(4))
            for step in range(2):
                if step:
                    lines += [f"shf.r.wrap.b32 t, {low}, {none}, 8;", f"shf.r.wrap.b32 s, {high}, {none}, 8;"]
                    low, high = "t", "s"
                for to, source, mask in (("a", low, EVEN), ("b", high, EVEN), ("c", low, ODD), ("d", high, ODD)):
                    if step:
                        lines.append(f"and.b32 {to}, {source}, {mask:#x};")
                    else:
                        lines.append(f"lop3.b32 {to}, {source}, {mask:#x}, {none}, {TAKE:#x};")
                    lines.append(f"mul.lo.u32 {to}, {to}, {SPREAD_EVEN if mask == EVEN else SPREAD_ODD:#x};")
                    lines.append(f"and.b32 {to}, {to}, {PLACED:#x};")
                x = held[word][2 * step : 2 * step + 2]
                lines.append(mma(sums, "a, b, c, d", ", ".join(x), starts[pair]))
                starts[pair] = sums
    lines += [f"selp.f32 k{at}, k{at}, k{4 + at}, p;" for at in range(4)]
    return block(*lines, *_scaled(scales, by))


PRODUCT_OF = single("ff", "r" * 36 + "frr")
"""The constraints of ``product``."""


def _scaled(scales: list[str], by: str) -> list[str]:
    """Scale sums k0 to k3, of two groups of two rows."""
    lines: list[str] = []
    for row in range(2):
        for group, to in enumerate("gh"):
            lines += [f"shl.b32 t, {scales[2 * row + group]}, 23;", f"max.u32 t, t, {TINY:#x};", f"mov.b32 {to}, t;"]
            of = f"k{2 * row + group}"
            lines.append(f"fma.rn.f32 u, {of}, {to}, u;" if group else f"mul.f32 u, {of}, {to};")
        # A scale of no number, infinite here, makes none of the result.
        lines += ["fma.rn.f32 u, g, z, u;", "fma.rn.f32 u, h, z, u;", f"mul.f32 ${row}, u, {by};"]
    return lines


def gathered() -> str:
    """Sum what four lanes have of two rows. Takes these and the lane.

    Of lanes of the first half quarter ``q`` gets row ``q`` of four; of those of the second one, row ``q ^ 2``.
    """
    lines = [".reg .b32 t;", ".reg .f32 k, g;", ".reg .pred p;", "and.b32 t, $3, 1;", "setp.ne.b32 p, t, 0;"]
    lines += ["selp.f32 k, $2, $1, p;", "selp.f32 g, $1, $2, p;", *swapped("g", 1), "add.f32 k, k, g;"]
    return block(*lines, "mov.f32 g, k;", *swapped("g", 6), "add.f32 $0, k, g;")


GATHERED_OF = single("f", "ffr")
"""The constraints of ``gathered``."""
