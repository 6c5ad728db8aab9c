"""The kernel whose programs have an expert's rows of x: its PTX on NumPy, lane by lane, and where it is taken.

Gluon has no interpreter: on a GPU the suite has cases that take the kernel.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import numpy as np

from rocmend.kernels import backends, executor, gather_qmm, gather_qmm_swiglu
from rocmend.kernels.backends.hopper.gather_qmm import grouped_gemm
from rocmend.kernels.backends.hopper.gather_qmm.kernels import grouped_gemm_ptx as blocks
from rocmend.kernels.common.formats import E2M1
from rocmend.kernels.ops.moe.gather_qmm import Problem
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config, config_for
from rocmend.kernels.tuning.config import Value
from rocmend.kernels.tuning.lookup import forced

pytestmark = pytest.mark.cpu

H200 = by_name("sm90", compute_units=132)
WAVEFRONTS, ROWS, QUARTERS = 8, 8, 4
LANES = (WAVEFRONTS, ROWS, QUARTERS)
PART = 512
TAKEN: dict[str, Value] = {
    "TILES": 6, "fewest": 8, "SLOTS": 4, "ROOM": 512, "REGISTERS": 56, "num_warps": 8, "num_stages": 1,
    "launch_pdl": True,
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


def _names(text: str) -> list[str]:
    return re.findall(r"[^{},\s]+", text)


class Lanes:
    """Eight wavefronts that run a block of PTX, memory from which they copy, and shared memory, in bytes.

    Copies are there at once, and so is what a barrier is waited at for.
    """

    def __init__(self, memory: Any, shared: int) -> None:
        self.memory = memory
        self.shared = np.zeros(shared, np.uint8)
        self.held: dict[str, Any] = {}
        self.arrivals: list[int] = []

    def of(self, operand: str) -> Any:
        """Return what a register has, or a number."""
        return self.held[operand] if operand in self.held else np.uint32(int(operand, 0))

    def run(self, block: str, operands: dict[str, Any]) -> None:
        """Run a block, whose branches all lanes take or none."""
        self.held = {name: np.broadcast_to(held, LANES) for name, held in operands.items()}
        lines = re.split(r";\s*", block.strip().removeprefix("{").removesuffix("}").strip())
        labels = {label: at for at, line in enumerate(lines) for label in re.findall(r"(\w+):\s", line + " ")}
        at = 0
        while at < len(lines):
            line = re.sub(r"^(\w+:\s*)+", "", lines[at])
            at += 1
            if line and not line.startswith(".reg"):
                guard, _, guarded = line.partition(" ") if line.startswith("@") else ("", "", line)
                there = np.broadcast_to(self.held[guard.lstrip("@!")] != ("!" in guard) if guard else True, LANES)
                name, _, rest = guarded.partition(" ")
                args = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", rest)
                if name in {"bra", "bra.uni"}:
                    assert there.all() or not there.any()
                    at = labels[args[0]] if there.all() else at
                else:
                    self._step(name, args, there)

    def _places(self, operand: str) -> Any:
        register, _, offset = operand.strip("[]").partition("+")
        return np.broadcast_to(self.of(register), LANES).astype(np.int64) + int(offset or 0)

    def _load(self, to: str, at: Any, size: int, there: Any) -> None:
        for place, name in enumerate(_names(to)):
            own = np.where(there, at + place * size, 0)[..., None] + np.arange(size)
            whole = (self.shared[own].astype(np.uint32) << (8 * np.arange(size, dtype=np.uint32))).sum(-1)
            self.held[name] = whole.astype(np.uint32)

    def _step(self, name: str, args: list[str], there: Any) -> None:
        to, of = (args[0], args[1:]) if args else ("", [])
        if name.startswith("ld.shared"):
            self._load(to, self._places(of[0]), {"u8": 1, "u16": 2}.get(name.rpartition(".")[2], 4), there)
        elif name.startswith("st.shared"):
            for place, word in enumerate(_names(of[0])):
                for byte in range(4):
                    at = self._places(to) + (4 * place + byte)
                    self.shared[at[there]] = (np.broadcast_to(self.of(word), LANES)[there] >> (8 * byte)) & 0xFF
        elif name.startswith("cp.async.cg"):
            for byte in range(16):
                self.shared[self._places(to)[there] + byte] = self.memory[self._places(of[0])[there] + byte]
        elif name.startswith("wgmma.mma_async"):
            self._multiply(args)
        elif name.startswith("mbarrier.try_wait"):
            self.held[to] = np.broadcast_to(np.bool_(True), LANES)
        elif name.startswith("mbarrier.arrive"):
            self.arrivals += [int(place) for place in self._places(of[0])[there]]
        elif not name.startswith(("wgmma.", "cp.async.", "bar.")):
            self.held[to] = self._computed(name, of)

    def _computed(self, name: str, of: list[str]) -> Any:
        if name.startswith("mov.") and of[0].startswith("{"):
            low, high = (self.of(one) for one in _names(of[0]))
            # The upper half of 64 bits is the same in all.
            return low.astype(np.uint64) if name == "mov.b64" else low | (high << np.uint32(16))
        if name.startswith("setp."):
            compared, other = (self.of(one).astype(np.int32) for one in of)
            by = {"ne": np.not_equal, "eq": np.equal, "gt": np.greater, "ge": np.greater_equal}
            return by[name.split(".")[1]](compared, other)
        given = [self.of(one) for one in of]
        instructions: dict[str, Callable[..., Any]] = {
            "mov.b32": lambda one: one,
            "shr.u32": lambda one, by: one >> by,
            "shl.b32": lambda one, by: one << by,
            "shf.l.wrap.b32": lambda one, _, by: one << by | one >> np.uint32(32 - by),
            "shf.r.wrap.b32": lambda one, _, by: one >> by | one << np.uint32(32 - by),
            "lop3.b32": lambda one, other, third, _: one & third | other & ~third,
            "mul.lo.u32": lambda one, by: (one.astype(np.uint64) * by & 0xFFFFFFFF).astype(np.uint32),
            "max.u32": np.maximum,
            "and.b32": lambda one, other: one & other,
            "xor.b32": lambda one, other: one ^ other,
            "cvt.s64.s32": lambda one: one.astype(np.int32).astype(np.int64),
            "add.s64": lambda one, other: one.astype(np.int64) + np.asarray(other).astype(np.int64),
            "add.u64": lambda one, other: one + np.asarray(other).astype(np.uint64),
            "prmt.b32": _permuted,
            "fma.rn.bf16x2": lambda one, other, third: _packed(_halves(one) * _halves(other) + _halves(third)),
            "mul.rn.bf16x2": lambda one, other: _packed(_halves(one) * _halves(other)),
        }
        return instructions[name](*given)

    def _multiply(self, args: list[str]) -> None:
        """Multiply 16 columns: the unit's own order of registers, and of swizzled shared memory."""
        sums, left = (_names(one) for one in args[:2])
        start = (int(np.ravel(self.held[args[2]])[0]) & 0x3FFF) << 4
        tokens = len(sums) * 2
        token, byte = np.arange(tokens)[:, None], np.arange(32)[None, :]
        linear = start + token // 8 * 1024 + token % 8 * 128 + byte
        x = _halves(self.shared[linear ^ ((linear >> 7 & 7) << 4)].copy().view(np.uint32)).reshape(tokens, 16)
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
    """Return bytes of random numbers, and the numbers."""
    numbers = torch.tensor(drawn.standard_normal(shape)).to(torch.bfloat16)
    return np.ravel(numbers.view(torch.int16).numpy()).view(np.uint8), numbers.double().numpy()


