"""The kernel whose programs stay: its PTX on NumPy, the launch before it, and where it is taken.

Gluon has no interpreter: on a GPU the suite has cases that take the kernel.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import numpy as np

from rocmend.kernels import executor, gather_qmm, gather_qmm_swiglu
from rocmend.kernels.common import gluon
from rocmend.kernels.common.formats import E2M1
from rocmend.kernels.ops.gather_qmm import Problem, resident
from rocmend.kernels.ops.gather_qmm.kernels import codes
from rocmend.kernels.ops.gather_qmm.kernels.order import order_kernel
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config, config_for
from rocmend.kernels.tuning.config import Value
from rocmend.kernels.tuning.lookup import forced

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

H200 = by_name("sm90", compute_units=132)


def _halves(words: Any) -> Any:
    """Return the two bfloat16 of words as float64: [..., 2]."""
    words = np.asarray(words, np.uint32)
    return np.stack([(words << 16).view(np.float32), (words & 0xFFFF0000).view(np.float32)], -1).astype(np.float64)


def _bits(numbers: Any) -> Any:
    """Return the bits of the nearest bfloat16, ties to even."""
    fraction, exponent = np.frexp(np.asarray(numbers, np.float64))
    near = np.ldexp(np.rint(fraction * 256) / 256, exponent).astype(np.float32)
    return near.view(np.uint32) >> 16


def _packed(numbers: Any) -> Any:
    """Return words of two bfloat16 each, of [..., 2]."""
    low, high = _bits(numbers[..., 0]), _bits(numbers[..., 1])
    return low | (high << 16)


def _permuted(low: Any, high: Any, select: Any) -> Any:
    """Return four of two words' eight bytes."""
    both = [(word >> np.uint32(8 * at)) & 0xFF for word in (low, high) for at in range(4)]
    parts = [np.choose(select >> np.uint32(4 * at) & 7, both) << np.uint32(8 * at) for at in range(4)]
    return parts[0] | parts[1] | parts[2] | parts[3]


def _taken(one: Any, mask: Any, under: Any, table: Any) -> Any:
    assert table == 0xEA
    return (one & mask) | under


INSTRUCTIONS: dict[str, Callable[..., Any]] = {
    "mov.b32": lambda one: one,
    "shr.u32": lambda one, by: one >> by,
    "shl.b32": lambda one, by: one << by,
    "and.b32": lambda one, other: one & other,
    "lop3.b32": _taken,
    "prmt.b32": _permuted,
    "setp.eq.u32": lambda one, other: one == other,
    "selp.b32": lambda one, other, first: np.where(first, one, other),
    "fma.rn.bf16x2": lambda one, other, third: _packed(_halves(one) * _halves(other) + _halves(third)),
    "mul.rn.bf16x2": lambda one, other: _packed(_halves(one) * _halves(other)),
}


def _run(block: str, results: int, operands: list[Any]) -> list[Any]:
    """Run a block of PTX on arrays of words."""
    held: dict[str, Any] = {f"${results + at}": np.asarray(one, np.uint32) for at, one in enumerate(operands)}
    for statement in re.split(r";\s*", block.strip().strip("{}").strip()):
        if not statement or statement.startswith(".reg"):
            continue
        name, rest = statement.split(None, 1)
        to, *of = re.split(r",\s*", rest)
        held[to] = INSTRUCTIONS[name](*(held[one] if one in held else np.uint32(int(one, 0)) for one in of))
    return [held[f"${at}"] for at in range(results)]


def _numbers(drawn: Any, count: int) -> Any:
    """Return numbers that bfloat16 has."""
    words = torch.tensor(drawn.standard_normal(count)).to(torch.bfloat16)
    return words.double().numpy()


