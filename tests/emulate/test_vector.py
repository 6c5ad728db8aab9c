"""Every vector instruction of every generation, alone, against its statement."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from functools import cache

import pytest

pytest.importorskip("rocm")

from tests.emulate import stated_conversions, stated_floats, stated_integers
from tests.emulate.bench import TARGETS, Case, Tried, Words, execute, lanes_of, tried
from tests.emulate.evaluate import Form, Source, evaluate, same
from tests.emulate.forms import UNDEFINED, forms
from tests.emulate.inputs import records
from tests.emulate.stated import STATEMENTS, Statement, width_of

STATED = (stated_conversions, stated_floats, stated_integers)


ALL_FORMS = "ROCMEND_TEST_ALL_FORMS"
"""Environment variable: every form on every target, not each on a few of them."""

SHARE = 5


def chosen(target: str, case: Case, form: Form) -> bool:
    """Return whether a form is tried: the plain ones on every target, of the others each target has its share."""
    plain = form._replace(sources=(), zeroes=False) == Form(form.statement, ())
    words = plain and all(one == Source() for one in form.sources)
    return words or ALL_FORMS in os.environ or zlib.crc32(f"{target} {case}".encode()) % SHARE == 0


@cache
def found(target: str) -> tuple[list[tuple[Statement, Case, Form]], Tried]:
    """Return the forms of all stated instructions that a target has."""
    whole = [
        (one, *pair)
        for statements in STATEMENTS.values()
        for one in statements
        if one.where(target)
        for pair in forms(one, target, lanes_of(target))
        if chosen(target, pair[0], pair[1])
    ]
    made = tried([case for _, case, _ in whole], target)
    return whole, made


def wrong(statement: Statement, case: Case, form: Form, made: Tried, target: str) -> Iterator[str]:
    """Execute a form and yield what differs from the statement, a line for each lane."""
    lanes = lanes_of(target)
    given = records(statement)
    got = execute(case, made, target, given)
    rows = []
    for at, kind in enumerate(statement.operands):
        wide = kind not in {"m", "mix"} and width_of(kind) == 64
        rows.append([int(low) | (int(high) << 32 if wide else 0) for low, high in given[:, 2 * at : 2 * at + 2]])
    text = case.lines[0]
    vcc = "vcc" in text
    masks = [bool(one) for one in (given[:, 15] >> (0 if vcc else 1)) & 1]
    old = [(int(low), int(high)) for low, high in given[:, 8:10]]
    wanted = evaluate(form, rows, old, masks, lanes)
    half = statement.result != "none" and width_of(statement.result) == 16
    ignored = (
        0xFFFF0000
        if half and statement.name in UNDEFINED and target.startswith("gfx9") and not form.high and form.placed is None
        else 0
    )
    for lane, (words, before) in enumerate(zip(wanted.words, old, strict=True)):
        low, high = int(got[lane, 0]), int(got[lane, 1])
        if statement.result != "none" and not wanted.free[lane]:
            pairs = _pairs(statement, form, (low & ~ignored, high), (words[0] & ~ignored, words[1]), before)
            if not all(same(kind, mine, right, statement) for kind, mine, right in pairs):
                shown = f"{high:08x}_{low:08x}, not {words[1]:08x}_{words[0]:08x}"
                yield f"{text} [{case.rsrc1:x}] lane {lane}: {_shown(given[lane])} gave {shown}"
        if wanted.mask is not None and wanted.active[lane]:
            column = 13 if vcc else 14
            if statement.name.startswith("v_cmpx"):
                column = 15
            if int(got[lane, column]) != wanted.mask[lane]:
                yield f"{text} lane {lane}: {_shown(given[lane])} gave the bit {got[lane, column]}"


def _pairs(
    statement: Statement, form: Form, got: tuple[int, int], wanted: tuple[int, int], before: tuple[int, int]
) -> list[tuple[str, int, int]]:
    """Return the parts of the result that are compared: type, bits, expected bits."""
    result = statement.result
    width = width_of(result)
    if width == 64:
        return [(result, got[0] | got[1] << 32, wanted[0] | wanted[1] << 32)]
    rest = ("u32", got[1], before[1])
    if form.placed is not None:
        return (
            [("u32", got[0], wanted[0]), rest]
            if form.placed[1] < width
            else [*_in_place(result, width, form.placed[0], got[0], wanted[0]), rest]
        )
    if width == 16:
        return [*_in_place(result, 16, 16 if form.high or result.startswith("hi") else 0, got[0], wanted[0]), rest]
    return [(result, got[0], wanted[0]), rest]


def _in_place(result: str, width: int, at: int, got: int, wanted: int) -> list[tuple[str, int, int]]:
    mask = (1 << width) - 1
    return [(result, got >> at & mask, wanted >> at & mask), ("u32", got & ~(mask << at), wanted & ~(mask << at))]


def _shown(record: Words) -> str:
    return " ".join(f"{int(record[at + 1]):08x}_{int(record[at]):08x}" for at in (0, 2, 4, 8))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_statements(target: str) -> None:
    whole, made = found(target)
    lines = []
    for statement, case, form in whole:
        if case in made.decoded:
            lines += list(wrong(statement, case, form, made, target))[:2]
    assert not lines, f"{len(lines)} are wrong:\n" + "\n".join(lines[:40])


FAST = (
    "v_fma_f32",
    "v_add_f16",
    "v_cvt_f16_f32",
    "v_min_f32",
    "v_med3_f32",
    "v_bfe_i32",
    "v_mad_i64_i32",
    "v_perm_b32",
)


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_a_few_statements(target: str) -> None:
    whole = [(one, *pair) for name in FAST for one in STATEMENTS[name] for pair in forms(one, target, lanes_of(target))]
    whole = [one for one in whole if one[0].where(target)]
    made = tried([case for _, case, _ in whole], target)
    assert len(made.decoded) > 100
    lines = [
        line
        for statement, case, form in whole
        if case in made.decoded
        for line in wrong(statement, case, form, made, target)
    ]
    assert not lines, "\n".join(lines[:10])
