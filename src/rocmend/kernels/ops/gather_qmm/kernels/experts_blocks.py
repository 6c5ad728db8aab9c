"""Blocks of PTX for ``experts``: words of four bits to weights in bfloat16, multiplied by x that is in shared memory.

Bits 0 to 7 of a bfloat16 are ``k`` 2^-133 for every ``k`` of 0 to 255: denormals, then the first numbers that are none.
So a code, masked where it stands in a word, is a number already, and one that stands four bits higher is 16 times that.
One instruction makes weights of two codes, ``code * scale + bias`` rounded once; they are times 2^-23, which sums have
taken from them at the end. A scale must be below 2^17, or sums are no numbers.

A lane has words of rows ``r`` and ``r + 8`` of 16 and of quarter ``q``, as for ``warpgroups`` of quantized products;
x is ordered alike.
"""

from __future__ import annotations

CODES = 0x000F000F
SCALE, SCALE_16, DOWN, BACK = 0x76807680, 0x74807480, 0x34003400, "0f4B000000"
"""2^110, 2^106 and 2^-23 in bfloat16, twice, and 2^23."""
FOUR = 4
DESCRIPTOR = "0x40000040"
"""Upper half of what describes x to the unit: swizzled by 128 bytes, 1024 bytes from 8 rows to the next 8."""


def _named(first: int) -> list[str]:
    return [f"${first + at}" for at in range(FOUR)]


def _block(lines: list[str]) -> str:
    return "\n".join(("{", *lines, "}"))


def picked(register: int) -> tuple[str, str]:
    """Give scales of rows r and r + 8 and their biases, twice in a register: a lane's of one chunk.

    Takes them in words of two groups, of which the quarters of lanes have four each, the quarter whose lane has the
    chunk's, and which bytes of its word are a lane's.

    Args:
        register: Of the four words, the chunk's.
    """
    lines = []
    for at in range(FOUR):
        held, quarter, select = f"${FOUR + FOUR * at + register}", f"${5 * FOUR}", f"${6 * FOUR}"
        lines.append(f"shfl.sync.idx.b32 ${at}, {held}, {quarter}, 0x1c1f, 0xffffffff;")
        lines.append(f"prmt.b32 ${at}, ${at}, ${at}, {select};")
    return _block(lines), ",".join(["=&r"] * FOUR + ["r"] * (6 * FOUR))


def product(tiles: int, places: int) -> tuple[str, str]:
    """Return the block that adds 128 columns to a lane's sums, and its constraints.

    Gives sums of each tile of 8 rows of x; takes them, words of rows r and r + 8, what ``picked`` gives, and where x of
    these columns begins in units of 16 bytes.

    Args:
        tiles: Of x that are multiplied.
        places: Of tiles of x that there is room for.
    """
    sums = ", ".join(f"${at}" for at in range(FOUR * tiles))
    low, high, beside, where = (_named(2 * FOUR * tiles + FOUR * at) for at in range(4))
    lines = [".reg .b32 s<2>, h<2>, b<2>, t, u, c, p<16>, q<16>;", ".reg .b64 d, e;"]
    for row in range(2):
        for to, held, by in (("s", row, SCALE), ("h", row, SCALE_16), ("b", 2 + row, DOWN)):
            lines += [f"mov.b32 c, {by:#x};", f"mul.rn.bf16x2 {to}{row}, {beside[held]}, c;"]
    lines += [f"mov.b32 c, {DESCRIPTOR};", f"mov.b64 d, {{{where[0]}, c}};"]
    # While the unit multiplies the first half, the second is unpacked.
    for half, to in enumerate("pq"):
        for word in range(2):
            for row, words in enumerate((low, high)):
                own = words[2 * half + word]
                lines.append(f"shr.u32 u, {own}, 8;")
                for pair in range(4):
                    register_of = f"{to}{4 * (2 * word + pair // 2) + 2 * (pair % 2) + row}"
                    lines.append(f"and.b32 t, {'u' if pair >= 2 else own}, {CODES << 4 * (pair % 2):#x};")
                    lines.append(f"fma.rn.bf16x2 {register_of}, t, {'h' if pair % 2 else 's'}{row}, b{row};")
        lines.append("wgmma.fence.sync.aligned;")
        for step in range(4):
            left = ", ".join(f"{to}{4 * step + at}" for at in range(4))
            lines.append(f"add.u64 e, d, {half * places * 64 + 2 * step};")
            lines.append(
                f"wgmma.mma_async.sync.aligned.m64n{8 * tiles}k16.f32.bf16.bf16 {{{sums}}}, {{{left}}}, e, 1, 1, 1, 0;"
            )
        lines.append("wgmma.commit_group.sync.aligned;")
    lines.append("wgmma.wait_group.sync.aligned 0;")
    count = FOUR * tiles
    return _block(lines), ",".join(["=f"] * count + [str(at) for at in range(count)] + ["r"] * (4 * FOUR))


