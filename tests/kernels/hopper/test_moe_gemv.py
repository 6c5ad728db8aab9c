"""The kernel that multiplies codes with digits of x: its PTX on a wavefront of NumPy, and where it is taken.

Gluon has no interpreter: on a GPU the suite has cases that take the kernel.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import numpy as np
from tests.kernels.wavefront import INSTRUCTIONS, LANE, QUARTER, ROW, Wavefront, code_words, narrow, packed, wide

from rocmend.kernels import backends, executor, gather_qmm, gather_qmm_swiglu
from rocmend.kernels.backends.hopper.gather_qmm import moe_gemv
from rocmend.kernels.backends.hopper.gather_qmm.kernels import moe_gemv_ptx as blocks
from rocmend.kernels.ops.moe.gather_qmm import Problem
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config
from rocmend.kernels.tuning.lookup import forced

pytestmark = pytest.mark.cpu
H200 = by_name("sm90", compute_units=132)
TWO, HALF = ROW // 2, ROW % 2


def _greater(one: Any, other: Any) -> Any:
    low = np.maximum(one & 0xFFFF, other & 0xFFFF)
    return low | (np.maximum(one >> 16, other >> 16) << 16)


def _bits(numbers: Any) -> Any:
    return np.asarray(numbers, np.float32).view(np.uint32)


MORE: dict[str, Any] = {
    **INSTRUCTIONS,
    "mov.u32": lambda one: one,
    "add.u32": lambda one, other: one + other,
    "sub.u32": lambda one, other: one - other,
    "mad.lo.u32": lambda one, other, more: one * other + more,
    "xor.b32": lambda one, other: one ^ other,
    "max.u32": np.maximum,
    "max.u16x2": _greater,
    "redux.sync.max.u32": lambda one, _: np.full(32, one.max(), np.uint32),
    "cvt.rn.f32.s32": lambda one: _bits(one.view(np.int32)),
    "setp.eq.u32": lambda one, other: (one == other).astype(np.uint32),
    "setp.ge.u32": lambda one, other: (one >= other).astype(np.uint32),
    "setp.lt.u32": lambda one, other: (one < other).astype(np.uint32),
    "setp.eq.and.u32": lambda one, other, more: (one == other) & (more != 0),
    "selp.f32": INSTRUCTIONS["selp.b32"],
}


class Lanes(Wavefront):
    """A wavefront that does what else these blocks do."""

    def _step(self, name: str, rest: str) -> None:
        where = None
        if name.startswith("@"):
            where, (name, rest) = self._value(name[1:]) != 0, rest.split(" ", 1)
        if name == "st.shared.b32":
            register, by, value = re.findall(r"\[(\w+)\+?(\d*)\],\s*(\S+)", rest)[0]
            at = (self._value(register) + np.uint32(by or 0)) // 4
            where = np.full(32, fill_value=True) if where is None else where
            self.shared[at[where]] = self._value(value)[where]
        elif name.startswith("mma"):
            self._codes(*(re.split(r",\s*", part) for part in re.findall(r"\{([^}]*)\}", rest)))
        elif name in MORE:
            to, *of = re.split(r",\s*", rest)
            self.held[to] = np.asarray(MORE[name](*(self._value(one) for one in of)), np.uint32)
        else:
            super()._step(name, rest)

    def _codes(self, d: list[str], a: list[str], b: list[str], c: list[str]) -> None:
        """Multiply 16 rows of 32 unsigned bytes with 8 columns of signed ones."""
        left, right, sums = (np.zeros(of, np.int64) for of in ((16, 32), (32, 8), (16, 8)))
        for byte in range(4):
            for at in range(4):
                left[ROW + at % 2 * 8, 4 * QUARTER + at // 2 * 16 + byte] = self._value(a[at]) >> 8 * byte & 0xFF
            for at in range(2):
                digit = (self._value(b[at]) >> 8 * byte & 0xFF).astype(np.uint8).view(np.int8)
                right[4 * QUARTER + 16 * at + byte, ROW] = digit
        for at in range(4):
            sums[ROW + at // 2 * 8, 2 * QUARTER + at % 2] = self._value(c[at]).view(np.int32)
        sums += left @ right
        assert np.abs(sums).max() < 1 << 31
        for at in range(4):
            self.held[d[at]] = sums[ROW + at // 2 * 8, 2 * QUARTER + at % 2].astype(np.int32).view(np.uint32)


def _totals(kind: int, codes: Any, scales: Any, biases: Any, x: Any) -> Any:
    """Return what a wavefront makes of 16 rows of 256 codes, with four scales and biases each."""
    two = packed(narrow(x))
    raw = [two[4 * LANE + at] for at in range(4)]
    nothing, room = LANE * 0, np.zeros(blocks.ROOM // 4, np.uint32)
    (by,) = Lanes([*raw, nothing, LANE], first=1, shared=room).run(blocks.digits(kind), 1)
    low, high, begin = Lanes([nothing, LANE], first=3).run(blocks.places(kind), 3)

    def read(at: Any, more: int = 0) -> list[Any]:
        assert not (at % 16).any()
        return [room[(at + np.uint32(more)) // 4 + word] for word in range(4)]

    words, total = code_words(codes, kind), np.zeros(32)
    for line in range(blocks.LINES[kind]):
        own = [words[4 * row + TWO, line * 32 + HALF * 16 + QUARTER * 4 + at] for row in range(4) for at in range(4)]
        if kind == 4:
            held = [*read(low), *read(low, 16), *read(high), *read(high, 16), *read(begin)]
        else:
            held = [*read(high if line else low), *read(begin, 16 * line)]
        beside = []
        for row in range(4):
            of = [np.where(QUARTER == 3, biases[4 * row + TWO, at], scales[4 * row + TWO, at]) for at in range(4)]
            chosen = [np.where(HALF == 1, of[at + 2], of[at]) if kind == 4 else of[2 * line + at] for at in range(2)]
            beside.append(narrow(chosen[0]) | narrow(chosen[1]) << np.uint32(16))
        shares = Lanes([*own, *held, *beside, by, nothing, HALF]).run(blocks.product(kind))
        (got,) = Lanes([*shares, LANE], first=1).run(blocks.gathered(), 1)
        total += got.view(np.float32)
    for quarter in range(4):
        for row in range(4):
            # Lanes of both halves have the sum.
            assert len(np.unique(total[(quarter == QUARTER) & (row == TWO)])) == 1
    return total[(HALF == 0)].reshape(4, 4).T.reshape(16)


@pytest.mark.parametrize("kind", blocks.KINDS)
@pytest.mark.parametrize("size", [1.0, 1e-20, 1e25, 2.0**127])
def test_a_wavefront_multiplies_sixteen_rows(kind: int, size: float) -> None:
    drawn = np.random.default_rng(kind)
    codes = drawn.integers(0, 1 << kind, (16, 256))
    x = wide(narrow(drawn.uniform(-1, 1, 256) * size))
    scales, biases = (wide(narrow(drawn.standard_normal((16, 4)) * 2.0**-24)) for _ in range(2))
    got = _totals(kind, codes, scales, biases, x)
    weights = codes * np.repeat(scales, 64, 1).astype(np.float64) + np.repeat(biases, 64, 1)
    near = np.abs(weights).max() * np.abs(x).max() * (2e-5 if kind == 4 else 5e-6)
    np.testing.assert_allclose(got, weights @ x.astype(np.float64), atol=near)


@pytest.mark.parametrize("kind", blocks.KINDS)
def test_numbers_near_the_largest_are_exact(kind: int) -> None:
    """Eight bits at the largest's exponent and down to 2^-9 of it: each alone gives what a product in fp32 gives."""
    drawn = np.random.default_rng(3)
    codes = drawn.integers(0, 1 << kind, (16, 256))
    scales, biases = np.full((16, 4), 0.5, np.float32), np.full((16, 4), -3.0, np.float32)
    for at, number in ((5, 1.9921875), (6, -1.0078125 / 128), (255, 1.3359375 / 256), (128, 1.9921875 / 256)):
        x = np.zeros(256, np.float32)
        x[9], x[at] = 1.5, number
        got = _totals(kind, codes, scales, biases, x)
        wanted = (codes * 0.5 - 3.0) @ x.astype(np.float64)
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", blocks.KINDS)
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_what_is_no_number_makes_none(kind: int, number: float) -> None:
    x = np.ones(256, np.float32)
    x[77] = number
    ones = np.ones((16, 4), np.float32)
    assert np.isnan(_totals(kind, np.ones((16, 256), np.int64), ones, ones, x)).all()


