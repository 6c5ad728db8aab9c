"""The kernel whose programs have an expert's rows of x: its PTX on NumPy, lane by lane, and where it is taken.

Gluon has no interpreter: on a GPU the suite has cases that take the kernel.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import executor, gather_qmm
from rocmend.kernels.common import gluon
from rocmend.kernels.ops.gather_qmm import Problem, experts
from rocmend.kernels.ops.gather_qmm.kernels import experts_blocks as blocks
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config, config_for
from rocmend.kernels.tuning.config import Value
from rocmend.kernels.tuning.lookup import forced

pytestmark = pytest.mark.cpu

H200 = by_name("sm90", compute_units=132)
WAVEFRONTS, ROWS, QUARTERS = 4, 8, 4
LANES = (WAVEFRONTS, ROWS, QUARTERS)
TAKEN: dict[str, Value] = {
    "TILES": 6, "FEWER": 0, "AHEAD": 4, "SOON": 1, "INIT": 0, "ROT": 0, "TILES_AT_ONCE": 6, "ROOM": 512,
    "num_warps": 8, "num_stages": 1, "launch_pdl": True,
}  # fmt: skip


def _halves(words: Any) -> Any:
    """Return the two bfloat16 of words as float64: [..., 2]."""
    words = np.asarray(words, np.uint32)
    return np.stack([(words << 16).view(np.float32), (words & 0xFFFF0000).view(np.float32)], -1).astype(np.float64)


def _packed(numbers: Any) -> Any:
    """Return words of two bfloat16 each, the nearest ones, ties to even, of [..., 2] that none of are denormals."""
    fraction, exponent = np.frexp(np.asarray(numbers, np.float64))
    near = np.ldexp(np.rint(fraction * 256) / 256, exponent).astype(np.float32)
    bits = near.view(np.uint32) >> 16
    return bits[..., 0] | (bits[..., 1] << 16)


def _permuted(low: Any, high: Any, select: Any) -> Any:
    both = [(word >> np.uint32(8 * at)) & 0xFF for word in (low, high) for at in range(4)]
    parts = [np.choose(select >> np.uint32(4 * at) & 7, both) << np.uint32(8 * at) for at in range(4)]
    return parts[0] | parts[1] | parts[2] | parts[3]


class Lanes:
    """Four wavefronts that run a block of PTX, and shared memory by address, in words."""

    def __init__(self) -> None:
        self.memory: dict[int, int] = {}
        self.held: dict[str, Any] = {}

    def of(self, operand: str) -> Any:
        """Return what a register has, or a number."""
        if operand in self.held:
            return self.held[operand]
        return np.uint32(int(operand, 0))

    def run(self, block: str, operands: dict[str, Any]) -> None:
        """Run a block."""
        self.held = dict(operands)
        for statement in re.split(r";\s*", block.strip().removeprefix("{").removesuffix("}").strip()):
            if statement and not statement.startswith(".reg"):
                name, _, rest = statement.partition(" ")
                self._step(name, re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", rest))

    def _step(self, name: str, args: list[str]) -> None:
        to, of = (args[0], args[1:]) if args else ("", [])
        if name == "mov.b64":
            low, _ = re.findall(r"[^{},\s]+", of[0])
            # The upper half is the same in all.
            self.held[to] = np.asarray(self.of(low)).astype(np.uint64)
        elif name == "add.u64":
            self.held[to] = self.held[of[0]] + np.uint64(int(of[1]))
        elif name == "shfl.sync.idx.b32":
            assert of[2:] == ["0x1c1f", "0xffffffff"]
            source = np.broadcast_to(self.of(of[1]), LANES).astype(np.int64)
            self.held[to] = np.take_along_axis(self.of(of[0]), source, 2)
        elif name == "st.shared.b32":
            where, what = self.of(to.strip("[]")), self.of(of[0])
            for address, word in zip(np.ravel(where), np.ravel(what), strict=True):
                self.memory[int(address)] = int(word)
        elif name.startswith("wgmma.mma_async"):
            self._multiply(args)
        elif not name.startswith("wgmma."):
            instructions: dict[str, Callable[..., Any]] = {
                "mov.b32": lambda one: one,
                "shr.u32": lambda one, by: one >> by,
                "and.b32": lambda one, other: one & other,
                "prmt.b32": _permuted,
                "fma.rn.bf16x2": lambda one, other, third: _packed(_halves(one) * _halves(other) + _halves(third)),
                "mul.rn.bf16x2": lambda one, other: _packed(_halves(one) * _halves(other)),
            }
            self.held[to] = instructions[name](*(self.of(one) for one in of))

    def _multiply(self, args: list[str]) -> None:
        """Multiply 64 rows of 16 columns: the unit's own order of registers, and of swizzled shared memory."""
        sums, left = (re.findall(r"[^{},\s]+", one) for one in args[:2])
        start = (int(np.ravel(self.held[args[2]])[0]) & 0x3FFF) << 4
        tokens = len(sums) * 2
        x = np.zeros((tokens, 16))
        for token in range(tokens):
            for pair in range(8):
                linear = start + token // 8 * 1024 + token % 8 * 128 + pair * 4
                x[token, 2 * pair : 2 * pair + 2] = _halves(self.memory[linear ^ ((linear >> 7 & 7) << 4)])
        a = np.zeros((WAVEFRONTS, 16, 16))
        for at, register in enumerate(left):
            column = np.arange(QUARTERS) * 2 + at // 2 * 8
            for half in range(2):
                a[:, at % 2 * 8 : at % 2 * 8 + 8, column + half] = _halves(self.held[register])[..., half]
        product = a @ x.T
        for at, register in enumerate(sums):
            tile, row, half = at // 4, at // 2 % 2, at % 2
            column = tile * 8 + np.arange(QUARTERS) * 2 + half
            self.held[register] = self.held[register] + product[:, row * 8 : row * 8 + 8, column]


