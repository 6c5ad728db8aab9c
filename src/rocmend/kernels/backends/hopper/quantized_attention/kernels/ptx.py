"""Blocks of PTX for ``streams``: what lanes do with their registers around the matrix unit's m16n8k16.

Gluon says which lane holds what; between lanes only the matrix unit's instructions move anything. Lane ``l`` is in
row ``r = l // 4`` and quarter ``t = l % 4``: of A it holds rows ``r`` and ``r + 8`` and, of 16 terms of a sum, those
at ``2 t``, ``2 t + 1``, ``2 t + 8`` and ``2 t + 9``; of B the same terms of column ``r``; of the result columns
``2 t`` and ``2 t + 1`` of both rows. Columns are rows of the attention, eight of them.

*Scores*: rows of A are keys, terms are the codes of a group, in the order in which a lane finds them in its words.
*Values*: rows of A are columns of the values, terms are keys. Words of two keys are put together half by half, so
that the same code of both is a pair. Weights of keys ``r`` and columns ``2 t``, ``2 t + 1`` become those of B by
the transposition that the matrix unit has for a tile of 8 by 8.

A pair of nibbles becomes two numbers of a half type in place, by a shift and one instruction of mask and or:
``16 + n``, or ``16 · (16 + n)`` for the upper nibble of 8 bits. ``offset`` is what is too much then.

Blocks take tensors of four registers a lane and give one or more of four: operands are numbered in that order, results
first. Registers of a result stand for (row half, column), those of weights and biases of two groups for (group, half or
column).
"""

from __future__ import annotations

from rocmend.kernels.backends.hopper.mma import TAKE, block, operands

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.{t}.{t}.f32 {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}};"
LEFT = {"bf16": 3, "f16": 6}
"""Where the lowest nibble goes: the upper bits of the mantissa."""
ONES = {"bf16": 0x41804180, "f16": 0x4C004C00}
"""Twice 16."""
STEP = {"bf16": 0x02000200, "f16": 0x10001000}
"""What makes 256 of it."""
UNIT = {"bf16": 0x3F803F80, "f16": 0x3C003C00}
OFFSET = {"bf16": {4: 0xC180C180, 8: 0xC388C388}, "f16": {4: 0xCC00CC00, 8: 0xDC40DC40}}
"""Twice what a code is too great by, negative: 16, or 272."""


def offset(bits: int) -> float:
    """Return what is added to each code."""
    return 16.0 if bits == 4 else 272.0


def _registers(tensor: int) -> list[str]:
    return operands(4 * tensor)


def _mma(kind: str, d: str, a: str, b: str, c: str) -> str:
    return MMA.format(t=kind, d=d, a=a, b=b, c=c)


def _nibbles(to: str, word: str, which: int, kind: str, ones: str) -> list[str]:
    """Nibble ``which`` of both halves of a word as two numbers."""
    by = LEFT[kind] - 4 * which
    mask = 0x000F000F << LEFT[kind]
    move = f"shl.b32 u, {word}, {by};" if by > 0 else f"shr.u32 u, {word}, {-by};"
    return [move, f"lop3.b32 {to}, u, {mask:#010x}, {ones}, {TAKE:#04x};"]


def _operand(words: tuple[str, str, str, str], places: tuple[int, int, int, int], kind: str, ones: str) -> list[str]:
    lines = []
    for register, word, place in zip("abcd", words, places, strict=True):
        lines += _nibbles(register, word, place, kind, ones)
    return lines


def _start(kind: str, bits: int) -> list[str]:
    lines = [".reg .b32 a, b, c, d, u, x, y, o, p;", f"mov.b32 o, {ONES[kind]:#010x};"]
    return [*lines, f"mov.b32 p, {ONES[kind] + STEP[kind]:#010x};"] if bits == 8 else lines


