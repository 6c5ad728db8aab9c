"""Blocks of PTX for ``resident``: words of codes to scaled weights in bfloat16, two in a register.

A block takes a word, which stands once for each of its codes, and the scale of its group and that times -128
(``third``), each twice in a register; it gives all of the word's weights, without an affine bias. A code under the
exponent of 128 (its upper four bits of eight under that of 2048) is a bfloat16; what it stands beside comes off before
anything is rounded, so that a weight is rounded once.
"""

from __future__ import annotations

TAKE = "lop3.b32 {to}, {source}, {mask:#x}, {under:#x}, 0xea;"
"""``(source & mask) | under``."""
MASK, LOW, HIGH = 0x000F000F, 0x43004300, 0x45004500
ONE, LESS_LOW, LESS_BOTH = 0x3F803F80, 0xC300C300, 0xC508C508
"""1, -128 and -2176 in bfloat16, twice."""
SIGN, FRACTION, BIAS = 0x80008000, 0x01C001C0, 0x7E807E80
"""Bits of e2m1 in bfloat16, and 2^126: e2m1's exponents count from 0."""
TINY = 0x00400040
"""2^-127, which is a denormal, twice."""


def _shifted(to: str, places: int, source: str) -> str:
    return f"shr.u32 {to}, {source}, {places};" if places else f"mov.b32 {to}, {source};"


def unpack(mode: str, bits: int) -> tuple[str, str]:
    """Return the block for a word of codes, and its constraints."""
    codes = 32 // bits
    pairs = codes // 2
    word, scale, third = (f"${pairs + at * codes}" for at in range(3))
    lines = [".reg .b32 t, u, o, m;"]
    if mode != "affine":
        lines.append(f"mov.b32 o, {BIAS:#x};")
    elif bits == 8:
        lines += [f"mov.b32 o, {ONE:#x};", f"mov.b32 m, {LESS_BOTH:#x};"]
    for pair in range(pairs):
        if mode != "affine":
            # From where the code's sign and its other bits stand to where bfloat16 has them.
            lines += [f"shl.b32 t, {word}, {12 - 4 * pair};" if pair < 3 else f"mov.b32 t, {word};"]
            lines.append(f"and.b32 t, t, {SIGN:#x};")
            by = 6 - 4 * pair
            lines.append(f"shl.b32 u, {word}, {by};" if by > 0 else f"shr.u32 u, {word}, {-by};")
            lines.append(f"lop3.b32 t, u, {FRACTION:#x}, t, 0xea;")
            lines += ["mul.rn.bf16x2 t, t, o;", f"mul.rn.bf16x2 ${pair}, t, {scale};"]
            continue
        lines += [_shifted("t", bits * pair, word), TAKE.format(to="t", source="t", mask=MASK, under=LOW)]
        if bits == 8:
            lines += [_shifted("u", 8 * pair + 4, word), TAKE.format(to="u", source="u", mask=MASK, under=HIGH)]
            lines += ["fma.rn.bf16x2 u, u, o, m;", "fma.rn.bf16x2 t, t, o, u;", f"mul.rn.bf16x2 ${pair}, t, {scale};"]
        else:
            lines.append(f"fma.rn.bf16x2 ${pair}, t, {scale}, {third};")
    # Early clobbers, as the word is read again.
    return "\n".join(("{", *lines, "}")), ",".join(["=&r"] * pairs + ["r"] * (3 * codes))


def third() -> str:
    """Return a scale times -128, twice in a register."""
    return f"{{ .reg .b32 c; mov.b32 c, {LESS_LOW:#x}; mul.rn.bf16x2 $0, $1, c; }}"


def pick(mode: str) -> str:
    """Take the number of one group out of a word of several, twice: ``$2`` says which bytes."""
    if mode == "affine":
        return "prmt.b32 $0, $1, $1, $2;"
    return (
        "{ .reg .b32 z; .reg .pred p; mov.b32 z, 0; prmt.b32 z, $1, z, $2; shl.b32 z, z, 7; setp.eq.u32 p, z, 0; "
        f"selp.b32 $0, {TINY:#x}, z, p; }}"
    )
