"""The kernel whose programs walk over experts' tiles: its PTX on a wavefront of NumPy, and where it is taken.

Gluon has no interpreter: on a GPU the suite has cases that take the kernel.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.kernels.test_quantized_matmul_walkers import QUARTER, ROW, Wavefront

from rocmend.kernels import executor, gather_qmm, gather_qmm_swiglu
from rocmend.kernels.ops.gather_qmm import Problem, walkers
from rocmend.kernels.ops.gather_qmm.kernels import blocks
from rocmend.kernels.ops.quantized_matmul import few
from rocmend.kernels.target import by_name

pytestmark = pytest.mark.cpu
H200 = by_name("sm90", compute_units=132)
LANE = np.arange(32, dtype=np.uint32)
SPECIAL = {
    "%laneid": LANE,
    "%lanemask_lt": (np.uint32(1) << LANE) - np.uint32(1),
    "%lanemask_eq": np.uint32(1) << LANE,
}


class Voters:
    """Registers of 32 lanes, and the instructions of ``ranks``."""

    def __init__(self, operands: list[Any], results: int) -> None:
        self.results = results
        self.held: dict[str, Any] = {
            f"${results + at}": np.asarray(one, np.int64).astype(np.uint32) for at, one in enumerate(operands)
        }

    def value(self, name: str) -> Any:
        if name in self.held:
            return self.held[name]
        return SPECIAL[name] if name in SPECIAL else np.full(32, int(name, 0) & 0xFFFFFFFF, np.uint32)

    def run(self, block: str) -> list[Any]:
        for statement in re.split(r";\s*", block.strip().strip("{}").strip()):
            if statement and not statement.startswith(".reg"):
                self.step(*statement.split(None, 1))
        return [self.held[f"${at}"] for at in range(self.results)]

    def step(self, name: str, rest: str) -> None:
        to, *of = re.split(r",\s*", rest)
        self.held[to] = DOES[name](*(self.value(each) for each in of))


def _voted(lanes: Any, _members: Any) -> Any:
    return np.full(32, sum(1 << lane for lane in range(32) if lanes[lane]), np.uint32)


def _agreeing(a: Any, b: Any, c: Any, table: Any) -> Any:
    assert int(table[0]) == 0x90
    return a & ~(b ^ c)


DOES: dict[str, Any] = {
    "mov.b32": lambda a: a,
    "mov.u32": lambda a: a,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "shl.b32": lambda a, b: a << b,
    "shr.s32": lambda a, b: (a.view(np.int32) >> b.view(np.int32)).view(np.uint32),
    "lop3.b32": _agreeing,
    "popc.b32": lambda a: np.array([int(one).bit_count() for one in a], np.uint32),
    "add.u32": lambda a, b: a + b,
    "setp.ne.u32": lambda a, b: a != b,
    "setp.eq.u32": lambda a, b: a == b,
    "setp.ge.and.s32": lambda a, b, p: (a.view(np.int32) >= b.view(np.int32)) & p,
    "selp.b32": lambda a, b, p: np.where(p, a, b),
    "vote.sync.ballot.b32": _voted,
}


@pytest.mark.parametrize("words", [1, 2, 4])
@pytest.mark.parametrize("experts", [1, 3, 128, 256])
@pytest.mark.parametrize("missing", [0, 5])
def test_list_of_items(words: int, experts: int, missing: int) -> None:
    chosen = np.random.default_rng(words).integers(0, experts, 32 * words)
    if missing:
        chosen[-missing:] = -1
    packed = np.concatenate(Voters(list(chosen.reshape(words, 32)), words).run(blocks.ranks(words)))
    seen: dict[int, int] = {}
    items = 0
    for pair, expert in enumerate(chosen[: len(chosen) - missing]):
        before = seen.get(int(expert), 0)
        seen[int(expert)] = before + 1
        place = blocks.NOWHERE
        if before % blocks.MATES == 0:
            place, items = items, items + 1
        assert (packed[pair] >> 16, packed[pair] & 0xFFFF) == (place, before)
    assert all(packed[len(chosen) - missing :] >> 16 == blocks.NOWHERE)


def _narrow(numbers: Any) -> Any:
    """Return the bits of bfloat16, cut off."""
    return np.asarray(numbers, np.float32).view(np.uint32) >> 16


def _wide(halves: Any) -> Any:
    return (np.asarray(halves, np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("chunks", [2, 3, 4])
def test_a_step_is_scaled_and_summed_for_each_row_of_x(chunks: int) -> None:
    """A quarter has a row of x: its two columns are a chunk's groups, and the two parts of its sums."""
    drawn = np.random.default_rng(chunks)
    sums = drawn.standard_normal((4, 8)).astype(np.float32)
    sums[:, 2 * chunks :] = 0
    products = drawn.standard_normal((16, 4, 2 * chunks)).astype(np.float32)
    scales, biases = _narrow(drawn.standard_normal((2, 16, 8)))
    scales[:, 2 * chunks :] = biases[:, 2 * chunks :] = 0
    wanted = np.einsum("rqg,rg->rq", products.astype(np.float64), _wide(scales[:, : 2 * chunks]))
    wanted += np.einsum("qg,rg->rq", sums.astype(np.float64), _wide(biases) - 128 * _wide(scales))

    of_chunks = []
    for chunk in range(chunks):
        for half in range(2):
            of_chunks += [products[ROW + 8 * half, QUARTER, 2 * chunk + group].view(np.uint32) for group in range(2)]
    words = [scales[ROW + 8 * half, 2 * one] | scales[ROW + 8 * half, 2 * one + 1] << 16
             for half in range(2) for one in range(4)]  # fmt: skip
    mixed = [of[ROW + 8 * half, 2 * QUARTER] | of[ROW + 8 * half, 2 * QUARTER + 1] << 16
             for of in (biases, scales) for half in range(2)]  # fmt: skip
    high = _wide(_narrow(sums))
    parts = np.stack([high, _wide(_narrow(sums - high))])[ROW % 2, ROW // 2]  # of lanes, by groups
    own = [np.float32(factor) * parts[LANE, 2 * QUARTER + group] for factor in (1, -128) for group in range(2)]
    results = Wavefront([*of_chunks, *words, *mixed, *(one.view(np.uint32) for one in own)]).run(blocks.finish(chunks))
    got = [one.view(np.float32) for one in results]
    for half in range(2):
        np.testing.assert_allclose(got[half], wanted[ROW + 8 * half, QUARTER], atol=0.05)
        np.testing.assert_array_equal(got[half], got[2 + half])


def _problem(**change: Any) -> Problem:
    plain = Problem("bfloat16", "affine", 4, 64, transpose=True, gated=False, pairs=8, m=1, n=768, k=2048, experts=128)
    return plain._replace(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp4", "group_size": 32}, {"bits": 8}, {"group_size": 32}, {"m": 2},
        {"transpose": False}, {"pairs": 129}, {"n": 760}, {"k": 2880}, {"k": 512 * 4 * 8},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "SUITED", True)
    assert walkers.suits(_problem(), H200)
    assert not walkers.suits(_problem(**change), H200)


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "SUITED", True)
    assert not walkers.suits(_problem(), by_name(name))


@pytest.mark.parametrize("k", [768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 14336])
def test_k_is_cut_without_a_rest(k: int) -> None:
    cut = walkers.cut_of(k)
    assert cut is not None
    assert k % (cut.slices * cut.per * walkers.CHUNK) == 0


def _experts(n: int, k: int, offset: int = 0) -> Any:
    words = torch.zeros(5 * n * k // 8, dtype=torch.int32).view(5, n, k // 8)
    scales = torch.zeros(5 * n * k // 64 + offset, dtype=torch.bfloat16)[offset:].view(5, n, k // 64)
    return words, scales, scales


@pytest.mark.parametrize("gated", [False, True])
def test_tensors_at_odd_addresses_take_the_other_kernel(gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(few, "SUITED", True)
    kernels = "rocmend.kernels.ops.gather_qmm.kernels"
    walking = importlib.import_module(f"{kernels}.walkers").walkers_kernel
    diagonal = importlib.import_module(f"{kernels}.diagonal").diagonal_kernel
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
    assert launched(x[4:-4].view(2, 1, 1, 768), _experts(32, 768)).kernel is diagonal
    assert launched(at_start, _experts(32, 768, offset=2)).kernel is diagonal
