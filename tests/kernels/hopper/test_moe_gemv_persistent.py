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
from rocmend.kernels.tuning.lookup import records

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


OFFSET = {4: 128, 8: 128 * 17}
"""What the matrix unit's numbers are more than the codes."""


def _ordered(x: Any, bits: int) -> list[list[Any]]:
    """Return x of a chunk for each of a lane's four words; columns 2 r and 2 r + 1 are its two halves of row r of x.

    Args:
        x: ``[4, 512 / bits]``.
        bits: Of a code.
    """
    codes = 32 // bits
    own = QUARTER // 2 == ROW % 2
    found = []
    for word in range(4):
        first = QUARTER * 4 * codes + word * codes
        # Of 8 bits each pair comes twice.
        places = [2 * (at * codes // 8) for at in range(4)]
        given = [np.where(own, _two(x[ROW // 2, first + at], x[ROW // 2, first + at + 1]), 0) for at in places]
        found.append(Lanes(given).run(blocks.pairs(bits)))
    return found


@pytest.mark.parametrize("bits", [4, 8])
def test_a_chunk_is_multiplied_with_four_rows_of_x(bits: int) -> None:
    drawn = np.random.default_rng(bits)
    count = 512 // bits
    codes = drawn.integers(0, 1 << bits, (16, count))
    x = wide(narrow(drawn.standard_normal((4, count))))
    words = np.zeros((16, 16), np.uint32)
    for place in range(32 // bits):
        words |= codes[:, place :: 32 // bits].astype(np.uint32) << np.uint32(bits * place)
    low, high = ([words[ROW + by, 4 * QUARTER + word] for word in range(4)] for by in (0, 8))
    ordered = _ordered(x, bits)
    got = Lanes([*low, *high, *(one for word in ordered for one in word)]).run(blocks.product(bits))
    totals = Lanes([one for word in ordered for one in word]).run(blocks.sums(bits))
    halves = x.reshape(4, 2, count // 2).astype(np.float64)
    wanted = np.einsum("rhk,qhk->rqh", codes.reshape(16, 2, count // 2) + OFFSET[bits], halves)
    for at in range(4):
        row, half = ROW + at // 2 * 8, at % 2
        near = 1e-5 * OFFSET[bits] * count
        np.testing.assert_allclose(got[at].view(np.float32), wanted[row, QUARTER, half], atol=near)
        np.testing.assert_allclose(totals[at].view(np.float32), halves.sum(2)[QUARTER, half], atol=1e-4)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("chunks", [3, 4])
@pytest.mark.parametrize("step", [0, 1])
def test_a_step_is_scaled_and_summed_for_each_row_of_x(chunks: int, step: int, bits: int) -> None:
    """A quarter has a row of x: its two columns are a chunk's halves, and the two parts of their sums."""
    drawn = np.random.default_rng(chunks)
    # Of two steps' chunks, of rows of x, of halves.
    totals = drawn.standard_normal((2 * chunks, 4, 2)).astype(np.float32)
    sums = [totals[chunk, QUARTER, at % 2].view(np.uint32) for chunk in range(2 * chunks) for at in range(4)]
    sides = Lanes(sums).run(blocks.spread(chunks, bits))

    products = drawn.standard_normal((16, 4, 2 * chunks)).astype(np.float32)
    scales, biases = narrow(drawn.standard_normal((2, 16, 8)))
    scales[:, 2 * chunks :] = biases[:, 2 * chunks :] = 0
    wanted = np.einsum("rqg,rg->rq", products.astype(np.float64), wide(scales[:, : 2 * chunks]))
    of_step = totals.reshape(2, chunks, 4, 2)[step].transpose(1, 0, 2).reshape(4, 2 * chunks).astype(np.float64)
    wanted += np.einsum("qg,rg->rq", of_step, (wide(biases) - OFFSET[bits] * wide(scales))[:, : 2 * chunks])

    of_chunks = [products[ROW + at // 2 * 8, QUARTER, 2 * chunk + at % 2].view(np.uint32)
                 for chunk in range(chunks) for at in range(4)]  # fmt: skip
    words = [scales[ROW + 8 * half, 2 * one] | scales[ROW + 8 * half, 2 * one + 1] << 16
             for half in range(2) for one in range(4)]  # fmt: skip
    mixed = [of[ROW + 8 * half, 2 * QUARTER] | of[ROW + 8 * half, 2 * QUARTER + 1] << 16
             for of in (biases, scales) for half in range(2)]  # fmt: skip
    results = Lanes([*of_chunks, *words, *mixed, *sides]).run(blocks.finish(chunks, step))
    got = [one.view(np.float32) for one in results]
    for half in range(2):
        np.testing.assert_allclose(got[half], wanted[ROW + 8 * half, QUARTER], atol=4e-4 * OFFSET[bits])
        np.testing.assert_array_equal(got[half], got[2 + half])


def _problem(**change: Any) -> Problem:
    plain = Problem("bfloat16", "affine", 4, 64, transpose=True, gated=False, pairs=8, m=1, n=768, k=2048, experts=128)
    return plain._replace(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp4", "group_size": 32}, {"bits": 6}, {"group_size": 32}, {"m": 2},
        {"bits": 8}, {"bits": 8, "group_size": 128, "pairs": 64}, {"transpose": False}, {"pairs": 257}, {"n": 760},
        {"pairs": 129, "experts": 1024}, {"pairs": 129, "k": 4096},
        {"k": 2880}, {"k": 512 * 4 * 8},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert moe_gemv_persistent.rejects(_problem(), H200) is None
    assert moe_gemv_persistent.rejects(_problem(**change), H200)


def test_eight_bits_take_the_kernel_with_more_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert moe_gemv_persistent.rejects(_problem(bits=8, pairs=32), H200) is None


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, "short"), ({"pairs": 128}, "short-shared"), ({"gated": True}, "short-gated"),
        ({"gated": True, "pairs": 128}, "short-gated-shared"), ({"k": 4096}, "long"),
        ({"k": 4096, "pairs": 128}, "long"), ({"k": 6144}, "deep"), ({"k": 1536, "pairs": 128}, "three-shared"),
        ({"bits": 8}, "bytes"), ({"experts": 8}, "short"), ({"experts": 8, "pairs": 64}, "short-shared"),
        ({"bits": 8, "k": 4096}, "deep"),
        ({"pairs": 256}, "short-many"), ({"pairs": 256, "k": 768}, "three-many"),
    ],
    ids=str,
)  # fmt: skip
def test_records_are_filed_by_what_registers_depend_on(change: dict[str, Any], name: str) -> None:
    assert moe_gemv_persistent.class_of(_problem(**change), H200) == name


@pytest.mark.parametrize("k", [768, 1024, 2048, 4096])
@pytest.mark.parametrize("experts", [1, 16, 256])
@pytest.mark.parametrize("bits", [4, 8])
def test_each_class_has_a_record(k: int, experts: int, bits: int) -> None:
    """Only a K in many parts takes the record of no class, whose programs are few."""
    filed = {record.shape_class for record in records("gather_qmm") if record.kernel == "moe_gemv_persistent"}
    for gated in (False, True):
        class_ = moe_gemv_persistent.class_of(_problem(k=k, experts=experts, bits=bits, pairs=64, gated=gated), H200)
        assert class_ in filed or k * bits > 4096 * 4


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert moe_gemv_persistent.rejects(_problem(), by_name(name))


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("k", [768, 1024, 1536, 2048, 3072, 4096])
def test_k_is_cut_without_a_rest(k: int, bits: int) -> None:
    cut = moe_gemv_persistent.cut_of(k, bits)
    assert cut is not None
    assert k * bits % (cut.slices * cut.per * moe_gemv_persistent.CHUNK_BITS) == 0


def _experts(n: int, k: int, offset: int = 0) -> Any:
    words = torch.zeros(5 * n * k // 8, dtype=torch.int32).view(5, n, k // 8)
    scales = torch.zeros(5 * n * k // 64 + offset, dtype=torch.bfloat16)[offset:].view(5, n, k // 64)
    return words, scales, scales


@pytest.mark.parametrize("gated", [False, True])
def test_tensors_at_odd_addresses_take_the_other_kernel(gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(backends, "MEASURED", True)
    own = "rocmend.kernels.backends.hopper.gather_qmm.kernels"
    walking = importlib.import_module(f"{own}.moe_gemv_persistent").moe_gemv_persistent_kernel
    other = importlib.import_module("rocmend.kernels.ops.matmul.quantized_matmul.kernels.gemv").gemv_kernel
    chosen = torch.zeros(2, 3, dtype=torch.int32)
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
