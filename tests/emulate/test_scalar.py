"""Every scalar instruction of every generation, alone, against its statement."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("rocm")

from tests.emulate.bench import TARGETS, WORDS, Case, Tried, Words, execute, lanes_of, tried
from tests.emulate.evaluate import same
from tests.emulate.exact import bits_of
from tests.emulate.inputs import value
from tests.emulate.stated import FORMATS, Statement, loaded, width_of
from tests.emulate.stated_scalar import SCALARS, Scalar

WAVES = 32
CONDITION_BIT = 4
FIELDS = (0, 1, 7, 0x7FFF, -1, -0x8000)
HIGH_HALF_UNKNOWN = frozenset({"s_cvt_f16_f32"})


class Form(NamedTuple):
    """A scalar instruction with what it is given.

    Args:
        scalar: Its statement.
        constants: Bits of operands that are constants, by their number.
    """

    scalar: Scalar
    constants: dict[int, int]


def forms(scalar: Scalar, lanes: int) -> Iterator[tuple[Case, Form]]:
    """Yield its forms: registers, and constants in place of each operand."""
    result = [] if scalar.result == "none" else ["s[36:37]" if width_of(scalar.result) == 64 else "s36"]
    plain = [
        f"s[{at}:{at + 1}]" if kind.endswith("64") else f"s{at}"
        for at, kind in zip((20, 22, 24), scalar.operands, strict=False)
    ]
    for field in FIELDS if scalar.operands[-1:] in (("k",), ("uk",)) else (None,):
        operands, constants = list(plain), {}
        if field is not None:
            last = len(operands) - 1
            operands[last] = f"{field & 0xFFFF:#x}"
            constants[last] = field & 0xFFFF if scalar.operands[-1] == "uk" else field
        yield Case((f"{scalar.name} {', '.join([*result, *operands])}",), lanes=lanes), Form(scalar, constants)
    if scalar.operands[-1:] in (("k",), ("uk",)):
        return
    for at, kind in enumerate(scalar.operands):
        whole = -7 if at else 33
        base = kind.removeprefix("r")
        for text, bits in [
            (str(whole), whole),
            *([("0x9e3779b1", 0x9E3779B1)] if width_of(base) == 32 else []),
            *([("-0.5", 0xBF000000)] if width_of(base) == 32 else []),
        ]:
            operands = list(plain)
            operands[at] = text
            width = width_of(base)
            yield (
                Case((f"{scalar.name} {', '.join([*result, *operands])}",), lanes=lanes),
                Form(scalar, {at: bits & (1 << width) - 1}),
            )


@cache
def records(scalar: Scalar, lanes: int) -> Words:
    """Return records of which the first lane of each wave holds the operands."""
    pick = random.Random(scalar.name)  # noqa: S311  test data
    made = np.zeros((WAVES * lanes, WORDS), np.uint32)
    for wave in range(WAVES):
        row = [pick.getrandbits(32) for _ in range(WORDS)]
        for at, kind in enumerate(scalar.operands):
            if kind in {"k", "uk"}:
                continue
            bits = value(kind, pick)
            row[2 * at], row[2 * at + 1] = bits & 0xFFFFFFFF, bits >> 32
        if len(scalar.operands) == 2 and pick.random() < 0.2:
            row[2:4] = row[:2]
        made[wave * lanes] = row
    return made


def wrong(case: Case, form: Form, made: Tried, target: str) -> Iterator[str]:
    """Execute a form and yield what differs, a line for each wave."""
    lanes, scalar = lanes_of(target), form.scalar
    given = records(scalar, lanes)
    got = execute(case, made, target, given)
    for at in range(0, WAVES * lanes, lanes):
        row = [int(one) for one in given[at]]
        values: list[Any] = []
        for number, kind in enumerate(scalar.operands):
            bits = form.constants.get(number)
            if kind in {"k", "uk"}:
                values.append(bits)
                continue
            wide = row[2 * number] | row[2 * number + 1] << 32
            values.append(loaded((wide if bits is None else bits) & (1 << width_of(kind)) - 1, kind))
        old = row[8] | row[9] << 32
        condition = int(bool(row[7] & CONDITION_BIT))
        if scalar.reads:
            values.append(loaded(old & (1 << width_of(scalar.result)) - 1, scalar.result))
        if scalar.given:
            values.append(condition)
        result = scalar.compute(*values)
        if scalar.condition:
            result, condition = result
        if int(got[at, 12]) != int(condition):
            yield f"{case.lines[0]}: {_shown(row)} set the condition to {got[at, 12]}"
        if scalar.result == "none":
            continue
        width = width_of(scalar.result)
        bits = bits_of(result, FORMATS[scalar.result]) if scalar.result in FORMATS else int(result) & (1 << width) - 1
        gave = (int(got[at, 8]) | int(got[at, 9]) << 32) & (1 << width) - 1
        as_vector = Statement(scalar.name, scalar.result, (), scalar.compute)
        if not same(scalar.result, gave, bits, as_vector):
            yield f"{case.lines[0]}: {_shown(row)} gave {gave:x}, not {bits:x}"
        if width < 64 and int(got[at, 9]) != row[9]:
            yield f"{case.lines[0]} wrote another register"


def _shown(row: list[int]) -> str:
    return " ".join(f"{row[at + 1]:08x}_{row[at]:08x}" for at in (0, 2, 4, 8))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_statements(target: str) -> None:
    whole = [pair for one in SCALARS.values() for pair in forms(one, lanes_of(target))]
    made = tried([case for case, _ in whole], target)
    assert not made.unmodelled
    lines = []
    for case, form in whole:
        if case in made.decoded:
            lines += list(wrong(case, form, made, target))[:2]
    assert not lines, f"{len(lines)} are wrong:\n" + "\n".join(lines[:40])


MASKS = {
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "andn1": lambda a, b: ~a & b,
    "and_not0": lambda a, b: ~a & b, "andn2": lambda a, b: a & ~b, "and_not1": lambda a, b: a & ~b,
    "orn1": lambda a, b: ~a | b, "or_not0": lambda a, b: ~a | b, "orn2": lambda a, b: a | ~b,
    "or_not1": lambda a, b: a | ~b, "nand": lambda a, b: ~(a & b), "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_masks_of_active_lanes(target: str) -> None:
    """The old mask goes to the result, or the new one; the condition is whether any lane is left."""
    lanes = lanes_of(target)
    wide = lanes == 64
    result, source, other, active = (
        ("s[36:37]", "s[20:21]", "s[22:23]", "exec") if wide else ("s36", "s20", "s22", "exec_lo")
    )
    bits = 64 if wide else 32
    cases = {
        Case((f"s_mov_b{bits} {active}, {other}", f"s_{name}_{kind}exec_b{bits} {result}, {source}"), lanes=lanes): (
            name,
            kind,
        )
        for name in MASKS
        for kind in ("save", "wr")
    }
    made = tried(list(cases), target)
    assert not made.unmodelled
    assert len(made.decoded) >= 12
    given = np.zeros((WAVES * lanes, WORDS), np.uint32)
    pick = random.Random(3)  # noqa: S311  test data
    for wave in range(WAVES):
        one, two = pick.getrandbits(64), pick.getrandbits(64)
        one = (two, ~two & (1 << 64) - 1, 0, (1 << 64) - 1, one)[min(wave, 4)]
        given[wave * lanes, :4] = [one & 0xFFFFFFFF, one >> 32, two & 0xFFFFFFFF, two >> 32]
    for case in made.decoded:
        name, kind = cases[case]
        got = execute(case, made, target, given)
        for at in range(0, WAVES * lanes, lanes):
            row = [int(one) for one in given[at]]
            mask = (1 << bits) - 1
            a, old = (row[0] | row[1] << 32) & mask, (row[2] | row[3] << 32) & mask
            new = MASKS[name](a, old) & mask
            stored = (int(got[at, 8]) | int(got[at, 9]) << 32) & mask
            assert stored == (old if kind == "save" else new), case.lines
            assert int(got[at, 12]) == int(new != 0), case.lines
            assert [int(one) for one in got[at : at + lanes, 15]] == [new >> lane & 1 for lane in range(lanes)], (
                case.lines
            )
