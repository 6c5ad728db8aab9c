"""Blocks of PTX for ``skinny_gemm_persistent``: as in ``mma``, with a row of x in each of the eight columns.

A column has no room for a second group then, so an instruction multiplies codes of one group alone. A lane has half a
group in its four words, of group 0 of a chunk in quarters 0 and 1, of group 1 in the others: quarters ``q`` and
``q ^ 2`` exchange their last two words, and all four have two words of either group. So x is ordered: words 0 and 1
are of group 0, words 2 and 3 of group 1, and of the eight words of a group, which are ``h = 0`` and ``1`` of it in
halves, quarter ``q`` has number ``4 (q % 2) + j`` as its word ``j`` where it loaded that group, and two further ones
where it was given it.

Codes are operands as they stand. The bits 0 to 7 of a bfloat16 alone are their number times 2⁻¹³³: seven are the
fraction of a subnormal number, and the eighth makes it a normal one, which goes on where those end. So a mask gives a
pair of codes, or of 16 times the codes beside them, and a word takes one shift and four masks. x is multiplied by 2⁸⁰,
or by 2⁷⁶ where codes come 16 times: 2⁻⁵³ is left in each product, which sums lose at the end.

Numbers of x from 2⁴⁸ on overflow so, and products of a row that has none from 2⁻⁷⁰ on fall short of float32. Its sums
show either: one that is no number, or none of some size. Then all rows are brought into order again, each multiplied by
a power of two that takes its largest number to where it has room, and what comes out is multiplied back. All that
others pay for this is a look at 16 bytes, which stand behind the sums of x, beside what rows are multiplied back with.
"""

from __future__ import annotations

from rocmend.kernels.backends.hopper.mma import block, mma, operands

FIRST, SECOND = "p0, p1, p2, p3", "r0, r1, r2, r3"
HALVES = 2
PARTS = 3
LOW, HIGH = 0x000F000F, 0x00F000F0
"""Codes 0 and 4 of a word, and 16 times codes 1 and 5."""
EVEN, ODD = 0x67806780, 0x65806580
"""Twice what x is multiplied by: 2⁸⁰, and 2⁷⁶ where it meets 16 times codes."""
ONES = 0x17801780
"""Twice what takes 2⁸⁰ back."""
RESTORE = 0x5A000000
"""2⁵³ as float32: what sums of products are multiplied by."""
BACK, SEEN, LARGEST, EXTRA_BYTES = 0, 32, 48, 512
"""Behind the sums: what each row's results are multiplied by; a byte for each row that has a sum of some size, and one
for each that has a sum that is no number; each row's largest number; how much is taken for all of it."""
ENOUGH = 0x26800000
"""2⁻⁵⁰ as float32: a sum of some size, of 64 numbers."""
MOST, LEAST = 46, -50
"""Exponents that a row's largest number may have."""
INFINITE = 0x7F80
"""Infinity in bfloat16."""
WORD_BYTES = 512
"""What a wavefront has of x for one word of each lane: four pairs each."""


