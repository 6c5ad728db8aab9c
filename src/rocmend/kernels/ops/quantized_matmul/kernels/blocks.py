"""Blocks of PTX for ``walkers``: what lanes do with their registers around the matrix unit's m16n8k16, in bfloat16.

Gluon says which lane holds what; between lanes only the matrix instruction moves anything. In its terms lane ``l`` is
in row ``r = l // 4`` and quarter ``q = l % 4``: it holds rows ``r`` and ``r + 8`` and, of each 16 terms of a sum, those
at ``2 q``, ``2 q + 1``, ``2 q + 8`` and ``2 q + 9`` of A and, for column ``r``, of B; of the result it holds columns
``2 q`` and ``2 q + 1`` of both rows. Which term is which code is free, as long as x has the same order.

A chunk is 128 codes of a row, two groups of 64: a quarter has four words of it, which one load brings. So quarters 0
and 1 have the first group, 2 and 3 the second, and x has zeros for the others: in even columns for the second group, in
odd ones for the first. Columns of the result are groups, one row of x.

A word holds codes 0 to 7 from its lowest bits on; under the exponent of 128, codes ``v`` and ``v + 4`` are a pair of
bfloat16 after a shift by ``4 v`` and one instruction. So x is in pairs likewise: ``pairs``.

Each block takes tensors of four registers a lane, and gives one of four: operands are numbered in that order, the four
results first.
"""

from __future__ import annotations

import struct

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}};"
ONES = 0x43004300
"""Twice 128 in bfloat16, whose last bits a code takes."""
CODES = 0x000F000F
BESIDE = -128.0
"""What the exponent adds to a code of four bits, taken back with its scale; to one of eight, 17 times as much."""
TAKE = 0xEA
"""The truth table of ``(a & b) | c``."""


def mma(d: str, a: str, b: str, c: str) -> str:
    """Return the matrix instruction ``d = a b + c``."""
    return MMA.format(d=d, a=a, b=b, c=c)


def operands(first: int) -> list[str]:
    """Return the names of a tensor's four registers."""
    return [f"${first + index}" for index in range(4)]


def block(*lines: str) -> str:
    """Return lines with names of their own."""
    return "\n".join(("{", *lines, "}"))


def constraints(results: str, tensors: str) -> str:
    """Return the constraints of a block: a letter for each tensor that it gives and for each it takes; f or r."""
    given = [f"=&{kind}" for kind in results for _ in range(4)]
    return ",".join(given + [kind for kind in tensors for _ in range(4)])


def pairs() -> str:
    """Eight codes' numbers of x as they stand, in four registers, to the pairs (v, v + 4)."""
    a, b, c, d = operands(4)
    return "\n".join(
        f"prmt.b32 ${v}, {low}, {high}, {pick};"
        for v, (low, high, pick) in enumerate(((a, c, "0x5410"), (a, c, "0x7632"), (b, d, "0x5410"), (b, d, "0x7632")))
    )


def pairs_of_bytes() -> str:
    """Four codes' numbers of x as they stand, in two registers and once more, to the pairs of a word of 8-bit codes.

    Such a word is taken as eight codes of four bits: of code ``v`` the low half has x, the high half 16 times that.
    """
    a, b, _, _ = operands(4)
    lines = [".reg .b32 o;", "mov.b32 o, 0x41804180;"]
    for v, pick in ((0, "0x5410"), (2, "0x7632")):
        lines += [f"prmt.b32 ${v}, {a}, {b}, {pick};", f"mul.rn.bf16x2 ${v + 1}, ${v}, o;"]
    return block(*lines)


def multiplied(low: str, high: str, x: list[str], to: str, start: str) -> list[str]:
    """Return the lines that add ``Σ (128 + q) x`` of a word of rows r and r + 8 to ``start``; o is twice 128.

    They write to a, b, c, d and t.
    """
    lines = []
    for pair in (0, 2):
        for register, codes, shift in (
            ("a", low, 4 * pair), ("b", high, 4 * pair), ("c", low, 4 * pair + 4), ("d", high, 4 * pair + 4),
        ):  # fmt: skip
            source = codes
            if shift:
                lines.append(f"shr.u32 t, {codes}, {shift};")
                source = "t"
            lines.append(f"lop3.b32 {register}, {source}, {CODES:#x}, o, {TAKE:#x};")
        lines.append(mma(to, "a, b, c, d", f"{x[pair]}, {x[pair + 1]}", to if pair else start))
    return lines


def product() -> str:
    """Multiply a chunk: ``Σ (128 + q) x`` for rows r and r + 8, by columns.

    Takes words of row r and of row r + 8, and x for each of the four words.
    """
    low, high = operands(4), operands(8)
    sums = ", ".join(operands(0))
    lines = [".reg .b32 a, b, c, d, t, o;", ".reg .f32 z;", f"mov.b32 o, {ONES:#x};", "mov.f32 z, 0f00000000;"]
    for word in range(4):
        x = operands(12 + 4 * word)
        lines += multiplied(low[word], high[word], x, sums, sums if word else "z, z, z, z")
    return block(*lines)


