"""Blocks of PTX that kernels share: what lanes do with their registers around the matrix unit's m16n8k16, in bfloat16.

Gluon says which lane holds what; between lanes only the matrix instruction moves anything. In its terms lane ``l`` is
in row ``r = l // 4`` and quarter ``q = l % 4``: it holds rows ``r`` and ``r + 8`` and, of each 16 terms of a sum, those
at ``2 q``, ``2 q + 1``, ``2 q + 8`` and ``2 q + 9`` of A and, for column ``r``, of B; of the result it holds columns
``2 q`` and ``2 q + 1`` of both rows. Which term is which code is free, as long as x has the same order.

A word holds codes 0 to 7 from its lowest bits on; under the exponent of 128, codes ``v`` and ``v + 4`` are a pair of
bfloat16 after a shift by ``4 v`` and one instruction. So x is in pairs likewise: ``pairs``.

Each block takes tensors of four registers a lane, and gives one of four: operands are numbered in that order, the four
results first.
"""

from __future__ import annotations

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}};"
ONES = 0x43004300
"""Twice 128 in bfloat16, whose last bits a code takes."""
CODES = 0x000F000F
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
