"""Blocks of PTX for ``moe_gemv_persistent``: what lanes do with the products of 4-bit codes."""

from __future__ import annotations

from rocmend.kernels.backends.hopper.mma import CODES, ONES, TAKE, block, constraints, mma, operands, pairs

__all__ = ["constraints", "finish", "pairs", "product", "ranks", "ranks_of", "spread", "sums"]
ONE = 0x3F803F80
"""Twice 1 in bfloat16."""
EXPERT_BITS = 8
"""Of an expert's number."""
MATES = 4
"""Pairs of one expert that are an item of the list."""
NOWHERE = 0x7FFF
"""In the list: a pair that is not the first of an item."""
NOBODY = 0x7FFFFFFF
"""In the list: no pair, which is like none that there is."""
LANES = "0xffffffff"
MINUS = "0fC3000000"
"""-128."""


def product() -> str:
    """Multiply a chunk: ``Σ (128 + q) x`` for rows r and r + 8, by columns.

    Takes words of row r and of row r + 8, and x for each of the four words.
    """
    low, high = operands(4), operands(8)
    to = ", ".join(operands(0))
    lines = [".reg .b32 a, b, c, d, t, o;", ".reg .f32 z;", f"mov.b32 o, {ONES:#x};", "mov.f32 z, 0f00000000;"]
    for word in range(4):
        for pair in (0, 2):
            for register, codes, shift in (
                ("a", low[word], 4 * pair), ("b", high[word], 4 * pair),
                ("c", low[word], 4 * pair + 4), ("d", high[word], 4 * pair + 4),
            ):  # fmt: skip
                source = codes
                if shift:
                    lines.append(f"shr.u32 t, {codes}, {shift};")
                    source = "t"
                lines.append(f"lop3.b32 {register}, {source}, {CODES:#x}, o, {TAKE:#x};")
            x = 12 + 4 * word + pair
            lines.append(mma(to, "a, b, c, d", f"${x}, ${x + 1}", to if word or pair else "z, z, z, z"))
    return block(*lines)


def sums() -> str:
    """Sum the halves of a chunk of x by columns, for each row the same. Takes x for each of its four words."""
    to = ", ".join(operands(0))
    lines = [".reg .b32 o;", ".reg .f32 z;", f"mov.b32 o, {ONE:#x};", "mov.f32 z, 0f00000000;"]
    for pair in range(8):
        x = f"${4 + 2 * pair}, ${5 + 2 * pair}"
        lines.append(mma(to, "o, o, o, o", x, to if pair else "z, z, z, z"))
    return block(*lines)


def spread(chunks: int) -> str:
    """Bring sums of chunks to where a product of the matrix unit has them, as bfloat16.

    Quarters have the sums of a row of x each; its two columns of the operand have two parts of eight bits of them, of
    halves 2 q and 2 q + 1 in quarter q. Gives these, and these times what ``product`` adds to a code, negative; twice.
    """
    lines = [".reg .b32 l, s, t, a, h, e, u0, u1;", ".reg .f32 f0, f1, g0, g1;", ".reg .pred p1, p2, p3, v;"]
    lines += ["mov.u32 l, %laneid;", "shr.u32 s, l, 2;", "and.b32 t, s, 3;", "and.b32 a, s, 1;"]
    lines += [f"setp.eq.u32 p{chunk}, t, {chunk};" for chunk in (1, 2, 3)]
    lines.append("setp.eq.u32 v, a, 1;")
    # From the lane of the row that has this quarter's chunk, and of the quarter that has this column's row of x.
    lines += ["and.b32 s, l, 3;", "shl.b32 s, s, 2;", "shr.u32 a, l, 3;", "or.b32 s, s, a;"]
    for half in range(2):
        lines.append(f"mov.b32 t, ${4 + half};")
        for chunk in (1, 2, 3):
            own = f"${4 + 4 * chunk + half}" if chunk < chunks else "0"
            lines.append(f"selp.b32 t, {own}, t, p{chunk};")
        lines += [f"shfl.sync.idx.b32 u{half}, t, s, 31, {LANES};", f"mov.b32 f{half}, u{half};"]
    for at in range(2):
        if at:
            lines += [f"mul.f32 f{half}, f{half}, {MINUS};" for half in range(2)]
        lines += ["cvt.rn.bf16x2.f32 h, f1, f0;", "shl.b32 t, h, 16;", "mov.b32 g0, t;"]
        lines += ["and.b32 t, h, 0xffff0000;", "mov.b32 g1, t;"]
        lines += [f"sub.f32 g{half}, f{half}, g{half};" for half in range(2)]
        lines += ["cvt.rn.bf16x2.f32 e, g1, g0;", f"selp.b32 ${at}, e, h, v;", f"mov.b32 ${2 + at}, ${at};"]
    return block(*lines)


