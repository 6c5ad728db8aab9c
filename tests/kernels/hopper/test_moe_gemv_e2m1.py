"""mxfp4 in the kernel that multiplies with digits of x elsewhere: its PTX on a wavefront of NumPy."""

from __future__ import annotations

import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import numpy as np
from tests.kernels.hopper.test_moe_gemv import MORE
from tests.kernels.wavefront import LANE, QUARTER, ROW, Wavefront, code_words, narrow, packed, wide

from rocmend.kernels.backends.hopper.gather_qmm.kernels import moe_gemv_e2m1

pytestmark = pytest.mark.cpu
TWO, HALF = ROW // 2, ROW % 2
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def _shifted(low: Any, high: Any, by: Any) -> Any:
    return ((low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(32)) >> by.astype(np.uint64)).astype(np.uint32)


class Lanes(Wavefront):
    """A wavefront that does what else these blocks do."""

    def _step(self, name: str, rest: str) -> None:
        if name in MORE or name == "shf.r.wrap.b32":
            to, *of = re.split(r",\s*", rest)
            does = MORE.get(name, _shifted)
            self.held[to] = np.asarray(does(*(self._value(one) for one in of)), np.uint32)
        else:
            super()._step(name, rest)


def _totals(codes: Any, scales: Any, x: Any) -> Any:
    """Return what a wavefront makes of 16 rows of 256 codes, with eight scales each."""
    two, nothing = packed(narrow(x)), LANE * 0
    room = np.full(moe_gemv_e2m1.ROOM // 4, 0x7FC00000, np.uint32)
    raw = [two[4 * LANE + at] for at in range(4)]
    with np.errstate(all="ignore"):
        (by,) = Lanes([*raw, nothing, LANE], first=1, shared=room).run(moe_gemv_e2m1.pairs(), 1)
        (at,) = Lanes([nothing, LANE], first=1).run(moe_gemv_e2m1.places(), 1)
        words = code_words(codes)
        halves = [HALF, HALF, 1 - HALF, 1 - HALF]
        own = [words[4 * row + TWO, halves[row] * 16 + QUARTER * 4 + word] for row in range(4) for word in range(4)]
        held = [room[at // 4 + word] for word in range(16)]
        first = (QUARTER // 2 == HALF).astype(np.uint32)
        rows = np.where(first, 0, 8) + TWO
        beside = [scales[rows + 4 * row, 2 * QUARTER + group] for row in range(2) for group in range(2)]
        shares = Lanes([*own, *held, *beside, by, nothing, first], first=2).run(moe_gemv_e2m1.product(), 2)
        (total,) = Lanes([*shares, LANE], first=1).run(moe_gemv_e2m1.gathered(), 1)
    total = total.view(np.float32)
    rows = TWO + 4 * (QUARTER ^ 2 * HALF)
    got = np.zeros(16, np.float32)
    got[rows] = total
    # Lanes of both halves have the sum.
    np.testing.assert_array_equal(got[rows], total)
    return got


def _weights(codes: Any, scales: Any) -> Any:
    powers = np.where(scales == 255, np.nan, 2.0 ** (scales.astype(np.float64) - 127))
    return E2M1[codes] * np.repeat(powers, 32, 1)


@pytest.mark.parametrize("size", [1.0, 1e-38, 1e-20, 1e25, 1e38])
def test_a_wavefront_multiplies_sixteen_rows(size: float) -> None:
    drawn = np.random.default_rng(2)
    codes = drawn.integers(0, 16, (16, 256))
    scales = drawn.integers(110, 121, (16, 8)).astype(np.uint32)
    x = wide(narrow(drawn.uniform(-1, 1, 256) * size))
    wanted = _weights(codes, scales) @ x.astype(np.float64)
    near = 1e-5 * np.abs(_weights(codes, scales)).max() * np.abs(x).max() * 16
    np.testing.assert_allclose(_totals(codes, scales, x), wanted, atol=near)


@pytest.mark.slow
def test_each_code_of_each_place_is_its_number() -> None:
    """One number of x that is not 0, beside one that is much larger and meets nothing."""
    scales = np.full((16, 8), 127, np.uint32)
    for place in range(256):
        codes = np.zeros((16, 256), np.int64)
        codes[:, place] = np.arange(16)
        x = np.zeros(256, np.float32)
        x[(place + 1) % 256], x[place] = 2.0**40, 1.2578125
        np.testing.assert_array_equal(_totals(codes, scales, x), E2M1 * 1.2578125)


@pytest.mark.parametrize(("scale", "size"), [(0, 1.0), (0, 2.0**120), (1, 1.0), (254, 2.0**-8), (254, 2.0**-120)])
def test_the_smallest_and_the_largest_scale(scale: int, size: float) -> None:
    codes = np.tile(np.arange(16), (16, 16))
    codes[:, 1::2] = 1
    scales = np.full((16, 8), scale, np.uint32)
    x = np.zeros(256, np.float32)
    x[1::64] = np.array([1.0, 0.5, 1.0, -0.25]) * size
    wanted = _weights(codes, scales) @ x.astype(np.float64)
    np.testing.assert_allclose(_totals(codes, scales, x), wanted, rtol=1e-6)


def test_a_scale_of_no_number_makes_none_of_its_row() -> None:
    codes = np.ones((16, 256), np.int64)
    scales = np.full((16, 8), 127, np.uint32)
    for row in range(0, 16, 2):
        scales[row, row // 2] = 255
    got = _totals(codes, scales, np.ones(256, np.float32))
    assert np.isnan(got[::2]).all()
    np.testing.assert_array_equal(got[1::2], 128.0)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_what_is_no_number_is_multiplied_as_such(number: float) -> None:
    codes = np.ones((16, 256), np.int64)
    codes[3, 77], codes[4, 77] = 9, 8
    x = np.ones(256, np.float32)
    x[77] = number
    with np.errstate(invalid="ignore"):
        wanted = E2M1[codes] @ x
    np.testing.assert_array_equal(_totals(codes, np.full((16, 8), 127, np.uint32), x), wanted)


def test_nothing_times_anything_is_nothing() -> None:
    got = _totals(np.full((16, 256), 15), np.full((16, 8), 254, np.uint32), np.zeros(256, np.float32))
    np.testing.assert_array_equal(got, 0.0)
