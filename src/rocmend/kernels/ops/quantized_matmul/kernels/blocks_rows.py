"""Blocks of PTX for ``walkers_rows``: as in ``blocks``, with a row of x in each of the matrix unit's eight columns.

A column has no room for a second group then, so an instruction multiplies codes of one group alone. A lane has half a
group in its four words, of group 0 of a chunk in quarters 0 and 1, of group 1 in the others: quarters ``q`` and
``q ^ 2`` exchange their last two words, and all four have two words of either group. So x is ordered: words 0 and 1
are of group 0, words 2 and 3 of group 1, and of the eight words of a group, which are ``h = 0`` and ``1`` of it in
halves, quarter ``q`` has number ``4 (q % 2) + j`` as its word ``j`` where it loaded that group, and two further ones
where it was given it.
"""

from __future__ import annotations

from rocmend.kernels.ops.quantized_matmul.kernels.blocks import ONES, block, mma, multiplied, operands

FIRST, SECOND = "p0, p1, p2, p3", "r0, r1, r2, r3"
HALVES = 2
PARTS = 3


def product(chunk: int) -> str:
    """Add a chunk, number 0 to 3 of those that a load of scales is for, to a lane's ``Σ scale · Σ (128 + q) x``.

    Takes the sums so far, of rows r and r + 8 and columns 2 q and 2 q + 1; words of rows r and r + 8; x for each of the
    four words; scales of rows r and r + 8, of the two groups of chunk q in a word; whether q is 2 or 3.
    """
    low, high, upper = operands(8), operands(12), operands(40)[0]
    lines = [
        ".reg .pred p;", ".reg .b32 a, b, c, d, t, o, e<2>, f<2>, u<4>, v<4>;",
        ".reg .f32 p0, p1, p2, p3, r0, r1, r2, r3, s, z;", f"mov.b32 o, {ONES:#x};", "mov.f32 z, 0f00000000;",
        f"setp.ne.b32 p, {upper}, 0;",
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
            lines += multiplied(f"u{word}", f"v{word}", operands(16 + 4 * word), to, to if j else "z, z, z, z")
    for row, held in ((0, 32), (2, 36)):
        lines.append(f"shfl.sync.idx.b32 d, ${held}, {chunk}, 0x1c1f, 0xffffffff;")
        for group, half in (("p", "shl.b32 t, d, 16;"), ("r", "and.b32 t, d, 0xffff0000;")):
            lines += [half, "mov.b32 s, t;"]
            for at in (row, row + 1):
                lines.append(f"fma.rn.f32 ${at}, s, {group}{at}, ${at if group == 'r' else 4 + at};")
    return block(*lines)


def totals(chunk: int) -> str:
    """Give what chunk 0 to 3 has of the sums of x by groups: row r of x, groups 2 q and 2 q + 1 of four chunks.

    x is the left operand here, half of it in rows r + 8; the right one has ones in the column of the group. What it
    gives, of one half and of the other, is where the right operand of ``others`` has it. Takes x for each of the four
    words, and r.
    """
    to = "c0, c1, c2, c3"
    lines = [".reg .pred p;", ".reg .b32 o;", ".reg .f32 c0, c1, c2, c3, z;", "mov.f32 z, 0f00000000;"]
    for word in range(4):
        x = operands(4 + 4 * word)
        if word % HALVES == 0:
            lines.append(f"setp.ne.b32 p, $20, {2 * chunk + word // HALVES};")
            lines.append("selp.b32 o, 0, 0x3f803f80, p;")
        lines.append(mma(to, ", ".join(x), "o, o", to if word else "z, z, z, z"))
    lines += [f"mov.f32 ${at}, c{at};" for at in range(4)]
    return block(*lines)


def cut() -> str:
    """Cut the sums of x into three bfloat16, which have their 24 bits, and the same times -128.

    Gives six registers, then two that have nothing: groups 2 q and 2 q + 1 of a part, and of it times -128. Takes what
    ``totals`` gives for four chunks, added up.
    """
    lines = [".reg .b32 t, n;", ".reg .f32 x0, x1, y;", "mov.b32 n, 0xc300c300;"]
    lines += ["add.f32 x0, $8, $10;", "add.f32 x1, $9, $11;"]
    for part in range(PARTS):
        to = f"${2 * part}"
        lines += [f"cvt.rn.bf16x2.f32 {to}, x1, x0;", f"mul.rn.bf16x2 ${2 * part + 1}, {to}, n;"]
        if part + 1 < PARTS:
            lines += [f"shl.b32 t, {to}, 16;", "mov.b32 y, t;", "sub.f32 x0, x0, y;"]
            lines += [f"and.b32 t, {to}, 0xffff0000;", "mov.b32 y, t;", "sub.f32 x1, x1, y;"]
    lines += ["mov.b32 $6, 0;", "mov.b32 $7, 0;"]
    return block(*lines)


def others() -> str:
    """Add what is not of the codes, ``Σ (bias - 128 scale) Σ x`` of four chunks, to a lane's sums.

    Takes the sums; biases of rows r and r + 8 and scales of both, of the groups of chunk q in a word; and the eight
    registers that ``cut`` gives.
    """
    lines = [".reg .f32 c0, c1, c2, c3;"]
    for part in range(PARTS):
        one = 24 + 2 * part
        start = ", ".join(operands(4)) if part == 0 else "c0, c1, c2, c3"
        lines.append(mma("c0, c1, c2, c3", "$8, $12, $16, $20", f"${one}, ${one + 1}", start))
    lines += [f"mov.f32 ${at}, c{at};" for at in range(4)]
    return block(*lines)