def product(chunk: int) -> str:
    """Add a chunk, number 0 to 3 of those that a load of scales is for, to a lane's ``Σ scale · Σ q x``, times 2⁻⁵³.

    Takes the sums so far, of rows r and r + 8 and columns 2 q and 2 q + 1; words of rows r and r + 8; x for each of the
    four words; scales of rows r and r + 8, of the two groups of chunk q in a word; whether q is 2 or 3.
    """
    low, high, upper = operands(8), operands(12), operands(40)[0]
    lines = [
        ".reg .pred m;", ".reg .b32 a, b, c, d, t, w, e<2>, f<2>, g<2>, u<4>, v<4>;", ".reg .f32 p<4>, r<4>, s, z;",
        "mov.f32 z, 0f00000000;", f"setp.ne.b32 m, {upper}, 0;",
    ]  # fmt: skip
    for given, own, mixed in (("e", low, "u"), ("f", high, "v")):
        lines += [f"shfl.sync.bfly.b32 {given}{j}, {own[2 + j]}, 2, 0x1f, 0xffffffff;" for j in range(HALVES)]
        for j in range(HALVES):
            lines.append(f"selp.b32 {mixed}{j}, {given}{j}, {own[j]}, m;")
            lines.append(f"selp.b32 {mixed}{2 + j}, {own[j]}, {given}{j}, m;")
    lines += [f"shfl.sync.idx.b32 g{row}, ${32 + 4 * row}, {chunk}, 0x1c1f, 0xffffffff;" for row in range(HALVES)]
    # The groups in turn, so that one does not wait for what the other does.
    for word in (0, 2, 1, 3):
        to = ", ".join(f"{'pr'[word // 2]}{at}" for at in range(4))
        x = operands(16 + 4 * word)
        for pair in (0, 2):
            held = (f"u{word}", f"v{word}")
            if pair:
                lines += [f"shr.u32 t, {held[0]}, 8;", f"shr.u32 w, {held[1]}, 8;"]
                held = ("t", "w")
            for names, mask in (("ab", LOW), ("cd", HIGH)):
                lines += [f"and.b32 {name}, {of}, {mask:#x};" for name, of in zip(names, held, strict=True)]
            lines.append(mma(to, "a, b, c, d", f"{x[pair]}, {x[pair + 1]}", to if word % 2 or pair else "z, z, z, z"))
    for row in range(HALVES):
        for group, half in (("p", f"shl.b32 t, g{row}, 16;"), ("r", f"and.b32 t, g{row}, 0xffff0000;")):
            lines += [half, "mov.b32 s, t;"]
            for at in (2 * row, 2 * row + 1):
                lines.append(f"fma.rn.f32 ${at}, s, {group}{at}, ${at if group == 'r' else 4 + at};")
    return block(*lines)


def placed() -> str:
    """Store eight codes' numbers of x, in four registers as they stand, as pairs (v, v + 4), multiplied.

    Takes them, and where they go.
    """
    a, b, c, d = operands(4)
    lines = [".reg .b32 p<4>, e, o;", f"mov.b32 e, {EVEN:#x};", f"mov.b32 o, {ODD:#x};"]
    for v, (low, high, pick) in enumerate(((a, c, "0x5410"), (a, c, "0x7632"), (b, d, "0x5410"), (b, d, "0x7632"))):
        lines += [f"prmt.b32 p{v}, {low}, {high}, {pick};", f"mul.rn.bf16x2 p{v}, p{v}, {'eo'[v % 2]};"]
    return block(*lines, "st.shared.v4.b32 [$8], {p0, p1, p2, p3};")


def begun(behind: int) -> str:
    """Store what stands behind the sums at first. Takes r and q, each in bytes of a word.

    Args:
        behind: Where that is, in shared memory.
    """
    lines = [".reg .b32 b, r, q;", "mov.u32 b, global_smem;", "add.u32 r, b, $1;", "add.u32 q, b, $2;"]
    lines.append(f"st.shared.b32 [r+{behind + LARGEST}], 0;")
    return block(*lines, f"st.shared.b32 [q+{behind + SEEN}], 0;", "mov.b32 $0, 0;")


def odd(behind: int) -> str:
    """Return something but zero where a row of x has a sum that is no number, or none of some size."""
    lines = [".reg .b32 b, s<4>;", "mov.u32 b, global_smem;"]
    lines += [f"ld.shared.v4.b32 {{s0, s1, s2, s3}}, [b+{behind + SEEN}];"]
    lines += ["xor.b32 s0, s0, 0x01010101;", "xor.b32 s1, s1, 0x01010101;", "or.b32 s0, s0, s1;"]
    return block(*lines, "or.b32 s2, s2, s3;", "or.b32 $0, s0, s2;")


