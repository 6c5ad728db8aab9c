"""Quantized matrix products: MLX's own results, shapes, types and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend import kernels
from rocmend.core.errors import UsageError
from rocmend.kernels import backends, executor, select
from rocmend.kernels.allocate import poisoned
from rocmend.kernels.executor import Recorder
from rocmend.kernels.ops.matmul.quantized_matmul import OP, Problem
from rocmend.kernels.ops.matmul.quantized_matmul.function import quantized_matmul
from rocmend.kernels.ops.matmul.quantized_matmul.rules import MOST_DEPTH
from rocmend.kernels.target import Target, by_name
from rocmend.kernels.tuning import Config
from rocmend.kernels.tuning.lookup import forced

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]

GOLDEN = Path(__file__).with_name("golden") / "quantized_matmul.npz"
FORMATS = ["affine-2-32", "affine-3-64", "affine-4-64", "affine-5-128", "affine-6-32", "affine-8-64"]
FORMATS += ["mxfp4-4-32", "mxfp8-8-32", "nvfp4-4-16"]
# MLX's CPU back end adds in the type of x: in bfloat16 the error is its own, over 128 terms.
NEAR = {"float32": 2e-6, "bfloat16": 5e-2}


def _golden(name: str, dtype: str) -> tuple[dict[str, Any], list[Any]]:
    with np.load(GOLDEN) as stored:
        found = {key: stored[key] for key in stored.files if key.startswith(f"{name}/")}
    widened = {key: (value.astype(np.uint32) << 16).view(np.float32) for key, value in found.items() if key[-1] == "x"}
    values = {key: torch.from_numpy(value) for key, value in {**found, **widened}.items()}
    parts = [values[f"{name}/w{index}"] for index in range(3) if f"{name}/w{index}" in values]
    parts = [part.to(getattr(torch, dtype)) if part.dtype == torch.float32 else part for part in parts]
    return values, parts


@pytest.mark.parametrize("tier", ["triton", "reference"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", FORMATS)
def test_as_mlx(name: str, dtype: str, tier: str) -> None:
    mode, bits, group = name.split("-")
    values, parts = _golden(name, dtype)
    for kind in ("t", "n"):
        x, wanted = (values[f"{name}/{dtype}/{kind}/{part}"] for part in ("x", "y"))
        x = x.to(getattr(torch, dtype))
        biases = parts[2] if len(parts) > 2 else None
        with select.prefer(tier):
            out = quantized_matmul(
                x, parts[0], parts[1], biases, transpose=kind == "t", group_size=int(group), bits=int(bits), mode=mode
            )
        assert out.dtype == x.dtype
        assert (out.float() - wanted).abs().max() <= NEAR[dtype] * wanted.abs().max()


def _weights(*shape: int, dtype: Any = torch.float32) -> tuple[Any, Any, Any]:
    """Return 4-bit words, scales and biases of a matrix [..., rows, columns]."""
    words = torch.randint(-(2**31), 2**31, (*shape[:-1], shape[-1] // 8), dtype=torch.int64).to(torch.int32)
    groups = (*shape[:-1], shape[-1] // 64)
    return words, torch.rand(groups).to(dtype), torch.rand(groups).to(dtype)


def test_words_may_be_unsigned() -> None:
    w, scales, biases = _weights(8, 128)
    x = torch.randn(2, 128)
    with select.prefer("triton"):
        signed = quantized_matmul(x, w, scales, biases)
        unsigned = quantized_matmul(x, w.view(torch.uint32), scales, biases)
    assert torch.equal(signed, unsigned)


@pytest.mark.parametrize(
    ("x", "w", "out"),
    [
        ((128,), (8, 128), (8,)),
        ((3, 128), (2, 8, 128), (2, 3, 8)),
        ((4, 1, 3, 128), (1, 2, 8, 128), (4, 2, 3, 8)),
        ((2, 3, 128), (1, 8, 128), (2, 3, 8)),
        ((5, 2, 3, 128), (8, 128), (5, 2, 3, 8)),
    ],
)
def test_leading_axes(x: tuple[int, ...], w: tuple[int, ...], out: tuple[int, ...]) -> None:
    a, weights = torch.randn(x), _weights(*w)
    with select.prefer("triton"):
        got = quantized_matmul(a, *weights)
    with select.prefer("reference"):
        wanted = quantized_matmul(a, *weights)
    assert got.shape == wanted.shape == out
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-4)


def test_types_promote_as_in_mlx() -> None:
    w, scales, biases = _weights(8, 128)
    x = torch.randn(2, 128, dtype=torch.bfloat16)
    with select.prefer("triton"):
        assert quantized_matmul(x, w, scales, biases).dtype == torch.float32
        assert quantized_matmul(x.half(), w, scales.bfloat16(), biases.bfloat16()).dtype == torch.float32
        assert quantized_matmul(x, w, scales.bfloat16(), biases.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bits": 7}, "affine bits"),
        ({"group_size": 48}, "group_size"),
        ({"mode": "int4"}, "mode"),
        ({"mode": "mxfp4"}, "uint8"),
        ({"biases": None}, "biases"),
        ({"group_size": 32}, "scales of shape"),
        ({"x": torch.zeros(2, 96)}, "last axis of 128"),
        ({"x": torch.zeros(2, 128, dtype=torch.int32)}, "x of float32"),
        ({"transpose": False}, "last axis of 8"),
        ({"w": torch.zeros(16, dtype=torch.int32)}, "2 or more"),
    ],
)
def test_refused(change: dict[str, Any], message: str) -> None:
    w, scales, biases = _weights(8, 128)
    call: dict[str, Any] = {"x": torch.zeros(2, 128), "w": w, "scales": scales, "biases": biases, **change}
    with pytest.raises(UsageError, match=message):
        quantized_matmul(**call)


def _problem(**change: Any) -> Problem:
    return Problem(
        **{
            "dtype": "bfloat16", "mode": "affine", "bits": 4, "group_size": 64, "transpose": True,
            "batch": 1, "rows": 1, "columns": 4096, "depth": 4096, **change,
        }
    )  # fmt: skip


def _kernel(problem: Problem, target: Target) -> str:
    return select.select(OP, problem, target, "triton").implementation


@pytest.mark.parametrize(
    ("change", "target", "kernel"),
    [
        ({"rows": 2}, "gfx1151", "groups"),
        ({"rows": 16}, "gfx942", "kept"),
        ({"rows": 8}, "sm90", "skinny_gemm_persistent"),
        ({"rows": 8, "columns": 1024}, "sm90", "lanes"),
        ({"columns": 28672, "depth": 8192}, "sm90", "skinny_gemm_persistent"),
        ({"columns": 14336, "bits": 8}, "sm90", "gemv"),
        ({"columns": 14336, "group_size": 32}, "sm90", "gemv"),
        ({"columns": 14336, "group_size": 32, "dtype": "float16"}, "sm90", "gemv"),
        ({"columns": 14336, "group_size": 32, "rows": 2}, "sm90", "lanes"),
        ({"columns": 4096, "group_size": 32}, "sm90", "gemv"),
        ({"rows": 9}, "sm90", "lanes"),
        ({"rows": 9, "columns": 14336}, "sm90", "gemm_w4a16_wgmma"),
        ({"rows": 2048, "dtype": "float16"}, "sm90", "gemm_w4a16_wgmma"),
        ({"rows": 17, "bits": 8}, "sm90", "gemm_w4a16_wgmma"),
        ({"rows": 17, "bits": 8, "group_size": 128}, "sm90", "tiles"),
        ({"bits": 3, "rows": 16}, "sm90", "lanes"),
        ({"rows": 17}, "gfx942", "tiles"),
        ({"rows": 2}, "gfx1030", "rows"),
        ({"dtype": "float32", "rows": 3}, "gfx1151", "rows"),
        ({}, "gfx1030", "gemv"),
        ({"bits": 8}, "gfx1030", "gemv"),
        ({"dtype": "float32"}, "gfx1151", "gemv"),
        ({"bits": 3}, "gfx1151", "rows"),
        ({"mode": "mxfp4", "group_size": 32}, "sm90", "lanes"),
        ({"mode": "mxfp4", "group_size": 32}, "gfx942", "tiles"),
        ({"dtype": "float32"}, "sm90", "gemv"),
        ({"transpose": False}, "sm90", "columns"),
    ],
)
def test_kernel_by_target(change: dict[str, Any], target: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    assert _kernel(_problem(**change), by_name(target)) == kernel


def test_where_triton_spreads_lanes_otherwise_the_kernel_for_a_few_rows_is_not_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backends, "MEASURED", False)
    taken = [_kernel(_problem(rows=rows), by_name("sm90")) for rows in (1, 8, 32)]
    assert taken == ["gemv", "kept", "tiles"]


def test_many_rows_are_the_vendors() -> None:
    some, many = (select.select(OP, _problem(rows=rows), by_name("gfx942")) for rows in (64, 4096))
    assert (some.implementation, many.implementation) == ("tiles", "dequantize+matmul")
    huge = select.select(OP, _problem(rows=4096, columns=1 << 20), by_name("gfx942"))
    assert huge.implementation == "tiles"


def test_few_tiles_are_split_along_the_sum() -> None:
    recorder = Recorder(by_name("gfx1100", compute_units=96))
    x = torch.empty(2, 4096, dtype=torch.bfloat16, device="meta")
    w = torch.empty(256, 512, dtype=torch.int32, device="meta")
    scales = torch.empty(256, 64, dtype=torch.bfloat16, device="meta")
    with executor.using(recorder), select.prefer("triton"):
        out = quantized_matmul(x, w, scales, scales)
    assert out.shape == (2, 256)
    assert [launch.kernel.__name__ for launch in recorder.launches] == ["groups_kernel", "sum_kernel"]
    assert recorder.launches[0].grid[1] > 1


@pytest.mark.parametrize("group", [32, 64])
@pytest.mark.parametrize("target", ["gfx1151", "gfx942", "gfx1030", "sm80"])
def test_lanes_hold_x_up_to_a_depth(group: int, target: str) -> None:
    problem = _problem(group_size=group, columns=2048, rows=1)
    assert _kernel(problem._replace(depth=MOST_DEPTH), by_name(target)) in {"gemv", "lanes"}
    assert _kernel(problem._replace(depth=2 * MOST_DEPTH), by_name(target)) != "gemv"


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("columns", [1, 3, 4, 7, 13])
def test_rows_loaded_ahead_and_tiles_that_overlap_change_no_bit(columns: int, bits: int) -> None:
    """The last tile of weights begins where all its rows exist; 192 is not a power of two, so lanes are masked."""
    torch.manual_seed(0)
    w = torch.randint(-(2**31), 2**31, (columns, 192 * bits // 32), dtype=torch.int64).to(torch.int32)
    scales, biases = torch.rand(2, columns, 3).half()
    x = torch.randn(1, 192).half()
    given = (x, w, scales, biases, True, 64, bits)
    with select.prefer("reference"):
        wanted = quantized_matmul(*given)
    found = []
    for rows, ahead in ((1, 1), (4, 1), (4, 2), (4, 4)):
        config = Config({"ROWS": rows, "AHEAD": ahead, "WIDE": 2, "hold": 32, "fill": 1, "num_stages": 1})
        with forced("quantized_matmul", "gemv", config), select.prefer("gemv"), poisoned():
            found.append(quantized_matmul(*given))
    for one in found:
        torch.testing.assert_close(one, wanted, rtol=1e-3, atol=1e-3 * float(wanted.abs().max()))
        assert torch.equal(one, found[0])


@pytest.mark.parametrize("target", ["gfx1151", "gfx942", "sm90"])
def test_a_tile_has_no_more_rows_than_the_smallest_weights(target: str) -> None:
    """Else its rows would lie before their first."""
    x = torch.empty(1, 1024, dtype=torch.bfloat16, device="meta")
    for columns in ([4096, 3], [1], [8, 5, 4096], [0, 8]):
        weights = [tuple(one.to("meta") for one in _weights(n, 1024, dtype=torch.bfloat16)) for n in columns]
        recorder = Recorder(by_name(target))
        with executor.using(recorder), select.prefer("gemv"):
            if len(weights) == 1:
                quantized_matmul(x, *weights[0])
            else:
                kernels.quantized_matmul_many(x, weights)
        (launch,) = recorder.launches
        assert 1 <= launch.constants["ROWS"] <= min(filter(None, columns))