def _bfloat16(drawn: Any, *shape: int) -> Any:
    """Return words of random numbers, two in a word, and the numbers."""
    numbers = torch.tensor(drawn.standard_normal(shape)).to(torch.bfloat16)
    return numbers.view(torch.int16).numpy().view(np.uint32), numbers.double().numpy()


@pytest.mark.parametrize(("tiles", "places"), [(2, 2), (4, 6), (7, 7)])
@pytest.mark.parametrize("chunk", [0, 6])
def test_sums_of_128_columns(tiles: int, places: int, chunk: int) -> None:
    drawn = np.random.default_rng(tiles + chunk)
    base, tokens, quarter, register = 4096, 8 * tiles, chunk // 4, chunk % 4
    words = drawn.integers(0, 1 << 32, (64, 16), dtype=np.uint32)
    _, scales = _bfloat16(drawn, 64, 32)
    _, biases = _bfloat16(drawn, 64, 32)
    x_words, x = _bfloat16(drawn, tokens, 128)
    wavefront, r, q = np.meshgrid(np.arange(WAVEFRONTS), np.arange(ROWS), np.arange(QUARTERS), indexing="ij")
    lanes = Lanes()
    # As ``_into_memory`` has it, for each tile and word.
    for tile in range(tiles):
        for part in range(4):
            row = tile * 8 + r[0]
            operands = {f"${4 + at}": x_words[row, q[0] * 16 + part * 4 + at] for at in range(4)}
            for pair in range(4):
                place = (part % 2 * 4 + pair ^ r[0]) * 16 + q[0] * 4
                operands[f"${8 + pair}"] = base + part // 2 * (places * 1024) + row * 128 + place
            lanes.run(blocks.put()[0], operands)
    line = wavefront * 16 + r * 2
    groups = _packed(scales.reshape(64, 16, 2)), _packed(biases.reshape(64, 16, 2))
    given = [[of[line + row, q * 4 + at] for at in range(4)] for of in groups for row in range(2)]
    given += [[np.uint32(quarter)] * 4, [np.where(q < 2, np.uint32(0x1010), np.uint32(0x3232))] * 4]
    lanes.run(
        blocks.picked(register)[0], {f"${4 + at}": one for at, one in enumerate(one for four in given for one in four)}
    )
    beside = [lanes.held[f"${at}"] for at in range(4)]
    block, constraints = blocks.product(tiles, places)
    assert len(constraints.split(",")) == 8 * tiles + 16
    operands = {f"${at}": np.zeros(LANES) for at in range(4 * tiles)}
    given = [[words[line + row, q * 4 + at] for at in range(4)] for row in range(2)]
    given += [beside, [np.uint32((base >> 4) + 0x10000)] * 4]
    operands |= {f"${8 * tiles + at}": one for at, one in enumerate(one for four in given for one in four)}
    lanes.run(block, operands)
    codes = (words[:, :, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15).reshape(64, 2, 64)
    of_groups = slice(2 * chunk, 2 * chunk + 2)
    weights = codes * scales[:, of_groups, None] + biases[:, of_groups, None]
    weights = torch.tensor(weights).to(torch.bfloat16).double().numpy().reshape(64, 128)
    wanted = weights @ x.T
    for tile in range(tiles):
        for at in range(4):
            got = lanes.held[f"${4 * tile + at}"] * 2.0**23
            assert np.allclose(got, wanted[line + at // 2, tile * 8 + q * 2 + at % 2], rtol=1e-9, atol=1e-9)


def test_numbers_beside_words_are_powers_of_two() -> None:
    for word, power in ((blocks.SCALE, 110), (blocks.SCALE_16, 106), (blocks.DOWN, -23)):
        assert np.array_equal(_halves(np.uint32(word)), [2.0**power] * 2)
    # A code is a denormal times 2^133.
    assert np.frombuffer(bytes.fromhex(blocks.BACK.removeprefix("0f")), ">f4")[0] == 2.0 ** (133 - 110)


def _problem(**change: Any) -> Problem:
    given: dict[str, Any] = {
        "dtype": "bfloat16", "mode": "affine", "group_size": 64, "bits": 4, "transpose": True, "gated": False,
        "pairs": 4096, "m": 1, "n": 768, "k": 2048, "experts": 128,
    }  # fmt: skip
    return Problem(**{**given, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp4", "group_size": 32}, {"bits": 8}, {"group_size": 32}, {"gated": True},
        {"transpose": False}, {"m": 2}, {"pairs": 1 << 16}, {"experts": 512},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert experts.suits(_problem(), H200)
    assert not experts.suits(_problem(**change), H200)


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "sm100", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert not experts.suits(_problem(), by_name(name))


def test_units_of_work_fill_programs() -> None:
    config = Config(TAKEN)
    assert experts.slices_of(_problem(), config, H200) == 1
    assert experts.slices_of(_problem(experts=64), config, H200) == 2
    assert experts.slices_of(_problem(experts=32, n=1024), config, H200) == 4
    # 80 units, or 160, of which the last 28 come second.
    assert experts.slices_of(_problem(experts=80, n=256), config, H200) == 0


def test_shapes_have_room_for_rows_of_x() -> None:
    config = Config(TAKEN)
    assert [experts.tiles_of(_problem(pairs=pairs)) for pairs in (1024, 2048, 3072, 4096)] == [2, 4, 5, 6]
    assert experts.fits(_problem(), config, H200)
    assert experts.fits(_problem(experts=64, pairs=2048), config, H200)
    # Many tiles more than experts, or hardly a row for each of them.
    assert not experts.fits(_problem(pairs=8192), config, H200)
    assert not experts.fits(_problem(pairs=512), config, H200)
    assert not experts.fits(_problem(k=768), config, H200)
    assert not experts.fits(_problem(k=4096), config, H200)
    assert not experts.fits(_problem(n=704), config, H200)
    assert not experts.fits(_problem(), Config(TAKEN | {"TILES": 0}), H200)
    # With fewer wavefronts there are half as many rows a turn, and half as many columns that they load at once.
    assert not experts.fits(_problem(k=1024), Config(TAKEN | {"num_warps": 16}), H200)
    assert experts.fits(_problem(k=1024), config, H200)


def _launches(offset: int) -> list[executor.Launch]:
    """Return the launches for 64 rows of x and 16 experts, whose scales stand behind some others."""
    x = torch.zeros(64, 1, 1, 1024, dtype=torch.bfloat16)
    beside = torch.zeros(16 * 1024 * 16 + offset, dtype=torch.bfloat16)[offset:].view(16, 1024, 16)
    words = torch.zeros(16, 1024, 128, dtype=torch.int32)
    recorder = executor.Recorder(H200)
    with executor.using(recorder), forced("gather_qmm", "experts", Config(TAKEN)):
        gather_qmm(x, words, beside, beside, rhs_indices=torch.zeros(64, 8, dtype=torch.int32), group_size=64, bits=4)
    return recorder.launches


def test_some_rows_of_each_expert_take_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(gluon, "SUITED", True)
    kernel = importlib.import_module("rocmend.kernels.ops.gather_qmm.kernels.experts").experts_kernel
    (launch,) = _launches(0)
    assert launch.kernel is kernel
    assert launch.grid == (132,)
    assert [launch.constants[name] for name in ("SLICES", "EXPERTS", "TILES")] == [8, 32, 6]
    # All that it takes is given: what is not there by position has to be a constant.
    assert len(launch.args) + len(launch.constants) == len(kernel.arg_names)
    # Tensors at odd addresses take the other kernel.
    assert kernel not in {other.kernel for other in _launches(4)}


def test_records_have_room_for_rows_of_x() -> None:
    for kind in ("low", "middle", "tall"):
        config = config_for("gather_qmm", "experts", kind, H200)
        assert config["TILES"] == 0 or experts.lds_bytes(_problem(), config) <= H200.lds_bytes
