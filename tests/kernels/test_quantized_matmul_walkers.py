"""The kernel whose programs walk over rows: its PTX on a wavefront of NumPy, where it is taken, and how rows are cut.

Gluon has no interpreter: on a GPU the suite has cases that take the kernel.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import numpy as np
from tests.kernels.wavefront import QUARTER, ROW, Wavefront, bits_of, code_words, narrow, packed, wide

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import gluon
from rocmend.kernels.ops.quantized_matmul import Problem, few, host, walkers
from rocmend.kernels.ops.quantized_matmul.kernels import blocks
from rocmend.kernels.ops.quantized_matmul.operands import Operands
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config, config_for

pytestmark = pytest.mark.cpu

H200 = by_name("sm90", compute_units=132)


@pytest.mark.parametrize("bits", [4, 8])
def test_blocks_multiply_a_wavefronts_share(bits: int) -> None:
    drawn = np.random.default_rng(1)
    depth, group = 2048 // bits, 256 // bits
    codes = drawn.integers(0, 1 << bits, (16, depth))
    words = code_words(codes, bits)
    x = narrow(drawn.standard_normal(depth))
    scales, biases = narrow(drawn.standard_normal((2, 16, 8)))
    dense = codes.reshape(16, 8, group) * wide(scales)[:, :, None] + wide(biases)[:, :, None]
    dense = dense.reshape(16, depth)
    wanted = dense @ wide(x).astype(np.float64)

    # Even columns have the first group of a chunk, which quarters 0 and 1 hold, odd ones the second.
    own = QUARTER // 2 == ROW % 2
    products = []
    for chunk in range(4):
        ordered = []
        for word in range(4):
            # Pairs of elements of x, half as many where codes are twice as wide.
            held = 16 // bits
            start = (chunk * 16 + QUARTER * 4 + word) * held
            given = [np.where(own, packed(x)[start + pair % held], 0) for pair in range(4)]
            ordered += Wavefront(given).run(blocks.pairs() if bits == 4 else blocks.pairs_of_bytes())
        at = [chunk * 16 + QUARTER * 4 + word for word in range(4)]
        low, high = ([words[ROW + by, one] for one in at] for by in (0, 8))
        products += Wavefront([*low, *high, *ordered]).run(blocks.product())

    # A sum of x has three parts, in columns of their own; the same for scales, times -128.
    left = wide(x).reshape(8, group).sum(1)
    beside = -128 if bits == 4 else -128 * 17
    own_parts = []
    for sums in (left, np.float32(beside) * left):
        parts = np.zeros((8, 8), np.float32)
        rest = sums.copy()
        for column in range(3):
            parts[column] = wide(narrow(rest))
            rest -= parts[column]
        own_parts += [bits_of(parts[ROW, 2 * QUARTER + of]) for of in (0, 1)]
    fours = [packed(scales)[ROW + by, word] for by in (0, 8) for word in range(4)]
    mixed = [packed(one)[ROW + by, QUARTER] for one in (biases, scales) for by in (0, 8)]
    results = Wavefront([*products, *fours, *mixed, *own_parts]).run(blocks.finish())
    of_row = [one.view(np.float32).reshape(8, 4).sum(1) for one in results]
    near = 4e-6 * np.abs(dense).sum(1).max()
    np.testing.assert_allclose(np.concatenate(of_row[:2]), wanted, atol=near)
    np.testing.assert_array_equal(of_row[2:], of_row[:2])


@pytest.mark.parametrize("bits", [4, 8])
def test_x_is_summed_by_groups(bits: int) -> None:
    x = narrow(np.random.default_rng(2).standard_normal(2048 // bits))
    words = packed(x).reshape(32, -1)  # of each lane
    sums = Wavefront([*words.T, *[QUARTER * 8] * 4]).run(blocks.sums(bits))
    of_group = wide(x).astype(np.float64).reshape(8, -1).sum(1)
    beside = -128 if bits == 4 else -128 * 17
    for group in range(2):
        wanted = of_group[2 * QUARTER + group]
        np.testing.assert_allclose(sums[group].view(np.float32), wanted, atol=1e-5)
        np.testing.assert_allclose(sums[2 + group].view(np.float32), beside * wanted, atol=1e-5 * -beside)


def _problem(**change: Any) -> Problem:
    plain = Problem("bfloat16", "affine", 4, 64, transpose=True, batch=1, rows=1, columns=14336, depth=4096)
    return plain._replace(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp4", "group_size": 32}, {"bits": 2}, {"group_size": 32},
        {"bits": 8, "depth": 5120}, {"bits": 8, "depth": 8192}, {"bits": 8, "group_size": 128},
        {"transpose": False}, {"batch": 2}, {"rows": 2}, {"columns": 14344}, {"depth": 4096 + 512}, {"columns": 4096},
        {"depth": 2 * 4096 * 4096},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert host.kernel_of(_problem(), H200) == "walkers"
    assert host.kernel_of(_problem(**change), H200) != "walkers"


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert host.kernel_of(_problem(), by_name(name)) != "walkers"


@pytest.mark.parametrize("columns", [16, 4096, 14336, 28672, 151936])
@pytest.mark.parametrize("depth", [1024, 2048, 3072, 4096, 14336])
def test_every_tile_is_some_programs(columns: int, depth: int) -> None:
    problem = _problem(columns=columns, depth=depth)
    walk = walkers.walk_of(problem, config_for("quantized_matmul", "walkers", "*", H200), 132)
    assert depth % (walk.slices * walkers.SLICE) == 0
    assert walk.programs * walk.rounds >= columns // 16 > walk.programs * (walk.rounds - 1)
    assert walk.rounds <= walkers.MOST_ROUNDS


def _launched(x: Any, scales: Any) -> executor.Launch:
    """Return the launch for tensors at some addresses."""
    problem = _problem(columns=64, depth=2048)
    w = torch.zeros(64, 256, dtype=torch.int32)
    recorder = executor.Recorder(H200)
    lanes = Config({"BLOCK_M": 8, "AHEAD": 1, "codes": 128, "slices": 4, "fill": 4, "num_warps": 1})
    with executor.using(recorder):
        out = allocate.empty((1, 64), dtype=torch.bfloat16, device=x.device)
        ops = Operands(x, w, scales, scales, problem)
        config = config_for("quantized_matmul", "walkers", "*", H200)
        walkers.plan(ops, config, H200, lanes)(x, w, scales, scales, out)
    (launch,) = recorder.launches
    return launch


def test_tensors_at_odd_addresses_take_the_other_kernel() -> None:
    pytest.importorskip("triton.experimental.gluon")
    kernels = "rocmend.kernels.ops.quantized_matmul.kernels"
    walking = importlib.import_module(f"{kernels}.walkers").walkers_kernel
    lanes = importlib.import_module(f"{kernels}.lanes").lanes_kernel
    x, scales = torch.zeros(1, 2049, dtype=torch.bfloat16), torch.zeros(64 * 32 + 1, dtype=torch.bfloat16)
    at_start = scales[:-1].view(64, 32)
    launch = _launched(x[:, :-1], at_start)
    assert launch.kernel is walking
    # All that it takes is given: what is not there by position has to be a constant.
    assert len(launch.args) + len(launch.constants) == len(walking.arg_names)
    assert _launched(x[:, 1:], at_start).kernel is lanes
    assert _launched(x[:, :-1], scales[1:].view(64, 32)).kernel is lanes


@pytest.mark.parametrize(
    ("change", "kernel"),
    [
        ({}, "gemv"), ({"dtype": "float16"}, "gemv"), ({"dtype": "float32"}, "gemv"), ({"rows": 2}, "lanes"),
        ({"columns": 4096}, "lanes"), ({"bits": 8}, "lanes"), ({"mode": "mxfp4"}, "lanes"),
    ],
    ids=str,
)  # fmt: skip
def test_one_row_against_many_groups_of_32_is_streamed(
    change: dict[str, Any], kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few, "_SUITED", True)
    assert host.kernel_of(_problem(group_size=32, **change), H200) == kernel
