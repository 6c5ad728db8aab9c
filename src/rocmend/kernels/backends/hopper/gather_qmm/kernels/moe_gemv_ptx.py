"""Blocks of PTX for ``moe_gemv``: affine codes multiplied as whole numbers, as they stand in memory, with digits of x.

A wavefront has 256 columns of x and of 16 rows of weights. Its numbers of x become whole ones, and each of these three
signed digits of 8 bits. With digits in columns of B, and codes as the unsigned bytes of A, the matrix unit's m16n8k32
gives exact sums. What is rounded are numbers of x: to a multiple of 2^-22 of the power of two above the largest of the
256, and with 4 bits, at odd places, of 2^-18. So those from 2^-13, or 2^-9, of that power on are as they were.

Lane ``l`` is in row ``r = l // 4`` and quarter ``q = l % 4``, in the terms of ``mma.py``.
Eight lanes load a line of 128 bytes of one row of weights: those of even ``r`` its first half, of odd ``r`` its second.
So of each row of weights the unit has two rows, and columns of B that are of the other half are not looked at.

Of 4 bits a half is two groups of 64 codes, of which two quarters each have 32. Columns are ``2 digit + group``, with
zeros for the other group's quarters, and both halves' digits are multiplied with all rows. A byte is an even code and
16 times an odd one. Bytes as they are are multiplied with x of the odd code, and even codes alone with 16 times their
own x less that. Of 8 bits a half is a group, and columns are ``2 digit + half``.

The last two columns have no digit: what quarter 3 begins with, the sums of x, is what it ends with, for the biases.
"""

from __future__ import annotations

from rocmend.kernels.backends.hopper.mma import TAKE, block, operands

KINDS = (4, 8)
"""Bits of a code."""
E2M1 = 0
"""The kind of mxfp4, for which ``moe_gemv_e2m1.py`` has blocks."""
COLUMNS = 256
"""Of x, for a call of ``digits``."""
LINES = {4: 1, 8: 2}
"""Of 128 bytes that so many codes take."""
HELD = {4: 4, 8: 1}
"""Tensors of digits that a lane holds for a line: 16 bytes each."""
MMA = "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}};"
MAGIC_BITS = 0x4B400000
MAGIC = f"0f{MAGIC_BITS:X}"
"""1.5 times 2^23: what is added to it is rounded to a whole number, which its last bits are."""
UNSIGNED, SIGNED = 0x808080, 0x80808080
"""What makes three signed digits of a whole number unsigned, and what makes four unsigned ones signed again."""
FROM_MAGIC = (UNSIGNED - MAGIC_BITS) % (1 << 32)
INFINITE, NAN = 0x7F80, 0x7FFFFFFF
EVEN = 0x0F0F0F0F
LEAST = 30
"""Of the largest number's exponent: what is less than 2^-96 becomes a whole number as if it stood beside that."""
PLANE = COLUMNS
SUMS = 3 * PLANE
ZEROS = SUMS + 32
ROOM = ZEROS + 32
"""Bytes of shared memory of a wavefront."""


def single(results: str, given: str) -> str:
    """Return the constraints of a block of single registers: a letter for each that it gives and takes; f or r."""
    return ",".join([*(f"=&{kind}" for kind in results), *given])