def finish(chunks: int) -> str:
    """Sum chunks: ``Σ scale · Σ q x + bias · Σ x`` for rows r and r + 8, and both once more.

    Each quarter has a row of x in its two columns of the products: of a chunk's first half and its second. What is not
    of the codes, ``Σ (bias - 128 scale) Σ x``, is one product on the matrix unit, whose columns are likewise two parts
    of that row's sums.

    Takes the chunks' products, four words of scales of row r and of row r + 8 (of both halves of a chunk), biases of
    rows r and r + 8 and scales of both, of halves 2 q and 2 q + 1 in a word; and what ``spread`` gave.
    """
    lines = [".reg .b32 t;", ".reg .f32 f, c0, c1, c2, c3, n;", "mov.f32 n, 0f00000000;"]
    behind = 4 + 4 * chunks
    mixed, own = operands(behind + 8), operands(behind + 12)
    for row in range(2):
        for chunk in range(chunks):
            word = f"${behind + 4 * row + chunk}"
            for half, take in enumerate((f"shl.b32 t, {word}, 16;", f"and.b32 t, {word}, 0xffff0000;")):
                of = f"${4 + 4 * chunk + 2 * row + half}"
                lines += [take, "mov.b32 f, t;"]
                lines.append(f"fma.rn.f32 ${row}, f, {of}, ${row};" if chunk or half else f"mul.f32 ${row}, f, {of};")
    lines.append(mma("c0, c1, c2, c3", ", ".join(mixed), ", ".join(own[:2]), "n, n, n, n"))
    lines += ["add.f32 c0, c0, c1;", "add.f32 c2, c2, c3;", "add.f32 $0, $0, c0;", "add.f32 $1, $1, c2;"]
    lines += ["mov.f32 $2, $0;", "mov.f32 $3, $1;"]
    return block(*lines)


def ranks_of(words: int) -> str:
    """Return the constraints of ``ranks``."""
    return ",".join(["=&r"] * words + ["r"] * words)


def ranks(words: int) -> str:
    """Say of each pair how many before it chose the same expert, and the place of its item in the list.

    Pairs of one expert are items, ``MATES`` at a time, in the order of their first. Lane ``l`` has the experts of the
    pairs ``32 j + l``, a negative number for none. A mask of the lanes that have the same expert is made of a vote for
    each bit of its number.

    Gives the place times 2^16, which is ``NOWHERE`` where another pair is the item's first, plus how many are before
    times 2^8, plus the expert.
    """
    lines = [".reg .b32 lt, t, n, s, c;", ".reg .pred p, v;", "mov.u32 lt, %lanemask_lt;"]
    lines.append(f".reg .b32 {', '.join(f'l{j}' for j in range(words))};")
    lines.append(f".reg .b32 {', '.join(f'm{j}_{o}' for j in range(words) for o in range(words))};")
    lines += [f"mov.b32 m{j}_{o}, 0xffffffff;" for j in range(words) for o in range(j + 1)]
    lines.append(f".reg .b32 {', '.join(f'b{j}' for j in range(words))};")
    for bit in range(EXPERT_BITS):
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
        lines += [f"selp.b32 n, n, {NOWHERE}, v;", "shl.b32 n, n, 16;", f"shl.b32 t, ${j}, 8;", "or.b32 n, n, t;"]
        lines += [f"or.b32 n, n, ${words + j};", f"setp.ge.s32 p, ${words + j}, 0;"]
        lines.append(f"selp.b32 ${j}, n, {NOBODY:#x}, p;")
        lines += [f"popc.b32 t, l{j};", "add.u32 c, c, t;"]
    return block(*lines)
