"""Blocks of PTX for ``walkers_rows``: as in ``blocks``, with a row of x in each of the matrix unit's eight columns.

A column has no room for a second group then, so an instruction multiplies codes of one group alone. A lane has half a
group in its four words, of group 0 of a chunk in quarters 0 and 1, of group 1 in the others: quarters ``q`` and
``q ^ 2`` exchange their last two words, and all four have two words of either group. So x is ordered: words 0 and 1
are of group 0, words 2 and 3 of group 1, and of the eight words of a group, which are ``h = 0`` and ``1`` of it in
halves, quarter ``q`` has number ``4 (q % 2) + j`` as its word ``j`` where it loaded that group, and two further ones
where it was given it.

Sums start at -128 Σ x, which takes off what stands beside the codes.
"""

from __future__ import annotations

from rocmend.kernels.ops.quantized_matmul.kernels.blocks import ONES, block, mma, multiplied, operands

FIRST, SECOND = "p0, p1, p2, p3", "r0, r1, r2, r3"
HALVES = 2


def product(chunk: int) -> str:
    """Add a chunk, number 0 to 3 of those that a load of scales is for, to a lane's ``Σ scale · Σ q x``.

    Takes the sums so far, for rows r and r + 8 and columns 2 q and 2 q + 1; words of rows r and r + 8; x for each of
    the four words; -128 Σ x of the first group, of columns 2 q and 2 q + 1, twice; scales of rows r and r + 8, of the
    two groups of chunk q in a word; whether the lane is in quarters 2 and 3; and -128 Σ x of the second group.
    """
    low, high, upper = operands(8), operands(12), operands(44)[0]
    starts = (", ".join(operands(32)), ", ".join(operands(48)))
    lines = [
        ".reg .pred p;", ".reg .b32 a, b, c, d, t, o, e<2>, f<2>, u<4>, v<4>;",
        ".reg .f32 p0, p1, p2, p3, r0, r1, r2, r3, s;", f"mov.b32 o, {ONES:#x};", f"setp.ne.b32 p, {upper}, 0;",
    ]  # fmt: skip
    for given, own, mixed in (("e", low, "u"), ("f", high, "v")):
        lines += [f"shfl.sync.bfly.b32 {given}{j}, {own[2 + j]}, 2, 0x1f, 0xffffffff;" for j in range(HALVES)]
        for j in range(HALVES):
            lines.append(f"selp.b32 {mixed}{j}, {given}{j}, {own[j]}, p;")
            lines.append(f"selp.b32 {mixed}{2 + j}, {own[j]}, {given}{j}, p;")
    # The groups in turn, so that one does not wait for what the other does.
    for j in range(HALVES):
        for group, to in enumerate((FIRST, SECOND)):
            word = 2 * group + j
            lines += multiplied(f"u{word}", f"v{word}", operands(16 + 4 * word), to, to if j else starts[group])
    for row, held in ((0, 36), (2, 40)):
        lines.append(f"shfl.sync.idx.b32 d, ${held}, {chunk}, 0x1c1f, 0xffffffff;")
        for group, half in (("p", "shl.b32 t, d, 16;"), ("r", "and.b32 t, d, 0xffff0000;")):
            lines += [half, "mov.b32 s, t;"]
            for at in (row, row + 1):
                lines.append(f"fma.rn.f32 ${at}, s, {group}{at}, ${at if group == 'r' else 4 + at};")
    return block(*lines)


def sums() -> str:
    """Give -128 Σ x of a chunk's groups in columns 2 q and 2 q + 1: both of the first group, both of the second.

    Takes x for each of the four words. The left operand is ones, so that all rows have the same.
    """
    lines = [".reg .b32 o;", ".reg .f32 p0, p1, p2, p3, r0, r1, r2, r3, z;", "mov.b32 o, 0x3f803f80;"]
    lines.append("mov.f32 z, 0f00000000;")
    for word in range(4):
        x, to = operands(4 + 4 * word), FIRST if word < HALVES else SECOND
        lines.append(mma(to, "o, o, o, o", f"{x[0]}, {x[1]}", to if word % 2 else "z, z, z, z"))
        lines.append(mma(to, "o, o, o, o", f"{x[2]}, {x[3]}", to))
    lines += [f"mul.f32 ${at}, {of}, 0fC3000000;" for at, of in enumerate(("p0", "p1", "r0", "r1"))]
    return block(*lines)


def biases() -> str:
    """Add ``Σ bias · Σ x`` of 16 groups to a lane's sums.

    A sum of x is cut into three bfloat16, which have its 24 bits. Takes the sums; words of two biases, number 2 q and
    2 q + 1 of row r, then of row r + 8; and -128 Σ x of their four groups, of column r.
    """
    so_far, to = ", ".join(operands(4)), "c0, c1, c2, c3"
    lines = [".reg .b32 b0, b1, t;", ".reg .f32 x<4>, y, c0, c1, c2, c3;"]
    lines += [f"mul.f32 x{at}, ${12 + at}, 0fBC000000;" for at in range(4)]
    for part in range(3):
        for word in range(2):
            even, odd = f"x{2 * word}", f"x{2 * word + 1}"
            lines.append(f"cvt.rn.bf16x2.f32 b{word}, {odd}, {even};")
            if part < 2:
                lines += [f"shl.b32 t, b{word}, 16;", "mov.b32 y, t;", f"sub.f32 {even}, {even}, y;"]
                lines += [f"and.b32 t, b{word}, 0xffff0000;", "mov.b32 y, t;", f"sub.f32 {odd}, {odd}, y;"]
        lines.append(mma(to, "$8, $10, $9, $11", "b0, b1", to if part else so_far))
    lines += [f"mov.f32 ${at}, c{at};" for at in range(4)]
    return block(*lines)