def load(*, behind: bool) -> tuple[str, str]:
    """Load four words: where, and whether; ``behind`` a number, 0, that is added to where."""
    lines = [".reg .pred p;", ".reg .b64 a;", "setp.ne.b32 p, $8, 0;"]
    lines += ["cvt.s64.s32 a, $12;", "add.s64 a, a, $4;"] if behind else ["mov.b64 a, $4;"]
    lines.append("@p ld.global.L1::no_allocate.L2::128B.v4.b32 {$0, $1, $2, $3}, [a];")
    return _block(lines), ",".join(["=r"] * FOUR + ["l"] * FOUR + ["r"] * (2 * FOUR if behind else FOUR))


def none_of() -> tuple[str, str]:
    """Give 0, which the compiler takes for what comes of four numbers and another: their bits in a mask, 0."""
    lines = [".reg .b32 t;", "lop3.b32 t, $4, $5, $6, 0x96;", "lop3.b32 t, t, $7, $8, 0x96;", "and.b32 $0, t, $12;"]
    lines += [f"mov.b32 ${at}, $0;" for at in range(1, FOUR)]
    return _block(lines), ",".join(["=&r"] * FOUR + ["r"] * (3 * FOUR))


def one(register: int) -> tuple[str, str]:
    """Load one of four words anew: the words, where, and whether."""
    lines = [".reg .pred p;", "setp.ne.b32 p, $12, 0;", f"@p ld.global.L1::no_allocate.b32 ${register}, [$8];"]
    kept = [str(at) for at in range(FOUR)]
    return _block(lines), ",".join(["=r"] * FOUR + kept + ["l"] * FOUR + ["r"] * FOUR)


def early(size: int) -> tuple[str, str]:
    """Have the second cache read so many bytes: where, and whether."""
    lines = [".reg .pred p;", "setp.ne.b32 p, $8, 0;", f"@p cp.async.bulk.prefetch.L2.global [$4], {size};"]
    lines += [f"mov.b32 ${at}, 0;" for at in range(FOUR)]
    return _block(lines), ",".join(["=&r"] * FOUR + ["l"] * FOUR + ["r"] * FOUR)


def listed(room: int, count: bool) -> tuple[str, str]:
    """Count a pair for its expert, and write its number behind others of one expert.

    Takes the pair's expert, or a negative number for none; the expert; the pair's number; where pairs of experts are
    counted; and where those of the expert are, behind whose number, 16 bytes on, is room for so many numbers.
    """
    lines = [
        ".reg .pred p, f;", ".reg .b32 t;", "mov.b32 $0, 0;",
        *(("setp.ge.s32 p, $1, 0;", "shl.b32 t, $1, 2;", "add.u32 t, t, $4;", "@p red.shared.add.u32 [t], 1;") * count),
        "setp.eq.b32 p, $1, $2;",
        "@p atom.shared.add.u32 t, [$5], 1;", f"setp.lt.and.u32 f, t, {room}, p;",
        "@f shl.b32 t, t, 2;", "@f add.u32 t, t, $5;", "@f st.shared.b32 [t+16], $3;",
    ]  # fmt: skip
    return _block(lines), "=&r,r,r,r,r,r"


def put() -> tuple[str, str]:
    """Store eight columns of x, as many as a word has codes: four words, and where their four pairs go."""
    lines = [".reg .b32 t;"]
    for pair, (one, other, bytes_) in enumerate(((4, 6, 0x5410), (4, 6, 0x7632), (5, 7, 0x5410), (5, 7, 0x7632))):
        lines += [f"prmt.b32 t, ${one}, ${other}, {bytes_:#x};", f"st.shared.b32 [${8 + pair}], t;"]
    lines += [f"mov.b32 ${at}, 0;" for at in range(FOUR)]
    return _block(lines), ",".join(["=&r"] * FOUR + ["r"] * (2 * FOUR))


def store() -> tuple[str, str]:
    """Store sums of rows r and r + 8, which are neighbours in the result, of two rows of x: where, and whether."""
    lines = [".reg .pred p;", ".reg .f32 a, b;", ".reg .b32 c;"]
    for at in range(2):
        lines += [
            f"setp.ne.b32 p, ${12 + at}, 0;", f"mul.f32 a, ${4 + at}, {BACK};", f"mul.f32 b, ${6 + at}, {BACK};",
            "cvt.rn.bf16x2.f32 c, b, a;", f"@p st.global.b32 [${8 + at}], c;",
        ]  # fmt: skip
    lines += [f"mov.b32 ${at}, 0;" for at in range(FOUR)]
    return _block(lines), ",".join(["=&r"] * FOUR + ["f"] * FOUR + ["l"] * FOUR + ["r"] * FOUR)


READ = "ld.shared.b32 $0, [$1];", "=r,r"
WRITE = "{ .reg .pred p; setp.ne.b32 p, $3, 0; mov.b32 $0, 0; @p st.shared.b32 [$1], $2; }", "=&r,r,r,r"
NOTHING = "mov.b32 $0, 0;", "=r"
"""Nothing that the compiler knows of: what it is added to is not computed long before it is used."""
VISIBLE = "{ fence.proxy.async.shared::cta; mov.b32 $0, 0; }", "=r"
"""What lanes wrote to shared memory is there for the unit behind the next barrier."""
BASE = "mov.u32 $0, global_smem;", "=r"
"""Where Triton has a program's shared memory."""
