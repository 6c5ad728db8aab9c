"""The kernel for a few rows of x: every format, uneven shapes, and how K is cut."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import allocate, select
from rocmend.kernels.ops.matmul.quantized_matmul import Problem, few_class
from rocmend.kernels.ops.matmul.quantized_matmul.few import MOST_STEPS, parts_of, unit_of
from rocmend.kernels.ops.matmul.quantized_matmul.function import quantized_matmul
from rocmend.kernels.ops.matmul.quantized_matmul.reference import quantized_matmul as reference
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import Config, config_for, forced

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

AFFINE = [("affine", bits, group) for bits in (1, 2, 3, 4, 5, 6, 8) for group in (32, 64, 128)]
FLOATS = [("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]


@pytest.fixture(autouse=True)
def lanes() -> Iterator[None]:
    """Have every product take the kernel."""
    with select.prefer("lanes"):
        yield


def _arguments(rows: int, n: int, k: int, form: tuple[str, int, int], dtype: Any = torch.float16) -> tuple[Any, ...]:
    mode, bits, group = form
    torch.manual_seed(rows * 1000 + n)
    w = torch.randint(-(2**31), 2**31, (n, k * bits // 32), dtype=torch.int64).to(torch.int32)
    x = torch.randn(rows, k).to(dtype)
    if mode == "affine":
        scales, biases = torch.randn(2, n, k // group).to(dtype)
        return x, w, scales / (2**bits - 1), biases / 2, True, group, bits, mode
    if mode == "mxfp8":
        w &= -0x40404041  # keep one bit of the exponent off: two codes are NaN
    low, high = (124, 128) if mode.startswith("mx") else (0x20, 0x38)
    scales = torch.randint(low, high, (n, k // group), dtype=torch.uint8)
    return x, w, scales, None, True, group, bits, mode


def _assert_right(arguments: tuple[Any, ...]) -> Any:
    with allocate.poisoned():
        out = quantized_matmul(*arguments)
        assert torch.equal(out, quantized_matmul(*arguments))
    wanted = reference(arguments[0].double(), *arguments[1:])
    # A unit in the last place of the largest output: sums are fp32, and rounded once.
    near = torch.finfo(out.dtype).eps * wanted.abs().max()
    assert (out.double() - wanted).abs().max() <= near
    return out


@pytest.mark.slow
@pytest.mark.parametrize("form", AFFINE + FLOATS, ids=str)
def test_formats(form: tuple[str, int, int]) -> None:
    _assert_right(_arguments(3, 33, 256, form))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("rows", [1, 8, 9, 17])
def test_rows(rows: int, dtype: Any) -> None:
    _assert_right(_arguments(rows, 17, 256, ("affine", 4, 64), dtype))


@pytest.mark.parametrize("k", [64, 128, 320, 960, 2112])
@pytest.mark.parametrize("ahead", [1, 2])
def test_steps(k: int, ahead: int) -> None:
    config = {"BLOCK_M": 8, "AHEAD": ahead, "codes": 256, "slices": 4, "fill": 8}
    with forced("quantized_matmul", "lanes", Config(config)):
        _assert_right(_arguments(2, 20, k, ("affine", 4, 64)))


def test_scales_may_stand_anywhere() -> None:
    x, w, scales, biases, *rest = _arguments(2, 24, 512, ("affine", 4, 64))
    wanted = _assert_right((x, w, scales, biases, *rest))
    room = torch.zeros(2, scales.numel() + 1, dtype=scales.dtype)
    for apart, tensor in zip(room, (scales, biases), strict=True):
        apart[1:] = tensor.reshape(-1)
    apart = [one[1:].view(scales.shape) for one in room]
    assert any(one.data_ptr() % 8 for one in apart)
    got = quantized_matmul(x, w, *apart, *rest)
    torch.testing.assert_close(got, wanted, rtol=2e-3, atol=2e-2)


def test_nan_codes_reach_their_row_alone() -> None:
    x, w, scales, biases, *rest = _arguments(2, 20, 128, ("mxfp8", 8, 32))
    w[7, 5] = 0x7F
    out = quantized_matmul(x, w, scales, biases, *rest)
    assert out[:, 7].isnan().all()
    assert not out[:, [n for n in range(20) if n != 7]].isnan().any()


def _problem(**change: Any) -> Problem:
    plain = Problem("bfloat16", "affine", 4, 64, transpose=True, batch=1, rows=1, columns=4096, depth=4096)
    return plain._replace(**change)


H200 = by_name("sm90", compute_units=132)


@pytest.mark.parametrize("form", AFFINE + FLOATS, ids=str)
@pytest.mark.parametrize("columns", [16, 1024, 14336, 151936])
@pytest.mark.parametrize("depth", [128, 1024, 2880 + 64, 3072, 14336])
def test_all_of_a_row_is_cut(form: tuple[str, int, int], columns: int, depth: int) -> None:
    problem = _problem(mode=form[0], bits=form[1], group_size=form[2], columns=columns, depth=depth)
    for aligned in (True, False):
        config = config_for("quantized_matmul", "lanes", few_class(problem), H200)
        cut = parts_of(problem, config, 132, aligned=aligned)
        unit = unit_of(problem)
        units = depth // unit
        assert cut.slices * cut.per * cut.steps >= units
        assert cut.steps % cut.ahead == 0
        assert cut.slices <= config["slices"]
        # A wavefront's scales are whole words of a row.
        assert units % cut.per == 0
        assert cut.per * unit % form[2] == 0
        assert cut.per * unit <= max(config["codes"], form[2])
        # Not many more units are gone through than there are.
        assert cut.slices * cut.per * cut.steps < 2 * units + cut.per * cut.ahead


@pytest.mark.parametrize(
    ("columns", "depth", "slices"),
    [(14336, 4096, 4), (28672, 8192, 4), (4096, 4096, 8), (4096, 14336, 8), (3072, 1024, 4), (151936, 1024, 1)],
)
def test_few_tiles_have_more_wavefronts_each(columns: int, depth: int, slices: int) -> None:
    problem = _problem(columns=columns, depth=depth)
    cut = parts_of(problem, config_for("quantized_matmul", "lanes", few_class(problem), H200), 132)
    assert cut.slices == slices
    assert cut.steps <= MOST_STEPS