def scores(kind: str, bits: int) -> str:
    """Add up (offset + code) · q of a group, for 16 keys and 8 rows.

    Takes the sums so far; a lane's words, of 4 bits two of key r and two of key r + 8, of 8 bits four and four; and two
    tensors of q as ``element`` orders it.
    """
    sums = ", ".join(_registers(0))
    lines = _start(kind, bits)
    start = ", ".join(_registers(1))
    if bits == 4:
        words, q = _registers(2), [*_registers(3), *_registers(4)]
        for step in range(4):
            low, high = words[step // 2], words[2 + step // 2]
            first = 2 * (step % 2)
            lines += _operand((low, high, low, high), (first, first, first + 1, first + 1), kind, "o")
            lines.append(_mma(kind, sums, "a, b, c, d", f"{q[2 * step]}, {q[2 * step + 1]}", sums if step else start))
        return block(*lines)
    lows, highs, q = _registers(2), _registers(3), [*_registers(4), *_registers(5)]
    for step in range(8):
        low, high, upper = lows[step // 2], highs[step // 2], step % 2
        lines += _operand((low, high, low, high), (upper, upper, 2 + upper, 2 + upper), kind, "op"[upper])
        b = f"{q[step // 2 * 2]}, {q[step // 2 * 2 + 1]}"
        lines.append(_mma(kind, sums, "a, b, c, d", b, sums if step else start))
    return block(*lines)


def element(bits: int, quarter: int, register: int, half: int) -> int:
    """Return which code of a group stands in a half of a lane's register of q, of eight registers."""
    step, term = divmod(register, 2)
    if bits == 4:
        return 8 * (2 * quarter + step // 2) + 2 * (step % 2) + term + 4 * half
    return 4 * (4 * quarter + step) + term + 2 * half


def total(kind: str) -> str:
    """Add up q of a group for each row; takes the two tensors of q."""
    q = [*_registers(1), *_registers(2)]
    sums = ", ".join(_registers(0))
    lines = [".reg .b32 o;", ".reg .f32 z;", f"mov.b32 o, {UNIT[kind]:#010x};", "mov.f32 z, 0f00000000;"]
    for step in range(4):
        b = f"{q[2 * step]}, {q[2 * step + 1]}"
        lines.append(_mma(kind, sums, "o, o, o, o", b, sums if step else "z, z, z, z"))
    return block(*lines)


def _wide(to: str, word: str, half: int, kind: str) -> list[str]:
    """One half of a word in fp32."""
    if kind == "f16":
        picked = "{v, w}, " + word
        return [f"mov.b32 {picked};", f"cvt.f32.f16 {to}, {'vw'[half]};"]
    move = f"and.b32 u, {word}, 0xffff0000;" if half else f"shl.b32 u, {word}, 16;"
    return [move, f"mov.b32 {to}, u;"]


def _affine(kind: str) -> list[str]:
    return [".reg .b32 u;", ".reg .f32 s, e, g;", *([".reg .b16 v, w;"] if kind == "f16" else [])]


def _word(step: int, half: int, group: int, groups: int) -> int:
    """Which of a lane's four words has the scale of key (step, half) and a group."""
    return 2 * step + half if groups == 2 else 2 * half + group // 2


def scaled(kind: str, groups: int, step: int) -> str:
    """Make scores of sums: ``Σ_g scale_g · sum_g + bias_g · total_g``.

    Takes scales, biases, the sums of each group, and the totals of each group.
    """
    lines = _affine(kind)
    scales, biases = _registers(1), _registers(2)
    for half in range(2):
        for group in range(groups):
            at = _word(step, half, group, groups)
            lines += _wide("s", scales[at], group % 2, kind) + _wide("e", biases[at], group % 2, kind)
            for column in range(2):
                to, by = f"${2 * half + column}", 2 * half + column
                of, whole = _registers(3 + group)[by], _registers(3 + groups + group)[by]
                lines.append(f"fma.rn.f32 {to}, s, {of}, {to};" if group else f"mul.f32 {to}, s, {of};")
                lines.append(f"fma.rn.f32 {to}, e, {whole}, {to};")
    return block(*lines)


def weighed(kind: str, groups: int, step: int, pair: int) -> str:
    """Multiply weights by the scales of two groups, and give them as B has them.

    Takes weights and scales.
    """
    lines = [*_affine(kind), ".reg .b32 x;"]
    weights, scales = _registers(1), _registers(2)
    for group in range(2):
        for half in range(2):
            at = _word(step, half, 2 * pair + group, groups)
            lines += _wide("s", scales[at], group, kind)
            lines += [f"mul.f32 e, s, {weights[2 * half]};", f"mul.f32 g, s, {weights[2 * half + 1]};"]
            lines += [f"cvt.rn.{kind}x2.f32 x, g, e;"]
            lines.append(f"movmatrix.sync.aligned.m8n8.trans.b16 ${2 * group + half}, x;")
    return block(*lines)


def biased(kind: str, groups: int, step: int, pair: int) -> str:
    """Add up weights times the biases of two groups, by (group, column).

    Takes the sums so far, weights and biases.
    """
    lines = _affine(kind)
    before, weights, biases = _registers(1), _registers(2), _registers(3)
    for group in range(2):
        for half in range(2):
            at = _word(step, half, 2 * pair + group, groups)
            lines += _wide("s", biases[at], group, kind)
            for column in range(2):
                to = f"${2 * group + column}"
                more = to if half else before[2 * group + column]
                lines.append(f"fma.rn.f32 {to}, s, {weights[2 * half + column]}, {more};")
    return block(*lines)


def offsets(kind: str, bits: int) -> str:
    """Add up what codes of two groups are too great by, times weights, by (group, column).

    Takes the sums so far, and weights as ``weighed`` gives them.
    """
    before, weights = _registers(1), _registers(2)
    lines = [".reg .b32 o;", ".reg .f32 m, n;", f"mov.b32 o, {OFFSET[kind][bits]:#010x};"]
    for group in range(2):
        low, high = before[2 * group : 2 * group + 2]
        to = f"${2 * group}, ${2 * group + 1}, m, n"
        b = f"{weights[2 * group]}, {weights[2 * group + 1]}"
        lines.append(_mma(kind, to, "o, o, o, o", b, f"{low}, {high}, {low}, {high}"))
    return block(*lines)


def values(kind: str, bits: int, tile: int, group: int) -> str:
    """Add up (offset + code) · weight over 16 keys, for 16 columns of a group, ``8 r + 2 tile`` and the one behind it.

    Takes the sums so far; words, of 4 bits one of each key, of 8 bits two of each of the first two, then of the others;
    and weights of two groups, of which ``group`` says the one.
    """
    sums, start = ", ".join(_registers(0)), ", ".join(_registers(1))
    lines = _start(kind, bits)
    if bits == 4:
        words, weights = _registers(2), _registers(3)
        pick = "0x7632" if tile // 2 else "0x5410"
        lines += [f"prmt.b32 x, {words[0]}, {words[1]}, {pick};", f"prmt.b32 y, {words[2]}, {words[3]}, {pick};"]
        first = 2 * (tile % 2)
        lines += _operand(("x", "x", "y", "y"), (first, first + 1, first, first + 1), kind, "o")
        lines.append(_mma(kind, sums, "a, b, c, d", f"{weights[2 * group]}, {weights[2 * group + 1]}", start))
        return block(*lines)
    one, other, weights = _registers(2), _registers(3), _registers(4)
    word, pick = tile // 2, "0x7632" if tile % 2 else "0x5410"
    lines.append(f"prmt.b32 x, {one[word]}, {one[2 + word]}, {pick};")
    lines.append(f"prmt.b32 y, {other[word]}, {other[2 + word]}, {pick};")
    for upper in range(2):
        lines += _operand(("x", "x", "y", "y"), (upper, 2 + upper, upper, 2 + upper), kind, "op"[upper])
        b = f"{weights[2 * group]}, {weights[2 * group + 1]}"
        lines.append(_mma(kind, sums, "a, b, c, d", b, sums if upper else start))
    return block(*lines)


def highest() -> str:
    """Return the greatest of each column, over halves and rows of lanes, in both halves."""
    lines = [".reg .f32 t;", "max.f32 $0, $4, $6;", "max.f32 $1, $5, $7;"]
    for by in (4, 8, 16):
        for to in ("$0", "$1"):
            lines += [f"shfl.sync.bfly.b32 t, {to}, {by}, 0x1f, 0xffffffff;", f"max.f32 {to}, {to}, t;"]
    return block(*lines, "mov.f32 $2, $0;", "mov.f32 $3, $1;")


def halves() -> str:
    """Add up both halves of each column, and give the sum in both."""
    return block("add.f32 $0, $4, $6;", "add.f32 $1, $5, $7;", "mov.f32 $2, $0;", "mov.f32 $3, $1;")


def spread(group: int) -> str:
    """Give what stands by (group, column) of one group by (half, column)."""
    low, high = f"${4 + 2 * group}", f"${5 + 2 * group}"
    return block(*[f"mov.f32 ${to}, {of};" for to, of in enumerate((low, high, low, high))])


def texts() -> dict[str, str]:
    """Return every block, by name and what it was made for: ``scores-bf16-4``."""
    found = {"highest": highest(), "halves": halves(), "spread-0": spread(0), "spread-1": spread(1)}
    for kind in ONES:
        found[f"total-{kind}"] = total(kind)
        for bits in (4, 8):
            found[f"scores-{kind}-{bits}"] = scores(kind, bits)
            found[f"offsets-{kind}-{bits}"] = offsets(kind, bits)
            for tile in range(4):
                for group in range(2):
                    found[f"values-{kind}-{bits}-{tile}-{group}"] = values(kind, bits, tile, group)
        for groups in (2, 4):
            for step in range(4 // groups):
                found[f"scaled-{kind}-{groups}-{step}"] = scaled(kind, groups, step)
                for pair in range(groups // 2):
                    found[f"weighed-{kind}-{groups}-{step}-{pair}"] = weighed(kind, groups, step, pair)
                    found[f"biased-{kind}-{groups}-{step}-{pair}"] = biased(kind, groups, step, pair)
    return found
