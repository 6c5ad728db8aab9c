"""Blocks of PTX for ``experts``: words of four bits to weights in bfloat16, multiplied by x that is in shared memory.

Bits 0 to 7 of a bfloat16 are ``k`` 2^-133 for every ``k`` of 0 to 255: denormals, then the first numbers that are none.
So a code, masked where it stands in a word, is a number already, and one that stands four bits higher is 16 times that.
One instruction makes weights of two codes, ``code * scale + bias`` rounded once; they are times 2^-23, which sums have
taken from them at the end. A scale must be below 2^17, or sums are no numbers.

The bits of e2m1, but for the sign, are a bfloat16's where its exponent ends and its fraction begins: what they stand
for times 2^-126, also the one denormal. The sign belongs seven bits higher. In two words signs take the place of a bit
of another code, each word what the other one lost; then a shift and a mask place two codes with their signs. A power of
two, and then their scale, are put on by a multiplication each, since one number has no room for both: weights are times
2^-5, and exact with every scale.

Columns are in an order in which a lane's words are what the unit takes of it, and of one group: of 256, lane q of four
has columns 64 q to 64 q + 63, 32 of them in each of two loads of 16 bytes. The unit's steps of 16 columns are pairs of
codes n and n + 4 of a word; rows of x are brought into that order where they lie in shared memory.
"""

from __future__ import annotations

from rocmend.kernels.backends.hopper.mma import block

CODES = 0x000F000F
SCALE, SCALE_16, DOWN, BACK = 0x76807680, 0x74807480, 0x34003400, "0f4B000000"
"""2^110, 2^106 and 2^-23 in bfloat16, twice, and 2^23."""
FOUR = 4
DESCRIPTOR = "0x40000040"
"""Upper half of what describes x to the unit: swizzled by 128 bytes, 1024 bytes from 8 rows to the next 8."""
E2M1_UP, E2M1_BACK = 0x7C007C00, "0f42000000"
"""2^121 in bfloat16, twice, and 2^5."""
TINY = 0x00400040
"""2^-127, which is a denormal, twice: the scale 0."""
PLACED = 0x81C081C0
"""Bits of e2m1 in bfloat16."""
SIGNS_LOW, SIGNS_HIGH = 0x22002200, 0x00220022
"""Where signs of the lower and of the upper two codes of 16 bits are put, in place of bits of the other two."""
PICK = "0xe4"
"""Bits of a first number where those of a third are, else of a second."""
AFFINE4, MXFP4 = "affine4", "mxfp4"
FORMS = {("affine", 4, 64): AFFINE4, ("mxfp4", 4, 32): MXFP4}
"""Names of formats."""
ALL = "0xffffffff"
AT_ONCE = ".L2::128B"
"""What the second cache reads at once of words."""


def _nothing() -> list[str]:
    return [f"mov.b32 ${at}, 0;" for at in range(FOUR)]


def _waited(at: str, turn: str) -> list[str]:
    """Wait until a barrier's phase is over, whose number is odd or even."""
    return ["W:", f"mbarrier.try_wait.parity.shared::cta.b64 r, [{at}], {turn};", "@r bra D;", "bra W;", "D:"]


def _loaded(form: str, own: str, beside: str) -> list[str]:
    """Load a lane's words of the first half of a slot's columns, and both rows' scales and biases.

    Of mxfp4 both rows' scales of either half.
    """
    lines = []
    for line in range(2):
        held = ", ".join(f"w{line * 4 + at}" for at in range(4))
        lines.append(f"ld.shared.v4.b32 {{{held}}}, [{own}+{line * 128}];")
    if form == MXFP4:
        return lines + [f"ld.shared.u8 k{kind}, [{beside}+{kind // 2 + 128 * (kind % 2)}];" for kind in range(4)]
    for kind in range(4):
        lines += [f"ld.shared.u16 l, [{beside}+{16 * kind}];", f"mov.b32 k{kind}, {{l, l}};"]
    return lines


def _scaled(form: str) -> list[str]:
    """Make what words are multiplied with out of what was loaded of scales, and add what there is of biases."""
    lines = []
    if form == MXFP4:
        for kind in range(4):
            lines += [f"mul.lo.u32 c, k{kind}, 0x00800080;", f"max.u32 s{kind}, c, {TINY:#x};"]
        return lines
    for line in range(2):
        for name, held, by in (("s", line, SCALE), ("h", line, SCALE_16), ("b", 2 + line, DOWN)):
            lines += [f"mov.b32 c, {by:#x};", f"mul.rn.bf16x2 {name}{line}, k{held}, c;"]
    return lines


