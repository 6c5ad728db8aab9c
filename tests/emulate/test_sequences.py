"""Instructions together: the two of a pair, divisions as compilers write them, dot products of signed and unsigned."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

pytest.importorskip("rocm")

from tests.emulate import stated_conversions, stated_floats, stated_integers
from tests.emulate.bench import TARGETS, WORDS, Case, Words, execute, lanes_of, tried
from tests.emulate.evaluate import Form, Source, evaluate, same
from tests.emulate.exact import F32, F64, Format, bits_of, is_nan, value_of
from tests.emulate.inputs import value
from tests.emulate.stated import STATEMENTS, Statement

STATED = (stated_conversions, stated_floats, stated_integers)
FIRST = ("add_f32", "sub_f32", "subrev_f32", "mul_f32", "fmac_f32", "mul_dx9_zero_f32", "mov_b32", "cndmask_b32", "max_f32", "min_f32", "max_num_f32", "min_num_f32", "dot2acc_f32_f16")  # fmt: skip
SECOND = ("add_nc_u32", "lshlrev_b32", "and_b32", "mul_f32", "fmac_f32")


def records(kinds: tuple[str, ...], lanes: int, seed: int = 1) -> Words:
    """Return records whose first words are values of types; of those of 64 bits the first two, and so on."""
    pick = random.Random(seed)  # noqa: S311  test data
    rows = []
    for _ in range(4 * lanes):
        row: list[int] = []
        for kind in kinds:
            bits = value(kind, pick)
            row += [bits & 0xFFFFFFFF, bits >> 32] if kind.endswith("64") else [bits]
        rows.append(row + [pick.getrandbits(32) for _ in range(WORDS - len(row))])
    return np.array(rows, np.uint32)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx1100", "gfx1151", "gfx1201"])
def test_pairs(target: str) -> None:
    """Both read before either writes; each is as it is alone."""

    def statement(name: str) -> Statement:
        return next(one for one in STATEMENTS[f"v_{name}"] if one.where(target))

    def half(name: str, d: int, a: int, b: int) -> str:
        return f"v_dual_{name} v{d}, v{a}" + (f", v{b}" if name != "mov_b32" else "")

    cases = {Case((f"{half(x, 24, 8, 10)} :: {half(y, 25, 9, 11)}",)): (x, y) for x, y in product(FIRST, SECOND)}
    overlapping = Case(("v_dual_add_f32 v25, v8, v10 :: v_dual_mov_b32 v24, v25",))
    made = tried([*cases, overlapping], target)
    assert not made.unmodelled
    assert len(made.decoded) > 40
    given = records(("f32", "u32", "f32", "f32"), 32)
    old = [[(int(row[8 + at]), 0) for row in given] for at in (0, 1)]
    masks = [bool(int(row[15]) & 1) for row in given]
    for case in made.decoded:
        got = execute(case, made, target, given)
        if case == overlapping:
            assert [int(one) for one in got[:, 0]] == [int(one) for one in given[:, 9]]
            continue
        for at, name in enumerate(cases[case]):
            one = statement(name)
            rows = [[int(row[word]) for row in given] for word in (at, at + 2)][: len(one.operands)]
            sources = tuple(Source() for _ in one.operands)
            wanted = evaluate(Form(one, sources), [*rows, rows[0]], old[at], masks, 32)
            for lane, (low, _) in enumerate(wanted.words):
                assert same(one.result, int(got[lane, at]), low, one), (
                    case.lines,
                    lane,
                    hex(int(got[lane, at])),
                    hex(low),
                )


def divided(numerator: float, denominator: float, form: Format) -> int:
    if not np.isfinite(numerator) or not np.isfinite(denominator) or numerator == 0 or denominator == 0:
        with np.errstate(all="ignore"):
            return bits_of(float(np.float64(numerator) / np.float64(denominator)), form)
    return bits_of(Fraction(numerator) / Fraction(denominator), form)


@pytest.mark.parametrize("target", TARGETS)
def test_division(target: str) -> None:
    """The sequences of compilers for a division round as they have to, whatever the three helpers scale."""
    mask = "s[44:45]" if lanes_of(target) == 64 else "s44"
    vcc = "vcc" if lanes_of(target) == 64 else "vcc_lo"
    single = Case((
        f"v_div_scale_f32 v24, {mask}, v9, v9, v8", f"v_div_scale_f32 v25, {vcc}, v8, v9, v8", "v_rcp_f32 v26, v24",
        "v_fma_f32 v27, -v24, v26, 1.0", "v_fma_f32 v26, v27, v26, v26", "v_mul_f32 v27, v25, v26",
        "v_fma_f32 v28, -v24, v27, v25", "v_fma_f32 v27, v28, v26, v27", "v_fma_f32 v28, -v24, v27, v25",
        "v_div_fmas_f32 v28, v28, v26, v27", "v_div_fixup_f32 v24, v28, v9, v8",
    ))  # fmt: skip
    a, b = "v[8:9]", "v[10:11]"
    s0, s1, r, e, q = (f"v[{at}:{at + 1}]" for at in (24, 26, 28, 30, 32))
    double = Case((
        f"v_div_scale_f64 {s0}, {mask}, {b}, {b}, {a}", f"v_div_scale_f64 {s1}, {vcc}, {a}, {b}, {a}",
        f"v_rcp_f64 {r}, {s0}", f"v_fma_f64 {e}, -{s0}, {r}, 1.0", f"v_fma_f64 {r}, {r}, {e}, {r}",
        f"v_fma_f64 {e}, -{s0}, {r}, 1.0", f"v_fma_f64 {r}, {r}, {e}, {r}", f"v_mul_f64 {q}, {s1}, {r}",
        f"v_fma_f64 {e}, -{s0}, {q}, {s1}", f"v_div_fmas_f64 {e}, {e}, {r}, {q}", f"v_div_fixup_f64 {s0}, {e}, {b}, {a}",
    ))  # fmt: skip
    made = tried([single, double], target)
    assert not made.wrong
    for case, form, kind in ((single, F32, "f32"), (double, F64, "f64")):
        given = records((kind, kind), lanes_of(target), seed=int(target[-3:], 16))
        got = execute(case, made, target, given)
        for lane, row in enumerate(given):
            words = [int(one) for one in row[:4]]
            operands = words[:2] if form is F32 else [words[0] | words[1] << 32, words[2] | words[3] << 32]
            gave = int(got[lane, 0]) | (int(got[lane, 1]) << 32 if form is F64 else 0)
            right = divided(value_of(operands[0], form), value_of(operands[1], form), form)
            both = is_nan(gave, form) and is_nan(right, form)
            assert gave == right or both, (kind, [hex(one) for one in operands], hex(gave), hex(right))


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_dot_products_of_signed_and_unsigned(target: str) -> None:
    cases = {
        Case((f"v_dot{count}_i32_iu{bits} v24, v8, v9, v10 neg_lo:[{a},{b},0]{' clamp' if clamp else ''}",)): (
            bits,
            a,
            b,
            clamp,
        )
        for (count, bits), a, b, clamp in product(((4, 8), (8, 4)), (0, 1), (0, 1), (False, True))
    }
    made = tried(list(cases), target)
    assert not made.wrong
    given = records(("u32", "u32", "i32"), 32)
    given[:8, :2] = 0x80808080
    given[:4, 2] = 0x7FFFFFFF
    for case, (bits, a, b, clamp) in cases.items():
        got = execute(case, made, target, given)
        for lane, row in enumerate(given):
            parts = [[int(row[at]) >> shift & (1 << bits) - 1 for shift in range(0, 32, bits)] for at in (0, 1)]
            whole = [
                [one - (1 << bits) if signed and one >> bits - 1 else one for one in part]
                for part, signed in zip(parts, (a, b), strict=True)
            ]
            total = sum(x * y for x, y in zip(*whole, strict=True)) + int(row[2].astype(np.int32))
            total = max(-(1 << 31), min((1 << 31) - 1, total)) if clamp else total
            assert int(got[lane, 0]) == total & 0xFFFFFFFF, (case.lines, lane)
