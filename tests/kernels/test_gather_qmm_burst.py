"""The kernel that asks for all its weights at once: its PTX on a wavefront of NumPy, and where it is taken.

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
from tests.kernels.wavefront import INSTRUCTIONS, QUARTER, ROW, Wavefront, code_words, narrow, packed, wide

from rocmend.kernels import executor, gather_qmm, gather_qmm_swiglu
from rocmend.kernels.common import gluon
from rocmend.kernels.ops.gather_qmm import Problem, burst
from rocmend.kernels.ops.gather_qmm.kernels import burst_blocks as blocks
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config
from rocmend.kernels.tuning.lookup import forced

pytestmark = pytest.mark.cpu
H200 = by_name("sm90", compute_units=132)
MORE: dict[str, Any] = {
    **INSTRUCTIONS,
    "mov.u32": lambda one: one,
    "mul.lo.u32": lambda one, other: one * other,
    "max.u32": np.maximum,
    "xor.b32": lambda one, other: one ^ other,
    "setp.eq.u32": lambda one, other: (one == other).astype(np.uint32),
    "setp.ge.u32": lambda one, other: (one >= other).astype(np.uint32),
    "selp.f32": INSTRUCTIONS["selp.b32"],
}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


class Lanes(Wavefront):
    """A wavefront that knows its lanes' numbers, and what else these blocks do."""

    def _value(self, name: str) -> Any:
        return np.arange(32, dtype=np.uint32) if name == "%laneid" else super()._value(name)

    def _step(self, name: str, rest: str) -> None:
        if name in MORE:
            to, *of = re.split(r",\s*", rest)
            self.held[to] = MORE[name](*(self._value(one) for one in of))
        else:
            super()._step(name, rest)