def _unpacked(form: str, held: str, line: int, half: int, to: list[str]) -> list[str]:
    """Make four pairs of weights of a word."""
    lines = []
    if form == MXFP4:
        lines = [f"shf.l.wrap.b32 u, {held}, {held}, 6;"]
        for name, signs in (("c", SIGNS_LOW), ("o", SIGNS_HIGH)):
            lines.append(f"lop3.b32 {name}, u, {held}, {signs:#x}, {PICK};")
        turns = ("shl.b32 t, c, 6;", "shl.b32 t, c, 2;", "shf.r.wrap.b32 t, o, o, 2;", "shf.r.wrap.b32 t, o, o, 6;")
        for turn, register in zip(turns, to, strict=True):
            lines += [turn, f"and.b32 t, t, {PLACED:#x};", f"mov.b32 u, {E2M1_UP:#x};", "mul.rn.bf16x2 t, t, u;"]
            lines.append(f"mul.rn.bf16x2 {register}, t, s{2 * half + line};")
        return lines
    lines.append(f"shr.u32 u, {held}, 8;")
    for pair, register in enumerate(to):
        lines.append(f"and.b32 t, {'u' if pair >= 2 else held}, {CODES << 4 * (pair % 2):#x};")
        lines.append(f"fma.rn.bf16x2 {register}, t, {'h' if pair % 2 else 's'}{line}, b{line};")
    return lines


def take(form: str) -> tuple[str, str]:
    """Load what a first stage takes of a slot: where words are, and scales, the slot's barrier, and its turn."""
    held = [*(f"w{at}" for at in range(8)), *(f"k{at}" for at in range(4))]
    own, beside, filled, turn = (f"${12 + FOUR * at}" for at in range(4))
    lines = [".reg .pred r;", ".reg .b32 w<8>, k<4>;", ".reg .b16 l;", *_waited(filled, turn)]
    lines += _loaded(form, own, beside)
    lines += [f"mov.b32 ${at}, {name};" for at, name in enumerate(held)]
    return block(*lines), ",".join(["=&r"] * 12 + ["r"] * (4 * FOUR))


