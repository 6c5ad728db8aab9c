"""The kernel whose programs walk over experts' tiles: its PTX on a wavefront of NumPy, and where it is taken.

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
from tests.kernels.wavefront import INSTRUCTIONS, QUARTER, ROW, Wavefront, narrow, wide

from rocmend.kernels import backends, executor, gather_qmm, gather_qmm_swiglu
from rocmend.kernels.backends.hopper.gather_qmm import moe_gemv_persistent
from rocmend.kernels.backends.hopper.gather_qmm.kernels import moe_gemv_persistent_ptx as blocks
from rocmend.kernels.ops.moe.gather_qmm import Problem
from rocmend.kernels.target import by_name

pytestmark = pytest.mark.cpu
H200 = by_name("sm90", compute_units=132)
LANE = np.arange(32, dtype=np.uint32)
SPECIAL = {
    "%laneid": LANE,
    "%lanemask_lt": (np.uint32(1) << LANE) - np.uint32(1),
    "%lanemask_eq": np.uint32(1) << LANE,
}


def _voted(lanes: Any, _members: Any) -> Any:
    return np.full(32, sum(1 << lane for lane in range(32) if lanes[lane]), np.uint32)


def _logic(a: Any, b: Any, c: Any, table: Any) -> Any:
    return {0x90: a & ~(b ^ c), 0xEA: (a & b) | c}[int(table[0])]


def _of_lane(a: Any, lane: Any, clamp: Any, members: Any) -> Any:
    assert (int(clamp[0]), int(members[0])) == (31, 0xFFFFFFFF)
    return a[lane]


MORE: dict[str, Any] = {
    **INSTRUCTIONS,
    "mov.u32": lambda a: a,
    "or.b32": lambda a, b: a | b,
    "shr.s32": lambda a, b: (a.view(np.int32) >> b.view(np.int32)).view(np.uint32),
    "lop3.b32": _logic,
    "popc.b32": lambda a: np.array([int(one).bit_count() for one in a], np.uint32),
    "add.u32": lambda a, b: a + b,
    "setp.ne.u32": lambda a, b: a != b,
    "setp.eq.u32": lambda a, b: a == b,
    "setp.ge.s32": lambda a, b: a.view(np.int32) >= b.view(np.int32),
    "setp.ge.and.s32": lambda a, b, p: (a.view(np.int32) >= b.view(np.int32)) & p,
    "vote.sync.ballot.b32": _voted,
    "shfl.sync.idx.b32": _of_lane,
}


class Lanes(Wavefront):
    """A wavefront that knows its lanes' numbers, and what else these blocks do."""

    def _value(self, name: str) -> Any:
        return SPECIAL[name] if name in SPECIAL else super()._value(name)

    def _step(self, name: str, rest: str) -> None:
        if name in MORE:
            to, *of = re.split(r",\s*", rest)
            self.held[to] = MORE[name](*(self._value(one) for one in of))
        else:
            super()._step(name, rest)


@pytest.mark.parametrize("words", [1, 2, 4, 8])
@pytest.mark.parametrize("experts", [1, 3, 128, 256])
@pytest.mark.parametrize("missing", [0, 5])
def test_list_of_items(words: int, experts: int, missing: int) -> None:
    chosen = np.random.default_rng(words).integers(0, experts, 32 * words)
    if missing:
        chosen[-missing:] = -1
    packed = np.concatenate(Lanes(list(chosen.reshape(words, 32)), words).run(blocks.ranks(words), words))
    seen: dict[int, int] = {}
    items = 0
    for pair, expert in enumerate(chosen[: len(chosen) - missing]):
        before = seen.get(int(expert), 0)
        seen[int(expert)] = before + 1
        place = blocks.NOWHERE
        if before % blocks.MATES == 0:
            place, items = items, items + 1
        assert packed[pair] == place << 16 | before << 8 | expert
    assert all(packed[len(chosen) - missing :] == blocks.NOBODY)


def _two(low: Any, high: Any) -> Any:
    return narrow(low) | narrow(high) << 16


OFFSET = 128
"""What the matrix unit's numbers are more than the codes."""