def needed(behind: int) -> str:
    """Return something but zero where a row's largest number is beyond what it may be; zeros and infinities are not."""
    least, most = (LEAST + 127) << 7, (MOST + 128) << 7
    lines = [".reg .pred p;", ".reg .b32 b, n, t, s<4>;", "mov.u32 b, global_smem;", "mov.b32 n, 0;"]
    for half in range(2):
        lines.append(f"ld.shared.v4.b32 {{s0, s1, s2, s3}}, [b+{behind + LARGEST + 16 * half}];")
        for at in range(4):
            for low, span in ((1, least - 1), (most, INFINITE - most)):
                lines += [
                    f"sub.u32 t, s{at}, {low};",
                    f"setp.lt.u32 p, t, {span};",
                    "selp.b32 t, 1, 0, p;",
                    "or.b32 n, n, t;",
                ]
    return block(*lines, "mov.b32 $0, n;")


def largest() -> str:
    """Note the largest of eight numbers of x, in four registers as they stand. Takes them, and where its row's goes."""
    lines = [".reg .b32 m, t, u;", "mov.b32 m, 0;"]
    for held in operands(4):
        lines += [f"and.b32 t, {held}, 0x7fff;", "max.u32 m, m, t;"]
        lines += [f"shr.u32 u, {held}, 16;", "and.b32 u, u, 0x7fff;", "max.u32 m, m, u;"]
    return block(*lines, "red.shared.max.u32 [$8], m;")


def placed_by_size() -> str:
    """Store eight codes' numbers of x as ``placed`` does, multiplied further by what their row's largest one asks for.

    Takes the numbers, where they go, and where the row's largest is; what its results are multiplied by is stored where
    ``BACK`` is.
    """
    a, b, c, d = operands(4)
    lines = [".reg .b32 p<4>, m, e, t, u, f, g, h;", "ld.shared.b32 m, [$12];"]
    lines.append(f"min.u32 m, m, {INFINITE - 1};")
    # The row's exponent, and how much it is beyond either end.
    lines += ["shr.u32 m, m, 7;", "sub.s32 m, m, 127;"]
    lines += [f"sub.s32 t, m, {MOST};", "max.s32 t, t, 0;", f"sub.s32 u, m, {LEAST};", "min.s32 u, u, 0;"]
    lines += ["add.s32 e, t, u;", "add.s32 t, e, 127;", "shl.b32 t, t, 23;", f"sub.u32 u, $12, {LARGEST};"]
    lines.append("st.shared.b32 [u], t;")
    # 2⁸⁰ and the rest may be beyond bfloat16: in two steps.
    lines += ["sub.s32 t, 80, e;", "shr.s32 u, t, 1;", "sub.s32 t, t, u;"]
    for name, exponent, by in (("f", "u", 127), ("g", "t", 127), ("h", "t", 123)):
        lines += [f"add.s32 {name}, {exponent}, {by};", f"mul.lo.u32 {name}, {name}, {0x10001 << 7};"]
    for v, (low, high, pick) in enumerate(((a, c, "0x5410"), (a, c, "0x7632"), (b, d, "0x5410"), (b, d, "0x7632"))):
        lines += [f"prmt.b32 p{v}, {low}, {high}, {pick};", f"mul.rn.bf16x2 p{v}, p{v}, f;"]
        lines.append(f"mul.rn.bf16x2 p{v}, p{v}, {'gh'[v % 2]};")
    return block(*lines, "st.shared.v4.b32 [$8], {p0, p1, p2, p3};")