def stage(form: str, tiles: int, slots: int) -> tuple[str, str]:
    """Return the block that adds 256 columns to a lane's sums, and its constraints.

    While the unit multiplies 64 columns, the next are unpacked, those of the slot before too: products still run when
    it ends. Gives sums of each tile of 8 rows of x, and what it loaded of the next slot (``take``). Takes both; where
    words are; where x of these columns begins in units of 16 bytes; the slot's barrier, behind which by ``slots`` is
    that of free ones; whether the lane is its wavefront's first; and of the next slot where words and scales are, its
    barrier, its turn, and whether there is one.

    Args:
        form: Of the weights, one of FORMS.
        tiles: Of x.
        slots: Of the ring.
    """
    count = FOUR * tiles
    sums = ", ".join(f"${at}" for at in range(count))
    names = {f"w{at}": f"${count + at}" for at in range(8)} | {f"k{at}": f"${count + 8 + at}" for at in range(4)}
    own, where, filled, lead, *others, another = (f"${2 * (count + 12) + FOUR * at}" for at in range(9))
    lines = [
        ".reg .pred f, r, n;",
        ".reg .b32 s<4>, h<2>, b<2>, k<4>, w<16>, t, u, c, o, p<16>, q<16>;",
        ".reg .b64 d, e;",
        ".reg .b16 l;",
        *(f"mov.b32 {name}, {place};" for name, place in names.items()),
        f"setp.ne.b32 f, {lead}, 0;",
        f"setp.eq.b32 n, {another}, 0;",
        f"xor.b32 o, {own}, 16;",
    ]
    for line in range(2):
        held = ", ".join(f"w{(2 + line) * 4 + at}" for at in range(4))
        lines.append(f"ld.shared.v4.b32 {{{held}}}, [o+{line * 128}];")
    lines += [f"mov.b32 c, {DESCRIPTOR};", f"mov.b64 d, {{{where}, c}};"]
    lines += _scaled(form)
    for group in range(4):
        if group == 2:
            lines += [
                f"bar.warp.sync {ALL};",
                f"@f mbarrier.arrive.shared::cta.b64 _, [{filled}+{8 * slots}];",
                "@n bra E;",
                *_waited(*others[2:]),
                *_loaded(form, *others[:2]),
                "E:",
            ]
        register = "pq"[group % 2]
        lines.append("wgmma.wait_group.sync.aligned 1;")
        for word in range(2):
            for line in range(2):
                # Words of the first half are loaded again while those of the second are multiplied.
                held = f"w{(group // 2 * 2 + line) * 4 + 2 * (group % 2) + word}"
                to = [f"{register}{4 * (2 * word + pair // 2) + 2 * (pair % 2) + line}" for pair in range(4)]
                lines += _unpacked(form, held, line, group // 2, to)
        lines.append("wgmma.fence.sync.aligned;")
        for step in range(4):
            left = ", ".join(f"{register}{4 * step + at}" for at in range(4))
            lines.append(f"add.u64 e, d, {group * tiles * 64 + 2 * step};")
            lines.append(
                f"wgmma.mma_async.sync.aligned.m64n{8 * tiles}k16.f32.bf16.bf16 {{{sums}}}, {{{left}}}, e, 1, 1, 1, 0;"
            )
        lines.append("wgmma.commit_group.sync.aligned;")
    lines += [f"mov.b32 {place}, {name};" for name, place in names.items()]
    return block(*lines), ",".join(
        ["=f"] * count + ["=r"] * 12 + [str(at) for at in range(count + 12)] + ["r"] * (9 * FOUR)
    )


def wait() -> tuple[str, str]:
    """Wait at a barrier: its address, and the lowest bit of its turn."""
    return block(".reg .pred r;", *_waited("$1", "$2"), "mov.b32 $0, 0;"), "=r,r,r"


def begin(arrivals: int) -> tuple[str, str]:
    """Make a barrier of so many arrivals: where, and whether."""
    lines = [".reg .pred f;", "setp.ne.b32 f, $2, 0;", f"@f mbarrier.init.shared::cta.b64 [$1], {arrivals};"]
    return block(*lines, "mov.b32 $0, 0;"), "=&r,r,r"


def arrive() -> tuple[str, str]:
    """Arrive at a barrier with what a wavefront did before: where, and whether it is its first lane."""
    lines = [".reg .pred f;", f"bar.warp.sync {ALL};", "setp.ne.b32 f, $2, 0;"]
    return block(*lines, "@f mbarrier.arrive.shared::cta.b64 _, [$1];", "mov.b32 $0, 0;"), "=&r,r,r"


def copy_words(row: int) -> tuple[str, str]:
    """Copy 128 bytes of each of 16 rows of words, a lane 16 of every fourth: where to, and from where."""
    copy = f"cp.async.cg.shared.global{AT_ONCE}"
    lines = [f"{copy} [$4+{at * 512}], [$8+{at * FOUR * row}], 16;" for at in range(FOUR)]
    return block(*lines, *_nothing()), ",".join(["=&r"] * FOUR + ["r"] * FOUR + ["l"] * FOUR)


def copy_scales() -> tuple[str, str]:
    """Copy 16 bytes: where to, and from where."""
    lines = ["cp.async.cg.shared.global [$4], [$8], 16;", *_nothing()]
    return block(*lines), ",".join(["=&r"] * FOUR + ["r"] * FOUR + ["l"] * FOUR)


def copy_x() -> tuple[str, str]:
    """Copy four times 16 bytes, 64 columns apart, of a row of x.

    Takes where the row's offset is, below 0 for no row; where to, four places; and from where.
    """
    lines = [".reg .pred f;", ".reg .b32 o;", ".reg .b64 a;", "ld.shared.b32 o, [$4];"]
    lines += ["setp.ge.s32 f, o, 0;", "cvt.s64.s32 a, o;", "add.s64 a, a, $12;"]
    lines += [f"@f cp.async.cg.shared.global [${8 + at}], [a+{at * 128}], 16;" for at in range(FOUR)]
    return block(*lines, *_nothing()), ",".join(["=&r"] * FOUR + ["r"] * (2 * FOUR) + ["l"] * FOUR)


def turn_x() -> tuple[str, str]:
    """Bring what a lane's ``copy_x`` copied into order where it lies: four places, and whether.

    Columns n and n + 4 of eight become neighbours, and behind them the same columns of the next 64.
    """
    lines = [".reg .pred f;", ".reg .b32 t<4>, w<16>;", "setp.ne.b32 f, $8, 0;"]
    for at in range(FOUR):
        held = ", ".join(f"w{4 * at + word}" for word in range(FOUR))
        lines.append(f"@f ld.shared.v4.b32 {{{held}}}, [${4 + at}];")
    for at in range(FOUR):
        bytes_ = "0x7632" if at % 2 else "0x5410"
        lines += [f"prmt.b32 t{q}, w{4 * q + at // 2}, w{4 * q + at // 2 + 2}, {bytes_};" for q in range(FOUR)]
        lines.append(f"@f st.shared.v4.b32 [${4 + at}], {{t0, t1, t2, t3}};")
    return block(*lines, *_nothing()), ",".join(["=&r"] * FOUR + ["r"] * (2 * FOUR))


TENSORS = 4
"""Tensors of four experts' numbers of a lane, of as many pairs."""


def _numbers() -> list[str]:
    return [f"${FOUR + at}" for at in range(TENSORS * FOUR)]


def listed(room: int, span: int) -> tuple[str, str]:
    """Write the numbers of an expert's pairs behind others.

    Takes pairs' experts, negative numbers for none; the first pair's number, ``span`` before the second tensor's; the
    expert; and where its pairs are counted, behind which, 16 bytes on, is room for so many numbers.
    """
    first, expert, there = (f"${FOUR + FOUR * (TENSORS + at)}" for at in range(3))
    lines = [".reg .pred f, p<16>;", ".reg .b32 a, c, t, u;", "mov.b32 c, 0;"]
    for at, number in enumerate(_numbers()):
        lines += [f"setp.eq.s32 p{at}, {number}, {expert};", f"@p{at} add.s32 c, c, 1;"]
    # One exchange for all of a lane's.
    lines += ["setp.ne.s32 f, c, 0;", f"@f atom.shared.add.u32 a, [{there}], c;"]
    for at in range(TENSORS * FOUR):
        lines += [
            f"setp.lt.and.u32 f, a, {room}, p{at};", f"@f mad.lo.u32 t, a, 4, {there};",
            f"@f add.u32 u, {first}, {at // FOUR * span + at % FOUR};", "@f st.shared.b32 [t+16], u;",
            f"@p{at} add.u32 a, a, 1;",
        ]  # fmt: skip
    return block(*lines, *_nothing()), ",".join(["=&r"] * FOUR + ["r"] * (FOUR * (TENSORS + 3)))


def counted() -> tuple[str, str]:
    """Count pairs by expert: their experts, negative numbers for none, and where they are counted."""
    lines = [".reg .pred f;", ".reg .b32 t;"]
    for number in _numbers():
        lines += [
            f"setp.ge.s32 f, {number}, 0;", f"@f mad.lo.u32 t, {number}, 4, ${FOUR + FOUR * TENSORS};",
            "@f red.shared.add.u32 [t], 1;",
        ]  # fmt: skip
    return block(*lines, *_nothing()), ",".join(["=&r"] * FOUR + ["r"] * (FOUR * (TENSORS + 1)))


def store(form: str) -> tuple[str, str]:
    """Store sums of rows r and r + 8, which are neighbours in the result, of two rows of x: where, and whether."""
    lines = [".reg .pred p;", ".reg .f32 a, b;", ".reg .b32 c;"]
    back = E2M1_BACK if form == MXFP4 else BACK
    for at in range(2):
        lines += [
            f"setp.ne.b32 p, ${12 + at}, 0;", f"mul.f32 a, ${4 + at}, {back};", f"mul.f32 b, ${6 + at}, {back};",
            "cvt.rn.bf16x2.f32 c, b, a;", f"@p st.global.b32 [${8 + at}], c;",
        ]  # fmt: skip
    return block(*lines, *_nothing()), ",".join(["=&r"] * FOUR + ["f"] * FOUR + ["l"] * FOUR + ["r"] * FOUR)


READ = "ld.shared.b32 $0, [$1];", "=r,r"
WRITE = "{ .reg .pred p; setp.ne.b32 p, $3, 0; mov.b32 $0, 0; @p st.shared.b32 [$1], $2; }", "=&r,r,r,r"
NOTHING = "mov.b32 $0, 0;", "=r"
"""Nothing that the compiler knows of: what it is added to is not computed long before it is used."""
COPIED = "{ cp.async.mbarrier.arrive.noinc.shared::cta.b64 [$1]; mov.b32 $0, 0; }", "=&r,r"
"""A lane arrives at a barrier once its copies are there."""
ARRIVED = "{ cp.async.wait_all; mov.b32 $0, 0; }", "=r"
"""A lane waits for its copies."""
MULTIPLIED = "{ wgmma.wait_group.sync.aligned 0; mov.b32 $0, 0; }", "=r"
VISIBLE = "{ fence.proxy.async.shared::cta; mov.b32 $0, 0; }", "=r"
"""What lanes wrote to shared memory is there for the unit behind the next barrier."""
BASE = "mov.u32 $0, global_smem;", "=r"
"""Where Triton has a program's shared memory."""
