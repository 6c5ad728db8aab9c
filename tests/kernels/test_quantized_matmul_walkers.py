"""The kernel whose programs walk over rows: its PTX on a wavefront of NumPy, where it is taken, and how rows are cut.

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

from rocmend.kernels import allocate, executor
from rocmend.kernels.ops.quantized_matmul import Problem, few, host, walkers
from rocmend.kernels.ops.quantized_matmul.kernels import blocks
from rocmend.kernels.ops.quantized_matmul.operands import Operands
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config, config_for

pytestmark = pytest.mark.cpu

LANE = np.arange(32)
ROW, QUARTER = LANE // 4, LANE % 4
H200 = by_name("sm90", compute_units=132)


def _wide(halves: Any) -> Any:
    """Return bfloat16, given as their bits, as float32."""
    return (np.asarray(halves).astype(np.uint32) << 16).view(np.float32)


def _narrow(numbers: Any) -> Any:
    """Return the bits of the nearest bfloat16."""
    bits = np.asarray(numbers, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint32)


def _bits(numbers: Any) -> Any:
    return np.asarray(numbers, np.float32).view(np.uint32)


class Wavefront:
    """Registers of 32 lanes, and what the blocks' instructions do with them."""

    def __init__(self, operands: list[Any]) -> None:
        self.held: dict[str, Any] = {f"${4 + at}": np.asarray(one, np.uint32) for at, one in enumerate(operands)}

    def value(self, name: str) -> Any:
        if name in self.held:
            return self.held[name]
        return np.full(32, int(f"0x{name[2:]}" if name.startswith("0f") else name, 0), np.uint32)

    def number(self, name: str) -> Any:
        return self.value(name).view(np.float32)

    def run(self, block: str) -> list[Any]:
        for statement in re.split(r";\s*", block.strip().strip("{}").strip()):
            if statement and not statement.startswith(".reg"):
                self.step(*statement.split(None, 1))
        return [self.held[f"${at}"] for at in range(4)]

    def step(self, name: str, rest: str) -> None:
        if name.startswith("mma"):
            self.multiply(*(re.split(r",\s*", part) for part in re.findall(r"\{([^}]*)\}", rest)))
            return
        to, *of = re.split(r",\s*", rest)
        one = self.value(of[0])
        if name in ("mov.b32", "mov.f32"):
            self.held[to] = one
        elif name == "shr.u32":
            self.held[to] = one >> self.value(of[1])
        elif name == "shl.b32":
            self.held[to] = one << self.value(of[1])
        elif name == "and.b32":
            self.held[to] = one & self.value(of[1])
        elif name == "lop3.b32":
            assert int(of[3], 0) == 0xEA
            self.held[to] = (one & self.value(of[1])) | self.value(of[2])
        elif name == "prmt.b32":
            both = [(word >> np.uint32(8 * at)) & 0xFF for word in (one, self.value(of[1])) for at in range(4)]
            picked = [both[int(of[2], 0) >> (4 * at) & 7] << np.uint32(8 * at) for at in range(4)]
            self.held[to] = picked[0] | picked[1] | picked[2] | picked[3]
        elif name == "add.f32":
            self.held[to] = _bits(self.number(of[0]) + self.number(of[1]))
        elif name == "mul.f32":
            self.held[to] = _bits(self.number(of[0]) * self.number(of[1]))
        elif name == "fma.rn.f32":
            product = self.number(of[0]).astype(np.float64) * self.number(of[1])
            self.held[to] = _bits(product + self.number(of[2]))
        else:
            raise AssertionError(name)

    def multiply(self, d: list[str], a: list[str], b: list[str], c: list[str]) -> None:
        left, right, sums = np.zeros((16, 16)), np.zeros((16, 8)), np.zeros((16, 8))
        for half in range(2):
            for at in range(4):
                terms = 2 * QUARTER + at // 2 * 8 + half
                left[ROW + at % 2 * 8, terms] = _wide(self.value(a[at]) >> 16 * half & 0xFFFF)
            for at in range(2):
                right[2 * QUARTER + 8 * at + half, ROW] = _wide(self.value(b[at]) >> 16 * half & 0xFFFF)
        for at in range(4):
            sums[ROW + at // 2 * 8, 2 * QUARTER + at % 2] = self.number(c[at])
        sums += left @ right
        for at in range(4):
            self.held[d[at]] = _bits(sums[ROW + at // 2 * 8, 2 * QUARTER + at % 2])


def _words(halves: Any) -> Any:
    """Return neighbours in one word."""
    return halves[..., 0::2] | (halves[..., 1::2] << 16)


def test_blocks_multiply_a_wavefronts_share() -> None:
    drawn = np.random.default_rng(1)
    codes = drawn.integers(0, 16, (16, 512))
    packed = np.zeros((16, 64), np.uint32)
    for place in range(8):
        packed |= codes[:, place::8].astype(np.uint32) << np.uint32(4 * place)
    x = _narrow(drawn.standard_normal(512))
    scales, biases = _narrow(drawn.standard_normal((2, 16, 8)))
    dense = (codes.reshape(16, 8, 64) * _wide(scales)[:, :, None] + _wide(biases)[:, :, None]).reshape(16, 512)
    wanted = dense @ _wide(x).astype(np.float64)

    # Even columns have the first group of a chunk, which quarters 0 and 1 hold, odd ones the second.
    own = QUARTER // 2 == ROW % 2
    products = []
    for chunk in range(4):
        ordered = []
        for word in range(4):
            eight = (chunk * 128 + QUARTER * 32 + word * 8) // 2
            ordered += Wavefront([np.where(own, _words(x)[eight + at], 0) for at in range(4)]).run(blocks.pairs())
        at = [chunk * 16 + QUARTER * 4 + word for word in range(4)]
        low, high = ([packed[ROW + by, one] for one in at] for by in (0, 8))
        products += Wavefront([*low, *high, *ordered]).run(blocks.product())

    # A sum of x has three parts, in columns of their own; the same for scales, times -128.
    left = _wide(x).reshape(8, 64).sum(1)
    parts = np.zeros((8, 8), np.float32)
    for column in range(3):
        parts[column] = _wide(_narrow(left))
        left = left - parts[column]
    own_parts = [_bits(factor * parts[ROW, 2 * QUARTER + group]) for factor in (1, -128) for group in (0, 1)]
    fours = [_words(scales)[ROW + by, word] for by in (0, 8) for word in range(4)]
    mixed = [_words(one)[ROW + by, QUARTER] for one in (biases, scales) for by in (0, 8)]
    results = Wavefront([*products, *fours, *mixed, *own_parts]).run(blocks.finish())
    of_row = [one.view(np.float32).reshape(8, 4).sum(1) for one in results]
    near = 4e-6 * np.abs(dense).sum(1).max()
    np.testing.assert_allclose(np.concatenate(of_row[:2]), wanted, atol=near)
    np.testing.assert_array_equal(of_row[2:], of_row[:2])


def _problem(**change: Any) -> Problem:
    plain = Problem("bfloat16", "affine", 4, 64, transpose=True, batch=1, rows=1, columns=14336, depth=4096)
    return plain._replace(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp4", "group_size": 32}, {"bits": 8}, {"group_size": 32},
        {"transpose": False}, {"batch": 2}, {"rows": 2}, {"columns": 14344}, {"depth": 4096 + 512}, {"columns": 4096},
        {"depth": 2 * 4096 * 4096},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "SUITED", True)
    assert host.kernel_of(_problem(), H200) == "walkers"
    assert host.kernel_of(_problem(**change), H200) != "walkers"


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few, "SUITED", True)
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
        ({}, "stream"), ({"dtype": "float16"}, "stream"), ({"dtype": "float32"}, "planes"), ({"rows": 2}, "lanes"),
        ({"columns": 4096}, "lanes"), ({"bits": 8}, "lanes"), ({"mode": "mxfp4"}, "lanes"),
    ],
    ids=str,
)  # fmt: skip
def test_one_row_against_many_groups_of_32_is_streamed(
    change: dict[str, Any], kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few, "SUITED", True)
    assert host.kernel_of(_problem(group_size=32, **change), H200) == kernel
