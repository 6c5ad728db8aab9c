"""Blocks of PTX for ``burst``: codes that stand as they are in bfloat16's smallest numbers, times one row of x.

In the terms of ``quantized_matmul/kernels/blocks.py`` a chunk is 16 words of a row, four of each quarter. Columns of B
are groups of a chunk, not rows of x: lane ``l``, in row ``r`` and quarter ``q``, holds the part of x that column ``r``
has of the codes of quarter ``q``, or zeros. So a wavefront's x lies in its lanes once, whatever the number of chunks:
of a chunk's products some columns are its own groups, and the others, which meet other chunks' x, are not looked at.

The low bits of a bfloat16 are a multiple of 2^-133, also where its exponent is not 0: codes of 4 and 8 bits need no
more than a mask. e2m1's bits where bfloat16 has them are its numbers times 2^-126. So x is taken times 2^64, and what
comes out is scaled back. The upper four of eight bits are taken in their place, 16 times as much, and their x a 16th.

Kinds: 4 and 8 are bits of affine codes, ``E2M1`` is mxfp4. Operands are numbered as there, the four results first.
"""

from __future__ import annotations

from rocmend.kernels.ops.quantized_matmul.kernels.blocks import TAKE, block, constraints, mma, operands
from rocmend.kernels.ops.quantized_matmul.kernels.blocks import pairs as pairs_as_they_stand

E2M1 = 0
KINDS = (4, 8, E2M1)
CHUNKS = {4: 4, 8: 8, E2M1: 4}
"""Of a wavefront's 512 codes of a row."""
TIMES, TIMES_16TH = 0x5F805F80, 0x5D805D80
"""2^64 and 2^60 in bfloat16, twice."""
BACK, BACK_16 = 0x1F801F80, 0x21802180
"""2^-64 and 2^-60."""
OF_CODES, OF_E2M1 = "0f62000000", "0f5E800000"
"""2^133 and 2^126 by 2^64."""
EVEN, ODD, BYTES = 0x000F000F, 0x00F000F0, 0x00FF00FF
PLACED = 0x81C081C0
"""Bits of e2m1 in bfloat16."""
SPREAD_EVEN, SPREAD_ODD = 0x1040, 0x0104
"""A code times this stands where its sign belongs, and where its other bits do."""
TINY = 0x00400000
"""2^-127, which is a denormal, in fp32."""


def pairs(kind: int) -> str:
    """Eight numbers of x as they stand, in four registers, to pairs in the order of codes, scaled."""
    lines = [".reg .b32 u, v;", f"mov.b32 u, {TIMES:#x};", f"mov.b32 v, {TIMES_16TH if kind == 4 else TIMES:#x};"]
    if kind == 8:
        a, b, c, d = operands(4)
        for at, (low, high, pick) in enumerate(
            ((a, b, "0x5410"), (a, b, "0x7632"), (c, d, "0x5410"), (c, d, "0x7632"))
        ):
            lines.append(f"prmt.b32 ${at}, {low}, {high}, {pick};")
    else:
        lines += pairs_as_they_stand().split("\n")
    return block(*lines, *(f"mul.rn.bf16x2 ${at}, ${at}, {'v' if at % 2 else 'u'};" for at in range(4)))


def after(loads: int) -> str:
    """Give a tensor as it is, whose first register waits for others: their first registers, and all of the last one's.

    Takes the tensor, the others, and zeros.
    """
    of = [f"${8 + 4 * at}" for at in range(loads)] + [f"${4 + 4 * loads + at}" for at in range(1, 4)]
    lines = [".reg .b32 t;", f"mov.b32 t, {of[0]};"]
    lines += [f"xor.b32 t, t, {one};" for one in of[1:]]
    lines.append(f"lop3.b32 $0, t, ${8 + 4 * loads}, $4, {TAKE:#x};")
    return block(*lines, *(f"mov.b32 ${at}, ${4 + at};" for at in range(1, 4)))


def after_of(loads: int) -> str:
    """Return the constraints of ``after``."""
    return constraints("r", "r" * (loads + 2))


def _placed(kind: int, to: str, source: str, odd: int) -> list[str]:
    """Return the lines that take a pair of codes out of a word, or out of one shifted by 8."""
    if kind == 8:
        return [f"and.b32 {to}, {source}, {BYTES:#x};"]
    lines = [f"and.b32 {to}, {source}, {ODD if odd else EVEN:#x};"]
    if kind == E2M1:
        lines.append(f"mul.lo.u32 {to}, {to}, {SPREAD_ODD if odd else SPREAD_EVEN:#x};")
        lines.append(f"and.b32 {to}, {to}, {PLACED:#x};")
    return lines


def product(kind: int) -> str:
    """Multiply a chunk's words of row r and of row r + 8 with x in pairs: of all its words, two words a tensor of 8 bits.

    Gives the sums of columns 2 q and 2 q + 1 of row r, and of row r + 8.
    """  # noqa: E501
    low, high = operands(4), operands(8)
    sums = ", ".join(operands(0))
    lines = [".reg .b32 a, b, c, d, t, s;", ".reg .f32 z;", "mov.f32 z, 0f00000000;"]
    start, at = "z, z, z, z", 12
    for word in range(4):
        shifted = [f"shr.u32 t, {low[word]}, 8;", f"shr.u32 s, {high[word]}, 8;"]
        if kind == 8:
            steps = [(low[word], high[word], "t", "s", shifted)]
        else:
            steps = [(low[word], high[word], low[word], high[word], []), ("t", "s", "t", "s", shifted)]
        for first, first_high, second, second_high, before in steps:
            lines += before
            lines += _placed(kind, "a", first, 0) + _placed(kind, "b", first_high, 0)
            lines += _placed(kind, "c", second, 1) + _placed(kind, "d", second_high, 1)
            lines.append(mma(sums, "a, b, c, d", f"${at}, ${at + 1}", start))
            start, at = sums, at + 2
    return block(*lines)