def digits(kind: int) -> str:
    """Turn 256 numbers of x into digits, which go to shared memory, for each wavefront by itself.

    Takes eight neighbouring numbers of x a lane, in four registers, where the wavefront's room is, and the lane. Gives
    what a quarter's sums are to be multiplied by.
    """
    raw = [f"${1 + at}" for at in range(4)]
    lines = [
        ".reg .b32 a, b, c, d, m, e, l, q, s, t, to, x<8>;", ".reg .f32 f, g, w;", ".reg .pred p;",
        "mov.b32 to, $5;", "mov.b32 l, $6;", "and.b32 q, l, 3;",
    ]  # fmt: skip
    lines += [f"and.b32 {to}, {one}, 0x7fff7fff;" for to, one in zip("abcd", raw, strict=True)]
    lines += ["max.u16x2 a, a, b;", "max.u16x2 c, c, d;", "max.u16x2 a, a, c;", "shr.u32 b, a, 16;"]
    lines += ["and.b32 a, a, 0xffff;", "max.u32 m, a, b;", "redux.sync.max.u32 m, m, 0xffffffff;"]
    lines += ["shr.u32 e, m, 7;", f"max.u32 e, e, {LEAST};", "sub.u32 t, 275, e;", "shl.b32 t, t, 23;", "mov.b32 g, t;"]
    if kind == 4:
        lines += ["sub.u32 t, 271, e;", "shl.b32 t, t, 23;", "mov.b32 w, t;"]
    for at, one in enumerate(raw):
        for half, take in enumerate((f"shl.b32 t, {one}, 16;", f"and.b32 t, {one}, 0xffff0000;")):
            lines += [take, "mov.b32 f, t;", f"fma.rn.f32 f, f, {'w' if half and kind == 4 else 'g'}, {MAGIC};"]
            lines.append(f"mov.b32 x{2 * at + half}, f;")
    lines += _summed(kind)
    if kind == 4:
        lines += [f"sub.u32 x{at}, x{at}, x{at + 1};" for at in range(0, 8, 2)]
        lines += [f"add.u32 x{at}, x{at}, {FROM_MAGIC if at % 2 else UNSIGNED:#x};" for at in range(8)]
    else:
        lines += [f"add.u32 x{at}, x{at}, {FROM_MAGIC:#x};" for at in range(8)]
    lines += _written(kind)
    lines += ["setp.lt.u32 p, l, 8;", "shl.b32 t, l, 2;", "add.u32 t, t, to;", f"@p st.shared.b32 [t+{ZEROS}], 0;"]
    # Sums of x have none.
    lines += ["setp.eq.u32 p, q, 3;", "shl.b32 s, q, 3;", "selp.b32 s, 0, s, p;", "add.u32 t, e, s;"]
    lines += ["sub.u32 t, t, 21;", "shl.b32 t, t, 23;"]
    lines += [f"setp.ge.u32 p, m, {INFINITE:#x};", f"selp.b32 t, {NAN:#x}, t, p;"]
    return block(*lines, "mov.b32 $0, t;")


DIGITS_OF = single("f", "rrrrrr")
"""The constraints of ``digits``."""


def _written(kind: int) -> list[str]:
    """Write digits: those of four bytes of codes together, by place."""
    lines = []
    if kind == 4:
        # Four words of a quarter: what stands at even places of each, then what stands at odd ones.
        lines += ["shr.u32 t, l, 2;", "shl.b32 t, t, 5;", "shl.b32 s, q, 2;", "add.u32 t, t, s;"]
        parts = (((0, 2, 4, 6), 0), ((1, 3, 5, 7), 16))
    else:
        lines.append("shl.b32 t, l, 3;")
        parts = (((0, 1, 2, 3), 0), ((4, 5, 6, 7), 4))
    lines.append("add.u32 t, t, to;")
    for (one, two, three, four), at in parts:
        lines += [f"prmt.b32 a, x{one}, x{two}, 0x5140;", f"prmt.b32 b, x{three}, x{four}, 0x5140;"]
        lines += [f"prmt.b32 c, x{one}, x{two}, 0x0062;", f"prmt.b32 d, x{three}, x{four}, 0x0062;"]
        for digit, (low, high, pick) in enumerate((("a", "b", 0x5410), ("a", "b", 0x7632), ("c", "d", 0x5410))):
            lines += [f"prmt.b32 s, {low}, {high}, {pick:#06x};", f"xor.b32 s, s, {SIGNED:#x};"]
            lines.append(f"st.shared.b32 [t+{digit * PLANE + at}], s;")
    return lines


def _summed(kind: int) -> list[str]:
    """Write the sums of groups of 64, each twice: for both rows of weights that a lane has of a product."""
    if kind == 4:
        # What stands at odd places is a 16th.
        lines = ["add.u32 s, x0, x2;", "add.u32 s, s, x4;", "add.u32 s, s, x6;"]
        lines += ["add.u32 t, x1, x3;", "add.u32 t, t, x5;", "add.u32 t, t, x7;", "mad.lo.u32 s, t, 16, s;"]
        lines.append(f"sub.u32 s, s, {68 * MAGIC_BITS % (1 << 32):#x};")
    else:
        lines = ["add.u32 s, x0, x1;", *(f"add.u32 s, s, x{at};" for at in range(2, 8))]
        lines.append(f"sub.u32 s, s, {8 * MAGIC_BITS % (1 << 32):#x};")
    for by in (1, 2, 4):
        lines += [f"shfl.sync.bfly.b32 t, s, {by}, 0x1f, 0xffffffff;", "add.u32 s, s, t;"]
    lines += ["and.b32 t, l, 7;", "setp.lt.u32 p, t, 2;", "shl.b32 t, t, 3;", "shr.u32 a, l, 4;", "shl.b32 a, a, 4;"]
    lines += ["add.u32 t, t, a;", "shr.u32 a, l, 3;", "and.b32 a, a, 1;", "shl.b32 a, a, 2;", "add.u32 t, t, a;"]
    return [*lines, "add.u32 t, t, to;", f"@p st.shared.b32 [t+{SUMS}], s;"]


