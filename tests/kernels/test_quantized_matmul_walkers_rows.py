"""The kernel for two to eight rows of x whose programs walk over rows of weights: its PTX on a wavefront of NumPy."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.kernels.wavefront import LANE, QUARTER, ROW, Wavefront, bits_of, code_words, narrow, packed, wide

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import gluon
from rocmend.kernels.ops.quantized_matmul import Problem, host, walkers_rows
from rocmend.kernels.ops.quantized_matmul.kernels import blocks_rows
from rocmend.kernels.ops.quantized_matmul.operands import Operands
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config, config_for

pytestmark = pytest.mark.cpu
H200 = by_name("sm90", compute_units=132)


@pytest.mark.parametrize("size", [1.0, 2.0**44, 2.0**-60])
def test_blocks_multiply_eight_rows_of_x_with_a_wavefronts_share(size: float) -> None:
    drawn = np.random.default_rng(1)
    depth = 512
    codes = drawn.integers(0, 16, (16, depth))
    words = code_words(codes)
    x = narrow(drawn.standard_normal((8, depth)) * size)
    scales, biases = narrow(drawn.standard_normal((2, 16, depth // 64)))
    dense = codes.reshape(16, -1, 64) * wide(scales)[:, :, None] + wide(biases)[:, :, None]
    wanted = dense.reshape(16, depth) @ wide(x).astype(np.float64).T

    # Shared memory: x, then its sums.
    of_word = blocks_rows.WORD_BYTES
    sums_at = 16 * of_word
    shared = np.full(sums_at // 4 + of_word // 4, 0xFFFFFFFF, np.uint32)
    # Words 0 and 1 of a chunk are of its first group, which quarters 0 and 1 hold; the others are given its halves.
    for place in range(16):
        chunk, word = place // 4, place % 4
        given = np.where(word // 2 != QUARTER // 2, 2, 0)
        eight = (chunk * 16 + word // 2 * 8 + QUARTER % 2 * 4 + given + word % 2) * 4
        of_x = [packed(x)[ROW, eight + at] for at in range(4)]
        to = place * of_word + LANE * 16
        Wavefront([*of_x, *[to] * 4], shared=shared).run(blocks_rows.placed(), 0)
    ordered = [
        [
            shared[(place * of_word + LANE * 16) // 4 + at]
            for place in range(4 * chunk, 4 * chunk + 4)
            for at in range(4)
        ]
        for chunk in range(4)
    ]

    Wavefront([LANE * 16, sums_at + LANE * 16, ROW], 1, shared).run(blocks_rows.totals(of_word), 0)
    thirds = [shared[(sums_at + LANE * 16) // 4 + at] for at in range(3)]
    left = wide(x).astype(np.float64).reshape(8, 8, 64).sum(2)
    for group in range(2):
        total = sum(wide(third >> np.uint32(16 * group) & 0xFFFF).astype(np.float64) for third in thirds)
        np.testing.assert_allclose(total, left[ROW, 2 * QUARTER + group], atol=1e-5 * size)

    sums: list[Any] = [np.zeros(32, np.uint32)] * 4
    quads = [[one[ROW + by, QUARTER]] * 4 for one in (packed(biases), packed(scales)) for by in (0, 8)]
    for chunk in range(4):
        places = [chunk * 16 + QUARTER * 4 + word for word in range(4)]
        low, high = ([words[ROW + by, one] for one in places] for by in (0, 8))
        operands = [*sums, *low, *high, *ordered[chunk], *quads[2], *quads[3], *[QUARTER // 2] * 4]
        sums = Wavefront(operands).run(blocks_rows.product(chunk))
    restored = [bits_of(one.view(np.float32) * np.float32(blocks_rows.RESTORE)) for one in sums]
    rest = [*restored, *quads[0], *quads[1], *[sums_at + LANE * 16] * 4]
    sums = Wavefront(rest, shared=shared).run(blocks_rows.others())
    got = np.zeros((16, 8), np.float32)
    for at in range(4):
        got[ROW + at // 2 * 8, 2 * QUARTER + at % 2] = sums[at].view(np.float32)
    np.testing.assert_allclose(got, wanted, atol=4e-6 * size * np.abs(dense).sum((1, 2)).max())


def _problem(**change: Any) -> Problem:
    plain = Problem("bfloat16", "affine", 4, 64, transpose=True, batch=1, rows=8, columns=14336, depth=4096)
    return plain._replace(**change)


def _record(problem: Problem) -> Config:
    return config_for("quantized_matmul", "walkers_rows", walkers_rows.depth_class(problem), H200)


@pytest.mark.parametrize("change", [{}, {"rows": 2}, {"group_size": 128}, {"depth": 5120}, {"depth": 8192}], ids=str)
def test_two_to_eight_rows_against_many_weights_take_the_kernel(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert host.kernel_of(_problem(**change), H200) == "walkers_rows"


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp4", "group_size": 32}, {"bits": 8}, {"group_size": 32}, {"batch": 2},
        {"transpose": False}, {"rows": 1}, {"rows": 9}, {"columns": 14344}, {"depth": 4096 + 256}, {"columns": 4096},
        {"depth": 14336},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert host.kernel_of(_problem(**change), H200) != "walkers_rows"


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert host.kernel_of(_problem(), by_name(name)) != "walkers_rows"


@pytest.mark.parametrize("columns", [16, 4096, 14336, 28672, 151936])
@pytest.mark.parametrize("depth", [512, 1536, 4096, 5120, 7168, 8192])
def test_every_tile_is_some_wavefronts(columns: int, depth: int) -> None:
    problem = _problem(columns=columns, depth=depth)
    record = _record(problem)
    walk = walkers_rows.walk_of(problem, record, 132)
    assert depth % (walk.slices * walkers_rows.SLICE) == 0
    assert walk.slices * walk.side <= record["num_warps"]
    tiles, at_once = columns // 16, walk.programs * walk.side
    assert at_once * walk.rounds >= tiles > at_once * (walk.rounds - 1)
    # What Triton can have wavefronts of.
    assert walk.slices * walk.side & (walk.slices * walk.side - 1) == 0


def _launched(x: Any, scales: Any) -> executor.Launch:
    """Return the launch for tensors at some addresses."""
    problem = _problem(rows=3, columns=64, depth=2048)
    w = torch.zeros(64, 256, dtype=torch.int32)
    recorder = executor.Recorder(H200)
    lanes = Config({"BLOCK_M": 8, "AHEAD": 1, "codes": 128, "slices": 4, "fill": 4, "num_warps": 1})
    with executor.using(recorder):
        out = allocate.empty((3, 64), dtype=torch.bfloat16, device=x.device)
        ops = Operands(x, w, scales, scales, problem)
        walkers_rows.plan(ops, _record(problem), H200, lanes)(x, w, scales, scales, out)
    (launch,) = recorder.launches
    return launch


def test_tensors_at_odd_addresses_take_the_other_kernel() -> None:
    pytest.importorskip("triton.experimental.gluon")
    kernels = "rocmend.kernels.ops.quantized_matmul.kernels"
    walking = importlib.import_module(f"{kernels}.walkers_rows").walkers_rows_kernel
    lanes = importlib.import_module(f"{kernels}.lanes").lanes_kernel
    x, scales = torch.zeros(3, 2056, dtype=torch.bfloat16), torch.zeros(64 * 32 + 1, dtype=torch.bfloat16)
    at_start = scales[:-1].view(64, 32)
    launch = _launched(x[:, :2048], at_start)
    assert launch.kernel is walking
    # All that it takes is given: what is not there by position has to be a constant.
    assert len(launch.args) + len(launch.constants) == len(walking.arg_names)
    assert _launched(x[:, 1:2049], at_start).kernel is lanes
    assert _launched(x[:, :2048], scales[1:].view(64, 32)).kernel is lanes
    # Rows of x that do not stand at multiples of 16 bytes.
    assert _launched(torch.zeros(3, 2049, dtype=torch.bfloat16)[:, :2048], at_start).kernel is lanes
