"""Blocks of PTX for ``walkers``, beside those of ``quantized_matmul``: what lanes do with a step's products."""

from __future__ import annotations

from rocmend.kernels.ops.quantized_matmul.kernels.blocks import MMA, constraints, pairs, product

__all__ = ["constraints", "finish", "pairs", "product", "ranks", "ranks_of"]
BITS = 8
"""Of an expert's number."""
MATES = 4
"""Pairs of one expert that are an item of the list."""
NOWHERE = 0x7FFF
"""In the list: a pair that is not the first of an item."""


def finish(chunks: int) -> str:
    """Sum a step's chunks: ``Σ scale · Σ q x + bias · Σ x`` for rows r and r + 8, and both once more.

    Each quarter has a row of x in its two columns of the products: of a chunk's first group and its second. What is
    not of the codes, ``Σ (bias - 128 scale) Σ x``, is one product on the matrix unit, whose columns are likewise two
    parts, of eight bits each, of that row's sums.

    Takes the chunks' products, four words of scales of row r and of row r + 8 (two groups for each chunk), biases of
    rows r and r + 8 and scales of both, groups 2 q and 2 q + 1 in a word; and column r of the parts of Σ x for these
    two groups, then of -128 Σ x, in fp32.
    """
    lines = [".reg .b32 t, y, z;", ".reg .f32 f, c0, c1, c2, c3, n;", "mov.f32 n, 0f00000000;"]
    behind = 4 + 4 * chunks
    mixed, sums = ([f"${behind + first + at}" for at in range(4)] for first in (8, 12))
    for row in range(2):
        for chunk in range(chunks):
            word = f"${behind + 4 * row + chunk}"
            for group, half in enumerate((f"shl.b32 t, {word}, 16;", f"and.b32 t, {word}, 0xffff0000;")):
                of = f"${4 + 4 * chunk + 2 * row + group}"
                lines += [half, "mov.b32 f, t;"]
                lines.append(f"fma.rn.f32 ${row}, f, {of}, ${row};" if chunk or group else f"mul.f32 ${row}, f, {of};")
    lines += [f"prmt.b32 y, {sums[0]}, {sums[1]}, 0x7632;", f"prmt.b32 z, {sums[2]}, {sums[3]}, 0x7632;"]
    lines.append(MMA.format(d="c0, c1, c2, c3", a=", ".join(mixed), b="y, z", c="n, n, n, n"))
    lines += ["add.f32 c0, c0, c1;", "add.f32 c2, c2, c3;", "add.f32 $0, $0, c0;", "add.f32 $1, $1, c2;"]
    lines += ["mov.f32 $2, $0;", "mov.f32 $3, $1;"]
    return "\n".join(("{", *lines, "}"))


def ranks_of(words: int) -> str:
    """Return the constraints of ``ranks``."""
    return ",".join(["=&r"] * words + ["r"] * words)


def ranks(words: int) -> str:
    """Say of each pair how many before it chose the same expert, and the place of its item in the list.

    Pairs of one expert are items, ``MATES`` at a time, in the order of their first. Lane ``l`` has the experts of the
    pairs ``32 j + l``, a negative number for none. A mask of the lanes that have the same expert is made of a vote for
    each bit of its number.

    Gives the place times 2^16, which is ``NOWHERE`` where another pair is the item's first, and how many are before.
    """
    lines = [".reg .b32 lt, t, n, s, c;", ".reg .pred p, v;", "mov.u32 lt, %lanemask_lt;"]
    lines.append(f".reg .b32 {', '.join(f'l{j}' for j in range(words))};")
    lines.append(f".reg .b32 {', '.join(f'm{j}_{o}' for j in range(words) for o in range(words))};")
    lines += [f"mov.b32 m{j}_{o}, 0xffffffff;" for j in range(words) for o in range(j + 1)]
    lines.append(f".reg .b32 {', '.join(f'b{j}' for j in range(words))};")
    for bit in range(BITS):
        for j in range(words):
            lines += [f"and.b32 t, ${words + j}, {1 << bit};", "setp.ne.u32 p, t, 0;"]
            lines.append(f"vote.sync.ballot.b32 b{j}, p, 0xffffffff;")
        for j in range(words):
            lines += [f"shl.b32 s, ${words + j}, {31 - bit};", "shr.s32 s, s, 31;"]
            # What the truth table 0x90 keeps: lanes that agree with this one's bit, which is all of s.
            lines += [f"lop3.b32 m{j}_{o}, m{j}_{o}, b{o}, s, 0x90;" for o in range(j + 1)]
    for j in range(words):
        lines += [f"and.b32 t, m{j}_{j}, lt;", "popc.b32 n, t;"]
        for o in range(j):
            lines += [f"popc.b32 t, m{j}_{o};", "add.u32 n, n, t;"]
        lines += [f"mov.b32 ${j}, n;", f"and.b32 t, n, {MATES - 1};", "setp.eq.u32 p, t, 0;"]
        lines.append(f"setp.ge.and.s32 p, ${words + j}, 0, p;")
        lines.append(f"vote.sync.ballot.b32 l{j}, p, 0xffffffff;")
    lines.append("mov.b32 c, 0;")
    for j in range(words):
        lines += [f"and.b32 t, l{j}, lt;", "popc.b32 n, t;", "add.u32 n, n, c;"]
        lines += ["mov.u32 t, %lanemask_eq;", f"and.b32 s, t, l{j};", "setp.ne.u32 v, s, 0;"]
        lines += [f"selp.b32 n, n, {NOWHERE}, v;", "shl.b32 n, n, 16;", f"or.b32 ${j}, ${j}, n;"]
        lines += [f"popc.b32 t, l{j};", "add.u32 c, c, t;"]
    return "\n".join(("{", *lines, "}"))