@pytest.mark.parametrize("bits", [4, 8])
def test_affine_weights_are_rounded_once(bits: int) -> None:
    drawn = np.random.default_rng(bits)
    count, each = 4096, 32 // bits
    words = drawn.integers(0, 1 << 32, count, dtype=np.uint32)
    scale = _numbers(drawn, count)
    block, constraints = codes.unpack("affine", bits)
    twice = _packed(np.stack([scale, scale], -1))
    (third,) = _run(codes.third(), 1, [twice])
    assert np.array_equal(_halves(third), -128 * _halves(twice))
    pairs = _run(block, each // 2, [words] * each + [twice] * each + [third] * each)
    assert constraints.count("=&r") == each // 2
    assert constraints.count("r") == each // 2 + 3 * each
    for pair in range(each // 2):
        for half, got in enumerate((pairs[pair] & 0xFFFF, pairs[pair] >> 16)):
            code = words >> np.uint32(bits * (pair + half * each // 2)) & np.uint32((1 << bits) - 1)
            # As numbers: a code of 0 gives a zero of either sign.
            assert np.array_equal(_halves(got)[:, 0], _halves(_bits(code * scale))[:, 0])


def test_e2m1_weights_are_exact() -> None:
    drawn = np.random.default_rng(3)
    words = drawn.integers(0, 1 << 32, 4096, dtype=np.uint32)
    raw = drawn.integers(0, 250, 4096).astype(np.uint32)
    quarter = drawn.integers(0, 4, 4096).astype(np.uint32)
    (scale,) = _run(codes.pick("mxfp4"), 1, [raw << (8 * quarter), np.uint32(0x4040) + quarter * np.uint32(0x0101)])
    power = np.exp2(raw.astype(np.float64) - 127)
    assert np.array_equal(_halves(scale), np.stack([power, power], -1))
    block, _ = codes.unpack("mxfp4", 4)
    pairs = _run(block, 4, [words] * 8 + [scale] * 8 + [scale] * 8)
    table = np.array(E2M1)
    for pair in range(4):
        for half in range(2):
            code = words >> np.uint32(4 * (pair + 4 * half)) & np.uint32(15)
            assert np.array_equal(_halves(pairs[pair])[:, half], table[code] * power)


def test_a_group_of_two_in_a_word_is_picked() -> None:
    words = np.array([0x12345678], np.uint32)
    assert _run(codes.pick("affine"), 1, [words, np.uint32(0x1010)])[0] == 0x56785678
    assert _run(codes.pick("affine"), 1, [words, np.uint32(0x3232)])[0] == 0x12341234


@pytest.mark.parametrize(
    ("tokens", "experts", "block", "indices"),
    [(24, 8, 256, "random"), (24, 8, 64, "random"), (11, 5, 64, "sorted"), (24, 7, 64, "one"), (24, 16, 256, "gap")],
)
def test_pairs_stand_by_expert_and_x_in_order(tokens: int, experts: int, block: int, indices: str) -> None:
    top, k = 8, 256
    generator = torch.Generator().manual_seed(tokens)
    chosen = torch.randint(0, experts, (tokens * top,), dtype=torch.int32, generator=generator)
    if indices == "sorted":
        chosen = chosen.sort().values
    elif indices == "one":
        chosen = chosen * 0 + experts - 1
    elif indices == "gap":
        chosen = chosen // 3 * 3
    x = torch.randn(tokens, k, generator=generator).bfloat16()
    pairs, width = tokens * top, k + 64
    table = torch.full((experts + 1 + 2 * pairs,), -7, dtype=torch.int32)
    ordered = torch.full((tokens * width,), torch.nan, dtype=torch.bfloat16)
    order_kernel[(experts + -(-tokens // 4),)](
        x, chosen, ordered, table, pairs, experts, tokens, k, width, top, BITS=4, GROUP=64, BLOCK=block,
        ONCE=pairs <= block, ORDERED=indices == "sorted", LINES=4, WIDTH=128, PDL=False,
    )  # fmt: skip
    before, (by_expert, sources) = table[: experts + 1], table[experts + 1 :].long().chunk(2)
    counts = torch.bincount(chosen, minlength=experts)
    assert torch.equal(before, torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]).int())
    assert torch.equal(by_expert, chosen.sort(stable=True).indices)
    assert torch.equal(sources, by_expert // top)
    ordered = ordered.view(tokens, width)
    assert torch.equal(ordered[:, :k], x[:, _places(k, 4)])
    # The sums of groups in two parts, of 32 groups at a time, zeros where there are fewer.
    sums, (high, low) = x.view(tokens, k // 64, 64).float().sum(2), ordered[:, k:].float().split(32, 1)
    torch.testing.assert_close((high + low)[:, : k // 64], sums, rtol=2**-15, atol=1e-6)
    assert not (high + low)[:, k // 64 :].any()


def _places(k: int, bits: int) -> Any:
    """Return which column stands at each place of the order of unpacked words: two codes of a word side by side."""
    half = 16 // bits
    columns = torch.arange(k).view(-1, 4, 4, 2, half)
    return columns.permute(0, 2, 4, 1, 3).reshape(k)


def _problem(**change: Any) -> Problem:
    plain = Problem(
        "bfloat16", "affine", 4, 64, transpose=True, gated=False, pairs=4096, m=1, n=768, k=2048, experts=128
    )
    return plain._replace(**change)


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float16"}, {"mode": "mxfp8", "bits": 8, "group_size": 32}, {"bits": 3}, {"group_size": 32},
        {"transpose": False}, {"m": 2}, {"pairs": 1 << 16}, {"experts": 1024}, {"k": 1 << 20},
    ],
    ids=str,
)  # fmt: skip
def test_other_problems_take_other_kernels(change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert resident.suits(_problem(), H200)
    assert not resident.suits(_problem(**change), H200)


@pytest.mark.parametrize("name", ["gfx1100", "gfx942", "sm80", "sm100", "cpu"])
def test_other_targets_take_other_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gluon, "SUITED", True)
    assert not resident.suits(_problem(), by_name(name))


TAKEN: dict[str, Value] = {
    "TOKENS": 64, "PARTS": 2, "BK": 256, "STAGES": 3, "fill": 1, "num_warps": 8, "num_stages": 1, "launch_pdl": True,
}  # fmt: skip


def test_shapes_are_whole_tiles_and_steps() -> None:
    config = Config(TAKEN)
    assert resident.fits(_problem(), config)
    assert resident.fits(_problem(n=128, gated=True), config)
    assert resident.fits(_problem(bits=8, k=384), config)
    assert not resident.fits(_problem(n=128), config)
    assert not resident.fits(_problem(k=2048 + 128), config)
    assert not resident.fits(_problem(k=512), config)
    assert not resident.fits(_problem(), Config(TAKEN | {"fill": 0}))


def _launches(form: tuple[str, int, int], *, gated: bool, offset: int = 0) -> list[executor.Launch]:
    """Return the launches for 64 rows of x and six experts' 256, whose scales stand behind some others."""
    mode, bits, group = form
    k = 1024
    x = torch.zeros(64, 1, 1, k, dtype=torch.bfloat16)
    numbers = torch.zeros(6 * 256 * k // group + offset, dtype=torch.bfloat16 if mode == "affine" else torch.uint8)
    beside = numbers[offset:].view(6, 256, k // group)
    weights = (torch.zeros(6, 256, k * bits // 32, dtype=torch.int32), beside, *([beside] if mode == "affine" else []))
    named: dict[str, Any] = {"group_size": group, "bits": bits, "mode": mode}
    named["rhs_indices"] = torch.zeros(x.shape[0], 4, dtype=torch.int32)
    recorder = executor.Recorder(H200)
    with executor.using(recorder):
        if gated:
            gather_qmm_swiglu(x, weights, weights, **named)
        else:
            gather_qmm(x, *weights, **named)
    return recorder.launches


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("form", [("affine", 4, 64), ("affine", 8, 64), ("mxfp4", 4, 32)])
def test_many_rows_on_hopper_take_the_kernel(
    form: tuple[str, int, int], gated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("triton.experimental.gluon")
    monkeypatch.setattr(gluon, "SUITED", True)
    staying = importlib.import_module("rocmend.kernels.ops.gather_qmm.kernels.resident").resident_kernel
    with forced("gather_qmm", "resident", Config(TAKEN)):
        first, second = _launches(form, gated=gated)
        odd = _launches(form, gated=gated, offset=4)
    assert (first.kernel, second.kernel) == (order_kernel, staying)
    # All that they take is given: what is not there by position has to be a constant.
    for launch in (first, second):
        assert len(launch.args) + len(launch.constants) == len(launch.kernel.arg_names)
    assert first.grid[0] == 6 + 64 // 2
    # Tensors at odd addresses take the other kernel.
    assert staying not in {launch.kernel for launch in odd}


def test_records_have_room_for_the_rows_of_a_tile() -> None:
    for kind in ("low", "middle", "tall"):
        for change in ({}, {"bits": 8}, {"mode": "mxfp4", "group_size": 32}):
            for gated in (False, True):
                problem = _problem(gated=gated, **change)
                config = config_for("gather_qmm", "resident", resident.class_of(problem, kind), H200)
                assert resident.lds_bytes(problem, config) * config["fill"] <= H200.lds_bytes
                assert config["fill"] == 0 or resident.fits(problem, config)