def places(kind: int) -> str:
    """Tell where what a lane holds of B lies, of column r, and what its sums begin with; or where zeros do.

    Takes where the wavefront's room is, and the lane. Gives where tensors of B begin, first and last ones, 16 bytes
    each, and where sums do: of 4 bits the half's of the lane, of 8 bits the first line's, 16 bytes before the next's.
    """
    lines = [".reg .b32 a, b, c, q, s;", ".reg .pred p;", "and.b32 q, $4, 3;"]
    lines += ["shr.u32 a, $4, 3;", "setp.lt.u32 p, a, 3;", "shl.b32 a, a, 8;", "add.u32 a, a, $3;"]
    lines += ["shr.u32 b, $4, 2;", "and.b32 b, b, 1;", f"add.u32 s, $3, {ZEROS};"]
    if kind == 4:
        lines += ["shr.u32 c, q, 1;", "setp.eq.and.u32 p, b, c, p;", "shl.b32 c, q, 5;", "add.u32 a, a, c;"]
        lines += ["shl.b32 b, b, 4;", "add.u32 c, b, $3;", f"add.u32 c, c, {SUMS};"]
    else:
        lines += ["shl.b32 b, b, 6;", "add.u32 a, a, b;", "shl.b32 c, q, 4;", "add.u32 a, a, c;"]
        lines.append(f"add.u32 c, $3, {SUMS};")
    lines += ["add.u32 b, a, 128;", "selp.b32 $0, a, s, p;", "selp.b32 $1, b, s, p;"]
    lines += ["setp.eq.u32 p, q, 3;", "selp.b32 $2, c, s, p;"]
    return block(*lines)


PLACES_OF = single("rrr", "rr")
"""The constraints of ``places``."""


def product(kind: int) -> str:
    """Multiply a line of each of 16 rows of weights: a lane's share of the four rows of which it has words.

    Takes those words, four a row; what the lane holds of B, of 4 bits of both halves, of 8 bits of the line; what sums
    begin with; of each row a word of its half's two scales (of the line's, with 8 bits), or biases in quarter 3; what
    the quarter's sums are to be multiplied by; 0, before which is known words are not looked at; and whether the lane
    has second halves.
    """
    words = [operands(4 + 4 * row) for row in range(4)]
    lines = [".reg .b32 t, a<4>, c<8>, w<4>;", ".reg .f32 f, g, u;", ".reg .pred p;"]
    at = 20 + 4 * HELD[kind]
    first, scales, (by, none, half) = operands(at), operands(at + 4), operands(at + 8)[:3]
    lines.append(f"setp.ne.b32 p, {half}, 0;")
    for pair in range(2):
        lines += (_of_four if kind == 4 else _of_eight)(words[2 * pair], words[2 * pair + 1], first, none)
        for row in range(2):
            word, to = scales[2 * pair + row], f"${2 * pair + row}"
            lines += _scaled_four(row, word) if kind == 4 else _scaled_eight(row, word)
            lines.append(f"mul.f32 {to}, u, {by};")
    return block(*lines)


def product_of(kind: int) -> str:
    """Return the constraints of ``product``."""
    return single("ffff", "r" * (16 + 4 * HELD[kind] + 8) + "frr")


def _mma(d: list[str], a: list[str], b: list[str], c: list[str]) -> str:
    return MMA.format(d=", ".join(d), a=", ".join(a), b=", ".join(b), c=", ".join(c))


def _of_four(low: list[str], high: list[str], first: list[str], none: str) -> list[str]:
    """Multiply two rows' words: sums of both halves."""
    lines: list[str] = []
    codes, even_codes = [f"w{at}" for at in range(4)], [f"a{at}" for at in range(4)]
    for step in range(2):
        own = (low[2 * step], high[2 * step], low[2 * step + 1], high[2 * step + 1])
        lines += [f"or.b32 {to}, {one}, {none};" for to, one in zip(codes, own, strict=True)]
        lines += [
            f"lop3.b32 {to}, {one}, {EVEN:#x}, {none}, {TAKE:#x};" for to, one in zip(even_codes, own, strict=True)
        ]
        for odd, given in ((1, codes), (0, even_codes)):
            for half in range(2):
                sums = [f"c{4 * half + at}" for at in range(4)]
                held = operands(20 + 8 * half + 4 * odd)[2 * step : 2 * step + 2]
                lines.append(_mma(sums, given, held, sums if step or not odd else first))
    return lines