@pytest.mark.parametrize("kind", blocks.KINDS)
def test_nothing_times_anything_is_nothing(kind: int) -> None:
    ones = np.ones((16, 4), np.float32)
    got = _totals(kind, np.full((16, 256), (1 << kind) - 1), ones, ones, np.zeros(256, np.float32))
    np.testing.assert_array_equal(got, 0.0)


def _problem(**change: Any) -> Problem:
    plain = Problem("bfloat16", "affine", 4, 64, transpose=True, gated=False, pairs=8, m=1, n=768, k=2048, experts=128)
    return plain._replace(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp8", "bits": 8, "group_size": 32}, {"bits": 6}, {"group_size": 32}, {"m": 2},
        {"transpose": False}, {"n": 760}, {"pairs": 129}, {"k": 2048 + 64}, {"k": 4096 + 128}, {"mode": "mxfp4"},
        {"mode": "nvfp4", "group_size": 16},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert moe_gemv.rejects(_problem(), H200) is None
    assert moe_gemv.rejects(_problem(mode="mxfp4", group_size=32), H200) is None
    assert moe_gemv.rejects(_problem(mode="mxfp4", group_size=32, n=2880, k=2880), H200) is None
    assert moe_gemv.rejects(_problem(**change), H200)


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert moe_gemv.rejects(_problem(), by_name(name))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, "b4-8"), ({"gated": True}, "b4-8"), ({"bits": 8, "k": 768}, "b8"), ({"k": 1024}, "b4-4"),
        ({"k": 1280}, "b4-uneven"), ({"k": 4096, "gated": True}, "b4-16"), ({"mode": "mxfp4"}, "mxfp4-8"),
        ({"mode": "mxfp4", "k": 768, "n": 2048}, "mxfp4-uneven"),
        ({"mode": "mxfp4", "k": 2880, "n": 2880, "gated": True}, "mxfp4-uneven"),
    ],
    ids=str,
)  # fmt: skip
def test_records_are_filed_by_bits_and_wavefronts(change: dict[str, Any], name: str) -> None:
    assert moe_gemv.class_of(_problem(**change)) == name