def product_of(kind: int) -> str:
    """Return the constraints of ``product``."""
    return constraints("f", "rr" + "r" * _tensors(kind))


def sums(kind: int) -> str:
    """Sum x by columns: of 2 q and 2 q + 1, twice."""
    own = ", ".join(operands(0))
    lines = [".reg .b32 u, v;", ".reg .f32 z;", "mov.f32 z, 0f00000000;"]
    lines += [f"mov.b32 u, {BACK:#x};", f"mov.b32 v, {BACK_16 if kind == 4 else BACK:#x};"]
    for step in range(2 * _tensors(kind)):
        x = f"${4 + 2 * step}, ${5 + 2 * step}"
        lines.append(mma(own, "u, u, v, v", x, own if step else "z, z, z, z"))
    return block(*lines)


def sums_of(kind: int) -> str:
    """Return the constraints of ``sums``."""
    return constraints("f", "r" * _tensors(kind))


def _tensors(kind: int) -> int:
    return 2 if kind == 8 else 4


def finish(kind: int) -> str:
    """Scale a wavefront's products and sum them: of row r in even quarters, of row r + 8 in odd ones, four times.

    Takes the chunks' products, and with affine codes words of biases of rows r and r + 8 and of scales of both, of
    groups 2 q and 2 q + 1, and what ``sums`` gave; of e2m1 words of two scales each: of rows r and r + 8, of groups
    2 q and 2 q + 1, then of those 8 further.
    """
    lines = [".reg .b32 t, q;", ".reg .f32 a, b, f0, f1, f2, f3, g;", ".reg .pred p1, p2, p3, o;"]
    lines += ["mov.u32 q, %laneid;", "and.b32 q, q, 3;", "and.b32 t, q, 1;", "setp.eq.u32 o, t, 1;"]
    lines += _e2m1() if kind == E2M1 else _affine(kind)
    # Each lane gives the row that it does not keep to the other of two quarters, then two of them add what they have.
    lines += ["selp.f32 f0, a, b, o;", "selp.f32 f1, b, a, o;"]
    for step in (1, 2):
        lines += ["mov.b32 t, f0;" if step == 1 else "mov.b32 t, f1;"]
        lines += [f"shfl.sync.bfly.b32 t, t, {step}, 0x1f, 0xffffffff;", "mov.b32 f0, t;", "add.f32 f1, f1, f0;"]
    return block(*lines, *(f"mov.f32 ${at}, f1;" for at in range(4)))


def _affine(kind: int) -> list[str]:
    chunks = CHUNKS[kind]
    mixed, own = 4 + 4 * chunks, 8 + 4 * chunks
    lines = [f"setp.eq.u32 p{quarter}, q, {quarter};" for quarter in (1, 2, 3)]
    for at in range(4):
        # Of 4 bits a chunk is this quarter's, of 8 bits a chunk is one column.
        of = [f"${4 + 4 * (quarter if kind == 4 else 2 * quarter + at % 2) + at}" for quarter in range(4)]
        lines.append(f"selp.f32 f{at}, {of[1]}, {of[0]}, p1;")
        lines += [f"selp.f32 f{at}, {of[quarter]}, f{at}, p{quarter};" for quarter in (2, 3)]
        lines.append(f"mul.f32 f{at}, f{at}, {OF_CODES};")
    for row, to in ((0, "a"), (1, "b")):
        of_scales = (f"${mixed + 2 + row}", (f"f{2 * row}", f"f{2 * row + 1}"))
        of_biases = (f"${mixed + row}", (f"${own}", f"${own + 1}"))
        for second, (word, by) in enumerate((of_scales, of_biases)):
            for group, take in enumerate((f"shl.b32 t, {word}, 16;", f"and.b32 t, {word}, 0xffff0000;")):
                lines += [take, "mov.b32 g, t;"]
                more = second or group
                lines.append(f"fma.rn.f32 {to}, g, {by[group]}, {to};" if more else f"mul.f32 {to}, g, {by[group]};")
    return lines


def _e2m1() -> list[str]:
    lines = ["setp.ge.u32 p2, q, 2;"]
    for half in range(2):
        for at in range(4):
            # Two chunks have all columns: of the first one quarters 0 and 1.
            lines.append(f"selp.f32 f{at}, ${8 + 8 * half + at}, ${4 + 8 * half + at}, p2;")
            lines.append(f"mul.f32 f{at}, f{at}, {OF_E2M1};")
        for row, to in ((0, "a"), (1, "b")):
            word = f"${20 + 2 * half + row}"
            for group in range(2):
                lines += [f"shr.u32 t, {word}, {8 * group};", "and.b32 t, t, 0xff;", "shl.b32 t, t, 23;"]
                lines += [f"max.u32 t, t, {TINY:#x};", "mov.b32 g, t;"]
                by = f"f{2 * row + group}"
                lines.append(f"fma.rn.f32 {to}, g, {by}, {to};" if half or group else f"mul.f32 {to}, g, {by};")
    return lines


def finish_of(kind: int) -> str:
    """Return the constraints of ``finish``."""
    return constraints("f", "f" * CHUNKS[kind] + ("r" if kind == E2M1 else "rf"))