def _scaled_four(row: int, word: str) -> list[str]:
    """Scale a row's sums, of the lane's half."""
    lines: list[str] = []
    for group, take in enumerate((f"shl.b32 t, {word}, 16;", f"and.b32 t, {word}, 0xffff0000;")):
        at = 2 * row + group
        lines += [f"selp.b32 c{at}, c{4 + at}, c{at}, p;", f"cvt.rn.f32.s32 f, c{at};"]
        lines += [take, "mov.b32 g, t;", "fma.rn.f32 u, f, g, u;" if group else "mul.f32 u, f, g;"]
    return lines


def _of_eight(low: list[str], high: list[str], first: list[str], none: str) -> list[str]:
    """Multiply two rows' words: sums of the line."""
    lines: list[str] = []
    sums, codes = [f"c{at}" for at in range(4)], [f"w{at}" for at in range(4)]
    for step in range(2):
        own = (low[2 * step], high[2 * step], low[2 * step + 1], high[2 * step + 1])
        lines += [f"or.b32 {to}, {one}, {none};" for to, one in zip(codes, own, strict=True)]
        lines.append(_mma(sums, codes, operands(20)[2 * step : 2 * step + 2], sums if step else first))
    return lines


def _scaled_eight(row: int, word: str) -> list[str]:
    """Scale a row's sums, of the lane's half, which is a group."""
    lines = [f"selp.b32 t, c{2 * row + 1}, c{2 * row}, p;", "cvt.rn.f32.s32 f, t;", f"shl.b32 t, {word}, 16;"]
    return [*lines, f"selp.b32 t, {word}, t, p;", "and.b32 t, t, 0xffff0000;", "mov.b32 g, t;", "mul.f32 u, f, g;"]


def gathered() -> str:
    """Sum what eight lanes have of four rows, and give each quarter the row of its number. Takes these and the lane."""
    rows = operands(1)
    lines = [".reg .b32 t;", ".reg .f32 k0, k1, g0, g1;", ".reg .pred p;"]
    lines += ["and.b32 t, $5, 1;", "setp.ne.b32 p, t, 0;"]
    for pair in range(2):
        one, other = rows[2 * pair], rows[2 * pair + 1]
        lines += [f"selp.f32 k{pair}, {other}, {one}, p;", f"selp.f32 g{pair}, {one}, {other}, p;"]
        lines += [*swapped(f"g{pair}", 1), f"add.f32 k{pair}, k{pair}, g{pair};"]
    lines += ["and.b32 t, $5, 2;", "setp.ne.b32 p, t, 0;", "selp.f32 g0, k0, k1, p;", "selp.f32 k0, k1, k0, p;"]
    lines += [*swapped("g0", 2), "add.f32 k0, k0, g0;", "mov.f32 g0, k0;", *swapped("g0", 4)]
    return block(*lines, "add.f32 $0, k0, g0;")


GATHERED_OF = single("f", "ffffr")
"""The constraints of ``gathered``."""


def swapped(name: str, by: int) -> list[str]:
    """Give a number to the lane whose own differs by so much, and take that lane's."""
    return [f"mov.b32 t, {name};", f"shfl.sync.bfly.b32 t, t, {by}, 0x1f, 0xffffffff;", f"mov.b32 {name}, t;"]


def summed(wavefronts: int) -> str:
    """Sum a number of each lane over the wavefronts, in the first of them."""
    lines = [f".shared .align 16 .b8 totals[{128 * wavefronts}];", ".reg .b32 t, to;", ".reg .pred p;", ".reg .f32 f;"]
    lines += ["mov.u32 t, %tid.x;", "mov.u32 to, totals;", "mad.lo.u32 to, t, 4, to;"]
    lines += ["mov.f32 $0, $1;", "st.shared.f32 [to], $1;", "bar.sync 0;", "setp.ge.u32 p, t, 32;", "@p bra done;"]
    for at in range(1, wavefronts):
        lines += [f"ld.shared.f32 f, [to+{128 * at}];", "add.f32 $0, $0, f;"]
    return block(*lines, "done:")