def _ordered(x: Any) -> list[list[Any]]:
    """Return x of a chunk, ``[4, 128]``, for each of a lane's words; columns 2 r and 2 r + 1: halves of row r of x."""
    own = QUARTER // 2 == ROW % 2
    found = []
    for word in range(4):
        first = QUARTER * 32 + word * 8
        given = [np.where(own, _two(x[ROW // 2, first + at], x[ROW // 2, first + at + 1]), 0) for at in range(0, 8, 2)]
        found.append(Lanes(given).run(blocks.pairs()))
    return found


def test_a_chunk_is_multiplied_with_four_rows_of_x() -> None:
    drawn = np.random.default_rng(4)
    codes = drawn.integers(0, 16, (16, 128))
    x = wide(narrow(drawn.standard_normal((4, 128))))
    words = np.zeros((16, 16), np.uint32)
    for place in range(8):
        words |= codes[:, place::8].astype(np.uint32) << np.uint32(4 * place)
    low, high = ([words[ROW + by, 4 * QUARTER + word] for word in range(4)] for by in (0, 8))
    ordered = [one for word in _ordered(x) for one in word]
    got = Lanes([*low, *high, *ordered]).run(blocks.product())
    totals = Lanes(ordered).run(blocks.sums())
    halves = x.reshape(4, 2, 64).astype(np.float64)
    wanted = np.einsum("rhk,qhk->rqh", codes.reshape(16, 2, 64) + OFFSET, halves)
    for at in range(4):
        row, half = ROW + at // 2 * 8, at % 2
        np.testing.assert_allclose(got[at].view(np.float32), wanted[row, QUARTER, half], atol=1e-5 * OFFSET * 128)
        np.testing.assert_allclose(totals[at].view(np.float32), halves.sum(2)[QUARTER, half], atol=1e-4)


@pytest.mark.parametrize("chunks", [3, 4])
def test_chunks_are_scaled_and_summed_for_each_row_of_x(chunks: int) -> None:
    """A quarter has a row of x: its two columns are a chunk's halves, and the two parts of their sums."""
    drawn = np.random.default_rng(chunks)
    # Of chunks, of rows of x, of halves.
    totals = drawn.standard_normal((chunks, 4, 2)).astype(np.float32)
    sums = [totals[chunk, QUARTER, at % 2].view(np.uint32) for chunk in range(chunks) for at in range(4)]
    sides = Lanes(sums).run(blocks.spread(chunks))

    products = drawn.standard_normal((16, 4, 2 * chunks)).astype(np.float32)
    scales, biases = narrow(drawn.standard_normal((2, 16, 8)))
    scales[:, 2 * chunks :] = biases[:, 2 * chunks :] = 0
    wanted = np.einsum("rqg,rg->rq", products.astype(np.float64), wide(scales[:, : 2 * chunks]))
    of_row = totals.transpose(1, 0, 2).reshape(4, 2 * chunks).astype(np.float64)
    wanted += np.einsum("qg,rg->rq", of_row, (wide(biases) - OFFSET * wide(scales))[:, : 2 * chunks])

    of_chunks = [products[ROW + at // 2 * 8, QUARTER, 2 * chunk + at % 2].view(np.uint32)
                 for chunk in range(chunks) for at in range(4)]  # fmt: skip
    words = [scales[ROW + 8 * half, 2 * one] | scales[ROW + 8 * half, 2 * one + 1] << 16
             for half in range(2) for one in range(4)]  # fmt: skip
    mixed = [of[ROW + 8 * half, 2 * QUARTER] | of[ROW + 8 * half, 2 * QUARTER + 1] << 16
             for of in (biases, scales) for half in range(2)]  # fmt: skip
    results = Lanes([*of_chunks, *words, *mixed, *sides]).run(blocks.finish(chunks))
    got = [one.view(np.float32) for one in results]
    for half in range(2):
        np.testing.assert_allclose(got[half], wanted[ROW + 8 * half, QUARTER], atol=4e-4 * OFFSET)
        np.testing.assert_array_equal(got[half], got[2 + half])


def _problem(**change: Any) -> Problem:
    plain = Problem(
        "bfloat16", "affine", 4, 64, transpose=True, gated=False, pairs=128, m=1, n=768, k=2048, experts=128
    )
    return plain._replace(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp4", "group_size": 32}, {"bits": 6}, {"group_size": 32}, {"m": 2},
        {"bits": 8}, {"transpose": False}, {"pairs": 257}, {"n": 760}, {"experts": 512}, {"k": 4096}, {"k": 2880},
        {"pairs": 64}, {"pairs": 8}, {"experts": 8, "pairs": 32},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert moe_gemv_persistent.rejects(_problem(), H200) is None
    assert moe_gemv_persistent.rejects(_problem(**change), H200)


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert moe_gemv_persistent.rejects(_problem(), by_name(name))


@pytest.mark.parametrize("k", [768, 1024, 1536, 2048])
def test_k_is_cut_without_a_rest(k: int) -> None:
    cut = moe_gemv_persistent.CUTS[k]
    assert cut.slices * cut.per * moe_gemv_persistent.CHUNK == k


def _experts(n: int, k: int, offset: int = 0) -> Any:
    words = torch.zeros(5 * n * k // 8, dtype=torch.int32).view(5, n, k // 8)
    scales = torch.zeros(5 * n * k // 64 + offset, dtype=torch.bfloat16)[offset:].view(5, n, k // 64)
    return words, scales, scales


@pytest.mark.parametrize("gated", [False, True])
def test_tensors_at_odd_addresses_take_the_other_kernel(gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(backends, "MEASURED", True)
    monkeypatch.setattr(moe_gemv_persistent, "SPARED", 0)
    own = "rocmend.kernels.backends.hopper.gather_qmm.kernels"
    walking = importlib.import_module(f"{own}.moe_gemv_persistent").moe_gemv_persistent_kernel
    other = importlib.import_module("rocmend.kernels.ops.matmul.quantized_matmul.kernels.gemv").gemv_kernel
    chosen = torch.zeros(2, 6, dtype=torch.int32)
    x = torch.zeros(2 * 768 + 8, dtype=torch.bfloat16)

    def launched(x: Any, weights: Any) -> executor.Launch:
        recorder = executor.Recorder(H200)
        with executor.using(recorder):
            if gated:
                gather_qmm_swiglu(x, _experts(32, 768), weights, rhs_indices=chosen)
            else:
                gather_qmm(x, *weights, rhs_indices=chosen)
        (launch,) = recorder.launches
        return launch

    at_start = x[:-8].view(2, 1, 1, 768)
    launch = launched(at_start, _experts(32, 768))
    assert launch.kernel is walking
    # All that it takes is given: what is not there by position has to be a constant.
    assert len(launch.args) + len(launch.constants) == len(walking.arg_names)
    assert launched(x[4:-4].view(2, 1, 1, 768), _experts(32, 768)).kernel is other
    assert launched(at_start, _experts(32, 768, offset=2)).kernel is other