def finish() -> str:
    """Sum four chunks: a lane's share of ``Σ scale · Σ q x + bias · Σ x`` for rows r and r + 8, and both once more.

    All quarters have the products, so each takes a fourth. What is not of the codes, ``Σ (bias - 128 scale) Σ x``, is
    one product on the matrix unit: columns 0 to 2 of B are the three parts of eight bits that a sum of x has.

    Takes the four chunks' products, words of scales of row r and of row r + 8 (two groups for each chunk), biases of
    rows r and r + 8 and scales of both, groups 2 q and 2 q + 1 in a word; and column r of the parts of Σ x for these
    two groups, then of -128 Σ x, in fp32.
    """
    lines = [".reg .b32 t, y, z;", ".reg .f32 f, c0, c1, c2, c3, n;", "mov.f32 n, 0f00000000;"]
    for row, scales in enumerate((20, 24)):
        for chunk in range(4):
            word = f"${scales + chunk}"
            for group, half in enumerate((f"shl.b32 t, {word}, 16;", f"and.b32 t, {word}, 0xffff0000;")):
                of = f"${4 + 4 * chunk + 2 * row + group}"
                lines += [half, "mov.b32 f, t;"]
                lines.append(f"fma.rn.f32 ${row}, f, {of}, ${row};" if chunk or group else f"mul.f32 ${row}, f, {of};")
    lines += ["prmt.b32 y, $32, $33, 0x7632;", "prmt.b32 z, $34, $35, 0x7632;"]
    lines.append(mma("c0, c1, c2, c3", ", ".join(operands(28)), "y, z", "n, n, n, n"))
    lines += ["add.f32 c0, c0, c1;", "add.f32 c2, c2, c3;"]
    lines += ["fma.rn.f32 $0, $0, 0f3E800000, c0;", "fma.rn.f32 $1, $1, 0f3E800000, c2;"]
    lines += ["mov.f32 $2, $0;", "mov.f32 $3, $1;"]
    return block(*lines)


def sums(bits: int) -> str:
    """Sum x by groups: of eight that follow each other those numbered 2 q and 2 q + 1, and ``beside`` times both.

    Takes what a lane has of x, sixteen numbers in two tensors with 4 bits, eight in one with 8; and where q's first
    group stands: the first lane that has some of it.
    """
    held = [register for at in range(2 if bits == 4 else 1) for register in operands(4 + 4 * at)]
    first = operands(4 + len(held))[0]
    lines = [".reg .b32 t, l;", ".reg .f32 f, s;", "mov.f32 s, 0f00000000;"]
    for register in held:
        for half in (f"shl.b32 t, {register}, 16;", f"and.b32 t, {register}, 0xffff0000;"):
            lines += [half, "mov.b32 f, t;", "add.f32 s, s, f;"]
    for by in (1, 2):
        lines += [
            "mov.b32 t, s;",
            f"shfl.sync.bfly.b32 t, t, {by}, 0x1f, 0xffffffff;",
            "mov.b32 f, t;",
            "add.f32 s, s, f;",
        ]
    lines += ["mov.b32 t, s;"]
    (beside,) = struct.unpack("<I", struct.pack("<f", BESIDE if bits == 4 else BESIDE * 17))
    for group in range(2):
        lines += [f"add.u32 l, {first}, {4 * group};", "shfl.sync.idx.b32 l, t, l, 0x1f, 0xffffffff;", "mov.b32 f, l;"]
        lines += [f"mov.f32 ${group}, f;", f"mul.f32 ${2 + group}, f, 0f{beside:08x};"]
    return block(*lines)


def shared(wavefronts: int) -> str:
    """Add up the results of wavefronts that share a tile; each has all of them then.

    Takes a wavefront's own; where they go; where the first wavefront's are, in front of the others'; and the barrier
    that these wavefronts have for themselves.
    """
    own, to, of, barrier = operands(4), operands(8)[0], operands(12)[0], operands(16)[0]
    lines = [".reg .f32 c<4>;", f"st.shared.v4.f32 [{to}], {{{', '.join(own)}}};"]
    lines += [f"bar.sync {barrier}, {32 * wavefronts};"]
    lines.append(f"ld.shared.v4.f32 {{$0, $1, $2, $3}}, [{of}];")
    for wavefront in range(1, wavefronts):
        lines.append(f"ld.shared.v4.f32 {{c0, c1, c2, c3}}, [{of}+{512 * wavefront}];")
        lines += [f"add.f32 ${at}, ${at}, c{at};" for at in range(4)]
    return block(*lines)