def _experts(n: int, k: int, offset: int = 0) -> Any:
    words = torch.zeros(5 * n * k // 8, dtype=torch.int32).view(5, n, k // 8)
    scales = torch.zeros(5 * n * k // 64 + offset, dtype=torch.bfloat16)[offset:].view(5, n, k // 64)
    return words, scales, scales


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("sets", "n", "units"), [(1, 32, 2), (2, 32, 1), (2, 48, 3)])
def test_as_many_rows_as_the_record_says(
    gated: bool, sets: int, n: int, units: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(backends, "MEASURED", True)
    kernel = importlib.import_module("rocmend.kernels.backends.hopper.gather_qmm.kernels.moe_gemv").moe_gemv_kernel
    each = 2 if gated else 1

    def launched(tokens: int, weights: Any) -> executor.Launch:
        recorder = executor.Recorder(H200)
        x = torch.zeros(tokens, 1, 1, 768, dtype=torch.bfloat16)
        chosen = torch.zeros(tokens, 3, dtype=torch.int32)
        record = Config({"SETS": sets, "PARTS": 1, "num_warps": 8, "launch_pdl": True})
        with executor.using(recorder), forced("gather_qmm", "moe_gemv", record):
            if gated:
                gather_qmm_swiglu(x, _experts(n, 768), weights, rhs_indices=chosen)
            else:
                gather_qmm(x, *weights, rhs_indices=chosen)
        (launch,) = recorder.launches
        return launch

    launch = launched(2, _experts(n, 768))
    assert launch.kernel is kernel
    # All that it takes is given: what is not there by position has to be a constant.
    assert len(launch.args) + len(launch.constants) == len(kernel.arg_names)
    fits = n // 16 * each % sets == 0
    assert launch.grid[:2] == (n // 16 * each // (sets if fits else 1), 6)
    assert launch.config["num_warps"] == 4
    if not gated:
        assert launch.grid[0] == units
    # At addresses that are not multiples of 16.
    assert launched(2, _experts(n, 768, offset=2)).kernel is not kernel


def test_mxfp4_is_launched_without_biases(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(backends, "MEASURED", True)
    kernel = importlib.import_module("rocmend.kernels.backends.hopper.gather_qmm.kernels.moe_gemv").moe_gemv_kernel
    recorder = executor.Recorder(H200)
    weights = torch.zeros(5, 64, 256, dtype=torch.int32), torch.zeros(5, 64, 64, dtype=torch.uint8)
    record = Config({"SETS": 2, "PARTS": 2, "num_warps": 8, "launch_pdl": True})
    with executor.using(recorder), forced("gather_qmm", "moe_gemv", record):
        x, chosen = torch.zeros(2, 1, 1, 2048, dtype=torch.bfloat16), torch.zeros(2, 3, dtype=torch.int32)
        gather_qmm(x, *weights, rhs_indices=chosen, group_size=32, mode="mxfp4")
    (launch,) = recorder.launches
    assert launch.kernel is kernel
    assert len(launch.args) + len(launch.constants) == len(kernel.arg_names)
    assert (launch.grid[:2], launch.config["num_warps"]) == ((2, 6), 4)
    assert (launch.constants["KIND"], launch.constants["GROUP"]) == (blocks.E2M1, 32)