def totals(words_apart: int) -> str:
    """Store the sums of x by the eight groups of four chunks, each in three bfloat16, which have its 24 bits.

    x is the left operand here, what meets 16 times codes in rows r + 8; the right one has ones in the column of the
    group. What it gives, of one half and of the other, is where the right operand of ``others`` has it: row r of x,
    groups 2 q and 2 q + 1. Tells of the row what ``SEEN`` holds. Takes where x is, where the sums go, r, and where the
    row's byte is.

    Args:
        words_apart: Bytes from one word of a lane to the next.
    """
    # Four sums, so that a product does not wait for the one before.
    lines = [".reg .pred p, s, n;", ".reg .b32 o, t, a<4>, y<4>;", ".reg .f32 c<16>, x0, x1, y, m;"]
    lines += [f"mov.f32 c{at}, 0f00000000;" for at in range(16)]
    for word in range(16):
        lines.append(f"ld.shared.v4.b32 {{a0, a1, a2, a3}}, [$1+{word * words_apart}];")
        if word % HALVES == 0:
            lines += [f"setp.ne.b32 p, $3, {word // HALVES};", f"selp.b32 o, 0, {ONES:#x}, p;"]
        to = ", ".join(f"c{word % 4 * 4 + at}" for at in range(4))
        lines.append(mma(to, "a0, a1, a2, a3", "o, o", to))
    for at in range(4):
        lines += [f"add.f32 c{at}, c{at}, c{4 + at};", f"add.f32 c{8 + at}, c{8 + at}, c{12 + at};"]
        lines.append(f"add.f32 c{at}, c{at}, c{8 + at};")
    lines += ["fma.rn.f32 x0, c2, 0f41800000, c0;", "fma.rn.f32 x1, c3, 0f41800000, c1;", "mov.b32 y3, 0;"]
    lines += ["abs.f32 y, x0;", "abs.f32 m, x1;", "max.NaN.f32 m, m, y;"]
    lines += [f"setp.geu.f32 s, m, 0f{ENOUGH:08x};", "setp.geu.f32 n, m, 0f7f800000;"]
    lines += ["@s st.shared.u8 [$4], 1;", "@n st.shared.u8 [$4+8], 1;"]
    for part in range(PARTS):
        lines.append(f"cvt.rn.bf16x2.f32 y{part}, x1, x0;")
        if part + 1 < PARTS:
            lines += [f"shl.b32 t, y{part}, 16;", "mov.b32 y, t;", "sub.f32 x0, x0, y;"]
            lines += [f"and.b32 t, y{part}, 0xffff0000;", "mov.b32 y, t;", "sub.f32 x1, x1, y;"]
    return block(*lines, "st.shared.v4.b32 [$2], {y0, y1, y2, y3};")


def others() -> str:
    """Add what is not of the codes, ``Σ bias · Σ x`` of four chunks, to a lane's sums.

    Takes the sums; biases of rows r and r + 8, of the groups of chunk q in a word; and where what ``totals`` stored is.
    """
    lines = [".reg .f32 c<4>;", ".reg .b32 z, y<4>;", "mov.b32 z, 0;", "ld.shared.v4.b32 {y0, y1, y2, y3}, [$16];"]
    # Two parts of the sums in one product, which has two places for a group.
    lines.append(mma("c0, c1, c2, c3", "$8, $12, $8, $12", "y0, y1", ", ".join(operands(4))))
    lines.append(mma("c0, c1, c2, c3", "$8, $12, z, z", "y2, z", "c0, c1, c2, c3"))
    return block(*lines, *(f"mov.f32 ${at}, c{at};" for at in range(4)))


def restored() -> str:
    """Take 2⁻⁵³ back from sums of products, add what is not of the codes, and multiply by what the row of x asks for.

    Takes sums of products, the others, and where what columns 2 q and 2 q + 1 are multiplied by is.
    """
    products, rest = operands(4), operands(8)
    lines = [".reg .f32 c, y<2>;", "ld.shared.v2.f32 {y0, y1}, [$12];"]
    for at in range(4):
        lines += [f"fma.rn.f32 c, {products[at]}, 0f{RESTORE:08x}, {rest[at]};", f"mul.f32 ${at}, c, y{at % 2};"]
    return block(*lines)