def _in_columns(kind: int, x: Any) -> list[Any]:
    """Return x as a wavefront loads it: registers of two numbers, or of zeros."""
    two = packed(narrow(x))
    if kind == 8:
        return [two[ROW * 32 + QUARTER * 8 + at] for at in range(8)]
    if kind == 4:
        return [np.where(ROW % 2 == QUARTER // 2, two[ROW // 2 * 64 + QUARTER * 16 + at], 0) for at in range(16)]
    chunks = [ROW // 4 + 2 * half for half in range(2)]
    return [np.where(ROW % 4 == QUARTER, two[one * 64 + QUARTER * 16 + at], 0) for one in chunks for at in range(16)]


@pytest.mark.parametrize("kind", blocks.KINDS)
def test_a_wavefront_multiplies_sixteen_rows(kind: int) -> None:
    drawn = np.random.default_rng(kind)
    bits = kind or 4
    codes = drawn.integers(0, 1 << bits, (16, 512))
    x = wide(narrow(drawn.standard_normal(512)))
    words = code_words(codes, bits)
    raw = _in_columns(kind, x)
    xs = [one for at in range(0, len(raw), 4) for one in Lanes(raw[at : at + 4]).run(blocks.pairs(kind))]
    products: list[Any] = []
    for chunk in range(blocks.CHUNKS[kind]):
        own = [words[ROW + by, chunk * 16 + QUARTER * 4 + word] for by in (0, 8) for word in range(4)]
        given = xs[16:] if kind == blocks.E2M1 and chunk >= 2 else xs[:16]
        products += Lanes([*own, *given]).run(blocks.product(kind))
    if kind == blocks.E2M1:
        scales = drawn.integers(120, 132, (16, 16)).astype(np.uint32)
        mixed = [scales[ROW + by, at + 2 * QUARTER] | scales[ROW + by, at + 2 * QUARTER + 1] << np.uint32(8)
                 for at in (0, 8) for by in (0, 8)]  # fmt: skip
        weights = E2M1[codes] * np.repeat(2.0 ** (scales.astype(np.float64) - 127), 32, 1)
        own = []
    else:
        scales, biases = narrow(drawn.standard_normal((2, 16, 8)))
        mixed = [of[ROW + by, 2 * QUARTER] | of[ROW + by, 2 * QUARTER + 1] << np.uint32(16)
                 for of in (biases, scales) for by in (0, 8)]  # fmt: skip
        weights = codes * np.repeat(wide(scales), 64, 1).astype(np.float64) + np.repeat(wide(biases), 64, 1)
        own = Lanes(xs).run(blocks.sums(kind))
    got = Lanes([*products, *mixed, *own]).run(blocks.finish(kind))
    wanted = weights @ x.astype(np.float64)
    near = 1e-5 * np.abs(weights).max() * 512**0.5
    for one in got:
        np.testing.assert_allclose(one.view(np.float32), wanted[ROW + 8 * (QUARTER % 2)], atol=near)


def test_the_smallest_scale_of_mxfp4_is_not_nothing() -> None:
    """0 is 2^-127: of two groups and four columns of ones, times 2^62 as products are."""
    ones = np.full(32, 2.0**-62 * 2.0**60, np.float32).view(np.uint32)
    got = Lanes([ones] * 16 + [np.zeros(32, np.uint32)] * 4).run(blocks.finish(blocks.E2M1))
    np.testing.assert_array_equal(got[0].view(np.float32), 16 * np.float32(2.0) ** (60 - 127))


def test_the_first_product_waits_for_all_loads() -> None:
    """Nothing changes where the last tensor is zeros; that the others are read shows where it is not."""
    drawn = np.random.default_rng(5).integers(0, 1 << 32, (16, 32), dtype=np.uint32)
    zeros, ones = np.zeros(32, np.uint32), np.full(32, 0xFFFFFFFF, np.uint32)
    got = Lanes([*drawn, *([zeros] * 4)]).run(blocks.after(3))
    np.testing.assert_array_equal(got, drawn[:4])
    # Its own register, one of each load, and all four of the last one.
    (got, *_) = Lanes([*drawn, *([ones] * 4)]).run(blocks.after(3))
    wanted = drawn[4] ^ drawn[8] ^ drawn[12] ^ drawn[13] ^ drawn[14] ^ drawn[15]
    np.testing.assert_array_equal(got, drawn[0] | wanted)


def _problem(**change: Any) -> Problem:
    plain = Problem("bfloat16", "affine", 4, 64, transpose=True, gated=False, pairs=8, m=1, n=768, k=2048, experts=128)
    return plain._replace(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp8", "bits": 8, "group_size": 32}, {"bits": 6}, {"group_size": 32},
        {"m": 2}, {"transpose": False}, {"n": 760}, {"pairs": 129}, {"k": 2048 + 64}, {"k": 4096 + 128},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert burst.suits(_problem(), H200)
    assert not burst.suits(_problem(**change), H200)


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert not burst.suits(_problem(), by_name(name))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, "b4-4"), ({"gated": True}, "b4-4-gated"), ({"bits": 8, "k": 768}, "b8-uneven"), ({"k": 1024}, "b4-2"),
        ({"mode": "mxfp4", "group_size": 32, "k": 4096}, "mxfp4-8"), ({"k": 512}, "b4-1"),
    ],
    ids=str,
)  # fmt: skip
def test_records_are_filed_by_format_and_wavefronts(change: dict[str, Any], name: str) -> None:
    assert burst.class_of(_problem(**change)) == name


def _experts(n: int, k: int, offset: int = 0) -> Any:
    words = torch.zeros(5 * n * k // 8, dtype=torch.int32).view(5, n, k // 8)
    scales = torch.zeros(5 * n * k // 64 + offset, dtype=torch.bfloat16)[offset:].view(5, n, k // 64)
    return words, scales, scales


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize(("sets", "n", "programs"), [(1, 32, 12), (2, 32, 6), (2, 48, 18)])
def test_as_many_tiles_as_the_record_says(
    gated: bool, sets: int, n: int, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(gluon, "SUITED", True)
    kernel = importlib.import_module("rocmend.kernels.ops.gather_qmm.kernels.burst").burst_kernel

    def launched(tokens: int, weights: Any) -> executor.Launch:
        recorder = executor.Recorder(H200)
        x = torch.zeros(tokens, 1, 1, 768, dtype=torch.bfloat16)
        chosen = torch.zeros(tokens, 3, dtype=torch.int32)
        most = 6 * n // 16
        record = Config({"most": most, "SETS": sets, "HELD": 0, "num_warps": 4, "num_stages": 1, "launch_pdl": True})
        with executor.using(recorder), forced("gather_qmm", "burst", record):
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
    assert launch.grid[0] == (6 * n // 16 if gated else programs)
    assert launched(3, _experts(n, 768)).kernel is not kernel
    # At addresses that are not multiples of 16.
    assert launched(2, _experts(n, 768, offset=2)).kernel is not kernel