def _four(first: int, *given: Any) -> dict[str, Any]:
    """Number registers of numbers that are the same in all four of a lane."""
    return {f"${first + 4 * at + each}": one for at, one in enumerate(given) for each in range(4)}


WAVEFRONT, R, Q = np.meshgrid(*(np.arange(size) for size in LANES), indexing="ij")


def _stage_x(lanes: Lanes, tiles: int, base: int, rows_at: int) -> None:
    """Bring x to shared memory as ``stage_part`` does."""
    row_of_x, i = R % 2 * 4 + Q, R // 2
    for task in range((tiles + 1) // 2):
        own = task * WAVEFRONTS + WAVEFRONT
        to = base + i // 2 * (tiles * 1024) + row_of_x * 128
        to += own // 4 * 1024 + (own % 4 // 2 * 4 + own % 2 * 2) * (tiles * 1024)
        places = [to + ((i % 2 * 4 + at) ^ row_of_x) * 16 for at in range(4)]
        source = i * 16 + own % 4 // 2 * 512 + own % 2 * 64
        rows_lane = rows_at + row_of_x * 4 + own // 4 * 32
        copied = _four(4, rows_lane) | {f"${8 + at}": place for at, place in enumerate(places)} | _four(12, source)
        lanes.run(blocks.copy_x()[0], copied)
        there = (own < 4 * tiles).astype(np.uint32)
        lanes.run(blocks.turn_x()[0], {f"${4 + at}": place for at, place in enumerate(places)} | _four(8, there))


def _copy_slots(lanes: Lanes, words_from: int, row: int, words_at: int) -> None:
    """Copy words of two slots as ``copy_weights`` does."""
    granule = R % 2 * 4 + Q
    slot_to = words_at + WAVEFRONT * 2048 + R // 2 * 128 + (granule ^ (R // 4)) * 16
    words_of = words_from + (WAVEFRONT * 16 + R // 2) * row + granule * 16
    for at in range(2):
        lanes.run(blocks.copy_words(row)[0], _four(4, slot_to + at * 16384, words_of + at * 128))


class Part(NamedTuple):
    """Where in memory and in shared memory is what, for the products of a part of x.

    Args:
        tiles: Of x.
        row: Bytes of a row of words.
        line: Bytes of a row of scales.
        rows: Of x that there are.
        x: Rows of x as they are in memory.
        words: [128, words of a row].
        beside: Of memory, behind words.
    """

    tiles: int
    row: int
    line: int
    rows: int
    x: Any
    words: Any
    beside: Any

    @property
    def base(self) -> int:
        """Where x begins."""
        return 4096

    @property
    def words_at(self) -> int:
        """Where two slots of words begin."""
        return self.base + 8 * self.tiles * 1024

    @property
    def beside_at(self) -> int:
        """Where a slot of scales begins."""
        return self.words_at + 2 * 16384

    @property
    def filled(self) -> int:
        """Where barriers begin."""
        return self.beside_at + 4096 + 256

    def lanes(self) -> Lanes:
        """Return lanes to whose shared memory x and words were copied."""
        x_bytes = np.ravel(self.x.view(torch.int16).numpy()).view(np.uint8)
        memory = np.concatenate([x_bytes, np.ravel(self.words).view(np.uint8), self.beside])
        lanes = Lanes(memory, self.filled)
        rows_at = self.filled - 256
        offsets = np.where(np.arange(64) < self.rows, np.arange(64) * 1024, -1).astype(np.int32)
        lanes.shared[rows_at:] = offsets.view(np.uint8)
        _stage_x(lanes, self.tiles, self.base, rows_at)
        _copy_slots(lanes, x_bytes.size, self.row, self.words_at)
        return lanes

    def scales_from(self) -> int:
        """Return where scales begin in memory."""
        return int(2 * self.x.numel() + self.words.nbytes)

    def products(self, form: str, lanes: Lanes, beside: Any) -> Any:
        """Multiply both halves of a part, whose lanes have scales ``beside``; return sums by rows of weights and x."""
        count, own = 4 * self.tiles, self.words_at + WAVEFRONT * 2048 + R * 256 + (Q * 2 + R % 2) * 16
        lanes.run(blocks.take(form)[0], _four(12, own, beside, self.filled, 0))
        sums = {f"${at}": np.zeros(LANES) for at in range(count)}
        held = {f"${count + at}": lanes.held[f"${at}"] for at in range(12)}
        block, constraints = blocks.stage(form, self.tiles, 2)
        assert len(constraints.split(",")) == 2 * (count + 12) + 36
        lead = (R * 4 + Q == 0).astype(np.uint32)
        for at in range(2):
            where = np.uint32((self.base >> 4) + 0x10000 + at * self.tiles * 256)
            given = _four(
                2 * (count + 12), (own + at * 16384).astype(np.uint32), where, self.filled + at * 8, lead,
                own + 16384, beside + 8, self.filled + 8, 0, np.uint32(1 - at),
            )  # fmt: skip
            lanes.run(block, sums | held | given)
            sums, held = ({name: lanes.held[name] for name in some} for some in (sums, held))
        # A wavefront lets go of a slot once.
        assert lanes.arrivals == [*[self.filled + 16] * WAVEFRONTS, *[self.filled + 24] * WAVEFRONTS]
        whole = np.zeros((128, 8 * self.tiles))
        for at in range(count):
            whole[WAVEFRONT * 16 + R * 2 + at % 4 // 2, at // 4 * 8 + Q * 2 + at % 2] = sums[f"${at}"]
        return whole

    def wanted(self, weights: Any) -> Any:
        """Return products of weights in float64, of rows of x that there are."""
        there = np.arange(8 * self.tiles)[:, None] < self.rows
        return weights @ np.where(there, self.x.double().numpy(), 0.0).T


def _part(drawn: Any, tiles: int, row: int, line: int, *beside: Any) -> Part:
    x = torch.tensor(drawn.standard_normal((8 * tiles, PART))).to(torch.bfloat16)
    words = drawn.integers(0, 1 << 32, (128, row // 4), dtype=np.uint32)
    return Part(tiles, row, line, 8 * tiles - 3, x, words, np.concatenate(beside))


def _codes(words: Any) -> Any:
    return (words[:, : PART // 8, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15).reshape(128, PART)


@pytest.mark.parametrize("tiles", [2, 3, 6])
def test_sums_of_a_part_of_x(tiles: int) -> None:
    drawn = np.random.default_rng(tiles)
    scale_bytes, scales = _bfloat16(drawn, 128, 32)
    bias_bytes, biases = _bfloat16(drawn, 128, 32)
    part = _part(drawn, tiles, 1024, 64, scale_bytes, bias_bytes)
    lanes = part.lanes()
    scales_to = part.beside_at + WAVEFRONT * 512 + R * 64 + Q * 16
    scales_of = part.scales_from() + (Q // 2) * scale_bytes.size + (WAVEFRONT * 16 + R * 2 + Q % 2) * 64
    lanes.run(blocks.copy_scales()[0], _four(4, scales_to, scales_of))
    sums = part.products(blocks.AFFINE4, lanes, part.beside_at + WAVEFRONT * 512 + R * 64 + Q * 2)
    codes = _codes(part.words).reshape(128, PART // 64, 64)
    weights = codes * scales[:, : PART // 64, None] + biases[:, : PART // 64, None]
    weights = torch.tensor(weights).to(torch.bfloat16).double().numpy().reshape(128, PART)
    assert np.allclose(sums * 2.0**23, part.wanted(weights), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("tiles", "low", "high"), [(2, 120, 130), (3, 0, 9), (6, 120, 140), (2, 133, 134), (2, 134, 135), (2, 246, 255)]
)
def test_sums_of_a_part_of_x_and_e2m1(tiles: int, low: int, high: int) -> None:
    drawn = np.random.default_rng(low)
    scales = drawn.integers(low, high, (128, 64), dtype=np.uint8)
    part = _part(drawn, tiles, 1024, 64, np.ravel(scales))
    lanes = part.lanes()
    # Half as many lanes copy them for a wavefront.
    wavefront = WAVEFRONT // 2 * 2 + Q // 2
    scales_to = part.beside_at + wavefront * 512 + Q % 2 * 128 + R * 16
    row = wavefront * 16 + R * 2 + Q % 2
    lanes.run(blocks.copy_scales()[0], _four(4, scales_to, part.scales_from() + row * 64))
    sums = part.products(blocks.MXFP4, lanes, part.beside_at + WAVEFRONT * 512 + R * 16 + Q * 2)
    numbers = np.array(E2M1)[_codes(part.words)].reshape(128, PART // 32, 32)
    weights = np.ldexp(numbers, scales[:, : PART // 32, None].astype(int) - 127).reshape(128, PART)
    wanted = part.wanted(weights)
    assert np.allclose(sums * 2.0**5, wanted, rtol=1e-9, atol=1e-12 * np.abs(wanted).max())


def test_a_scale_that_is_no_number_makes_a_row_none() -> None:
    drawn = np.random.default_rng(0)
    scales = np.full((128, 64), 127, np.uint8)
    scales[5, 3], scales[77, 15] = 255, 255
    part = _part(drawn, 2, 1024, 64, np.ravel(scales))
    lanes = part.lanes()
    row = WAVEFRONT * 16 + R * 2 + Q % 2
    at = part.beside_at + WAVEFRONT * 512 + Q % 2 * 128 + R * 16
    lanes.run(blocks.copy_scales()[0], _four(4, at, part.scales_from() + row * 64))
    with np.errstate(invalid="ignore", over="ignore"):
        sums = part.products(blocks.MXFP4, lanes, part.beside_at + WAVEFRONT * 512 + R * 16 + Q * 2)
    lost = ~np.isfinite(sums).all(1)
    assert np.flatnonzero(lost).tolist() == [5, 77]
    assert not np.isfinite(sums[lost, : part.rows]).any()


def test_numbers_beside_words_are_powers_of_two() -> None:
    numbers = ((blocks.SCALE, 110), (blocks.SCALE_16, 106), (blocks.DOWN, -23), (blocks.E2M1_UP, 121))
    for word, power in (*numbers, (blocks.TINY, -127)):
        assert np.array_equal(_halves(np.uint32(word)), [2.0**power] * 2)
    # A code is a denormal times 2^133.
    assert np.frombuffer(bytes.fromhex(blocks.BACK.removeprefix("0f")), ">f4")[0] == 2.0 ** (133 - 110)
    # An e2m1 code is 2^-126 times its number.
    assert np.frombuffer(bytes.fromhex(blocks.E2M1_BACK.removeprefix("0f")), ">f4")[0] == 2.0 ** (126 - 121)


def _problem(**change: Any) -> Problem:
    given: dict[str, Any] = {
        "dtype": "bfloat16", "mode": "affine", "group_size": 64, "bits": 4, "transpose": True, "gated": False,
        "pairs": 4096, "m": 1, "n": 768, "k": 2048, "experts": 128,
    }  # fmt: skip
    return Problem(**{**given, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp4"}, {"mode": "nvfp4", "group_size": 32}, {"bits": 8}, {"group_size": 32},
        {"transpose": False}, {"m": 2}, {"pairs": 1 << 16}, {"experts": 512}, {"pairs": 1 << 14, "k": 1 << 17},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert grouped_gemm.rejects(_problem(), H200) is None
    assert grouped_gemm.rejects(_problem(mode="mxfp4", group_size=32), H200) is None
    assert grouped_gemm.rejects(_problem(**change), H200)


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "sm100", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert grouped_gemm.rejects(_problem(), by_name(name))


def test_units_of_work_fill_programs() -> None:
    config = Config(TAKEN)
    assert grouped_gemm.cut_of(_problem(), config, H200) == (1, 1, 6)
    assert grouped_gemm.cut_of(_problem(experts=64, pairs=2048), config, H200) == (2, 1, 3)
    assert grouped_gemm.cut_of(_problem(experts=32, n=1024, pairs=1024), config, H200) == (4, 1, 2)
    # Sums of all rows of weights have no room in registers: 256 units in two rounds.
    assert grouped_gemm.cut_of(_problem(n=1536, k=4096), config, H200) == (2, 1, 6)
    # 80 units, or 160, of which the last 28 come second.
    assert grouped_gemm.cut_of(_problem(experts=80, n=512), config, H200) == (0, 0, 0)


def test_units_of_work_with_a_gate_are_both_matrices() -> None:
    config = Config(TAKEN)
    # Blocks of 128 rows of either matrix: 12, 24, 16, 16.
    assert grouped_gemm.cut_of(_problem(gated=True), config, H200) == (1, 2, 6)
    assert grouped_gemm.cut_of(_problem(gated=True, n=1536, k=4096), config, H200) == (1, 4, 6)
    assert grouped_gemm.cut_of(_problem(gated=True, experts=32, n=1024, pairs=1024), config, H200) == (4, 1, 4)
    assert grouped_gemm.cut_of(_problem(gated=True, experts=64, n=1024, pairs=2048), config, H200) == (2, 2, 4)
    # Fewer rows of x have room for sums of more blocks, of which a record may have fewer.
    assert grouped_gemm.cut_of(_problem(gated=True, pairs=1024), config, H200) == (1, 1, 12)
    assert grouped_gemm.cut_of(_problem(gated=True, pairs=1024), Config(TAKEN | {"blocks": 8}), H200) == (1, 2, 6)
    # Three blocks are not of two matrices.
    assert grouped_gemm.cut_of(_problem(gated=True, n=384, pairs=1024), Config(TAKEN | {"blocks": 3}), H200) == (
        1,
        3,
        2,
    )


def test_shapes_have_room_for_sums() -> None:
    config = Config(TAKEN)
    assert [grouped_gemm.tiles_of(_problem(pairs=pairs)) for pairs in (1024, 2048, 3072, 4096)] == [2, 4, 5, 6]
    assert grouped_gemm.fits(_problem(), config, H200)
    assert grouped_gemm.fits(_problem(experts=64, pairs=2048), config, H200)
    assert grouped_gemm.fits(_problem(n=4096, k=1536), config, H200)
    # More tiles than there is room for, or hardly a row for each expert.
    assert not grouped_gemm.fits(_problem(pairs=8192), config, H200)
    assert not grouped_gemm.fits(_problem(pairs=512), config, H200)
    assert not grouped_gemm.fits(_problem(k=768), config, H200)
    assert not grouped_gemm.fits(_problem(n=704), config, H200)
    assert not grouped_gemm.fits(_problem(), Config(TAKEN | {"TILES": 0}), H200)


def _taken(**change: Any) -> bool:
    """Return whether the records on file take a problem with a gate."""
    problem = _problem(gated=True, **change)
    class_ = grouped_gemm.class_of(problem)
    return grouped_gemm.fits(problem, config_for("gather_qmm", "grouped_gemm", class_, H200), H200)


def test_gates_take_it_where_it_was_faster() -> None:
    deep = {"n": 1536, "k": 4096}
    assert [_taken(pairs=8 * tokens) for tokens in (34, 128, 512, 700)] == [True, True, True, False]
    assert [_taken(pairs=8 * tokens, **deep) for tokens in (34, 128, 256, 512)] == [False, False, True, True]


def _mxfp4_taken(**change: Any) -> bool:
    problem = _problem(mode="mxfp4", group_size=32, **change)
    config = config_for("gather_qmm", "grouped_gemm", grouped_gemm.class_of(problem), H200)
    return grouped_gemm.fits(problem, config, H200)


@pytest.mark.parametrize("gated", [False, True])
def test_mxfp4_takes_it_where_it_was_faster(gated: bool) -> None:
    counts = (64, 128, 256, 512, 600, 700)
    assert [_mxfp4_taken(pairs=8 * tokens, gated=gated) for tokens in counts] == [False, True, True, True, True, False]
    assert not _mxfp4_taken(n=1536, k=4096, gated=gated)


def _launches(offset: int, *, gated: bool = False, mode: str = "affine") -> list[executor.Launch]:
    """Return the launches for 64 rows of x and 16 experts, whose last scales stand behind some others."""
    x = torch.zeros(64, 1, 1, 1024, dtype=torch.bfloat16)
    beside = torch.zeros(16 * 2048 * 16 + offset, dtype=torch.bfloat16)[offset:].view(16, 2048, 16)
    words = torch.zeros(16, 2048, 128, dtype=torch.int32)
    first: tuple[Any, ...] = (words, torch.zeros_like(beside), torch.zeros_like(beside))
    last: tuple[Any, ...] = (words, beside, beside)
    named: dict[str, Any] = {"rhs_indices": torch.zeros(64, 8, dtype=torch.int32), "group_size": 64, "bits": 4}
    if mode == "mxfp4":
        beside = torch.zeros(16 * 2048 * 32 + offset, dtype=torch.uint8)[offset:].view(16, 2048, 32)
        first, last = (words, torch.zeros_like(beside)), (words, beside)
        named |= {"group_size": 32, "mode": "mxfp4"}
    recorder = executor.Recorder(H200)
    with executor.using(recorder), forced("gather_qmm", "grouped_gemm", Config(TAKEN)):
        if gated:
            gather_qmm_swiglu(x, first, last, **named)
        else:
            gather_qmm(x, *last, **named)
    return recorder.launches


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("mode", ["affine", "mxfp4"])
def test_some_rows_of_each_expert_take_the_kernel(mode: str, gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(backends, "MEASURED", True)
    kernel = importlib.import_module(
        "rocmend.kernels.backends.hopper.gather_qmm.kernels.grouped_gemm"
    ).grouped_gemm_kernel
    (launch,) = _launches(0, gated=gated, mode=mode)
    assert launch.kernel is kernel
    assert launch.grid == (132,)
    names = ("SLICES", "EXPERTS", "TILES", "BLOCKS", "ROUNDS", "GATED", "SLOTS")
    assert [launch.constants[name] for name in names] == [8, 32, 6, 4 if gated else 2, 1, gated, 4]
    # All that it takes is given: what is not there by position has to be a constant.
    assert len(launch.args) + len(launch.constants) == len(kernel.arg_names)
    # Tensors at odd addresses take the other kernel.
    assert kernel not in {other.kernel for other in _launches(4, gated=gated, mode=mode)}


def test_records_have_room_for_x_and_slots() -> None:
    for each in (4, 48, 128):
        for gated in (False, True):
            for form in ({}, {"mode": "mxfp4", "group_size": 32}):
                problem = _problem(gated=gated, **form)
                problem = problem._replace(pairs=each * problem.experts)
                config = config_for("gather_qmm", "grouped_gemm", grouped_gemm.class_of(problem), H200)
                taken = grouped_gemm.tiles_of(problem) <= config["TILES"]
                assert not taken or grouped_gemm.lds_bytes(problem, config) <= H200.lds_bytes
