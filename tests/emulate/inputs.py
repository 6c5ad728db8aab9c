"""Records for the lanes: special values of each type, values near each other, and random bits."""

from __future__ import annotations

import random
import zlib
from functools import cache

import numpy as np
from tests.emulate.bench import WORDS, Words
from tests.emulate.evaluate import float_of
from tests.emulate.exact import Format
from tests.emulate.stated import Statement, width_of

__all__ = ["records", "value"]

LANES = 64


def _special(form: Format) -> list[int]:
    one = form.bias << form.mantissa
    infinity = form.infinity
    least = [0, 1, (1 << form.mantissa) - 1, 1 << form.mantissa, (1 << form.mantissa) + 1]
    middle = [
        one,
        one + 1,
        one - 1,
        one + (1 << form.mantissa),
        one - (1 << form.mantissa),
        one + (3 << form.mantissa - 1),
    ]
    top = [infinity - 1, infinity, infinity | 1 << form.mantissa - 1, infinity | 5, one + (12 << form.mantissa)]
    both = [*least, *middle, *top]
    return [*both, *(bits | form.sign for bits in both)]


SINGLE = [
    0x47800000, 0x477FE000, 0x477FF000, 0x38800000, 0x387FFFFF, 0x33000000, 0x33000001, 0x4F000000, 0x4EFFFFFF,
    0x4F800000, 0xCF000000, 0x43700000, 0x43780000, 0x43E00000, 0x43E80000, 0x47600000, 0x47700000, 0x3EFFFFFF,
    0x3F000000, 0xBF000001, 0x437F8000,
]  # fmt: skip
"""Bounds of other formats and of integers, in single precision."""


def value(kind: str, pick: random.Random) -> int:
    base = kind.removeprefix("pk").removeprefix("r")
    width = 32 if kind in {"byte8", "half16"} else width_of(kind if kind.endswith("b32") else base)
    if kind == "perm32":
        return sum(pick.randrange(15) << at for at in (0, 8, 16, 24))
    if kind.startswith("pk") and not kind.endswith("b32"):
        return value(base, pick) | value(base, pick) << width
    if kind in {"dot32", "mix"} and pick.random() < 0.7:
        return pick.getrandbits(32) & 0xBFFFBFFF | 0x30003000
    form = float_of(kind)
    choice = pick.random()
    if form is not None:
        if choice < 0.4:
            return pick.choice(_special(form) + (SINGLE if form.bits == 32 else []))
        if choice < 0.7:  # near one another, so that sums cancel and products stay finite
            field = form.bias + pick.randrange(-6, 7)
            return pick.getrandbits(1) << form.bits - 1 | field << form.mantissa | pick.getrandbits(form.mantissa)
        return pick.getrandbits(form.bits)
    top = 1 << width - 1
    if choice < 0.3:
        return pick.choice(
            [
                0,
                1,
                2,
                top,
                top - 1,
                top + 1,
                2 * top - 1,
                2 * top - 2,
                0xFF % (2 * top),
                0x7F,
                0x80,
                0x7FFF % (2 * top),
                0x8000 % (2 * top),
                0xFFFF % (2 * top),
            ]
        )
    if choice < 0.6:
        return pick.randrange(0, 72) & 2 * top - 1
    return pick.getrandbits(width)


@cache
def records(statement: Statement) -> Words:
    """Return records for an instruction: operands in words 0, 2 and 4 and the next, the old result in 8 and 9."""
    pick = random.Random(zlib.crc32(statement.name.encode()))  # noqa: S311  test data
    made = np.zeros((LANES, WORDS), np.uint32)
    for lane in range(LANES):
        for word in range(WORDS):
            made[lane, word] = pick.getrandbits(32)
        for at, kind in enumerate(statement.operands):
            if kind == "m":
                continue
            bits = value(kind, pick)
            if width_of(kind) == 16 and kind != "half16":
                bits |= value(kind, pick) << 16
            made[lane, 2 * at] = bits & 0xFFFFFFFF
            if bits >> 32 or width_of(kind) == 64:
                made[lane, 2 * at + 1] = bits >> 32
        if statement.reads:
            bits = value(statement.result, pick)
            made[lane, 8], made[lane, 9] = bits & 0xFFFFFFFF, bits >> 32
    return made
