"""Several products with quantized weights in one launch: formats, odd and empty shapes, and what does not fit."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend import kernels
from rocmend.core.errors import UsageError
from rocmend.kernels import backends, executor, quantized_matmul_many, quantized_swiglu, registry
from rocmend.kernels.allocate import poisoned
from rocmend.kernels.common.formats import dequantize, format_of
from rocmend.kernels.executor import Recorder
from rocmend.kernels.select import UnsupportedError, prefer, select
from rocmend.kernels.target import by_name
from rocmend.kernels.without import switched_off

pytestmark = [pytest.mark.cpu]

AFFINE = ("affine", 4, 64)
FORMS = [AFFINE, ("affine", 3, 32), ("affine", 8, 128), ("mxfp4", 4, 32), ("mxfp8", 8, 32), ("nvfp4", 4, 16)]
DTYPES = ["float16", "float32"]
"""Up to 8 rows and 3 products of the first take one launch; the second goes one product after another."""


def _weights(n: int, k: int, form: tuple[str, int, int] = AFFINE, dtype: str = "float16") -> Any:
    """Return words, scales and biases whose products with a normal x are of the order of one."""
    mode, bits, group = form
    generator = torch.Generator().manual_seed(n + k)
    words = torch.randint(-(2**31), 2**31, (n, k * bits // 32), generator=generator).to(torch.int32)
    shape = (n, k // group)
    if mode == "affine":
        scales, biases = torch.randn(2, *shape, generator=generator) * k**-0.5
        kind = getattr(torch, dtype)
        return words, (scales * 3 / (2**bits - 1)).to(kind), biases.to(kind)
    if mode == "mxfp8":
        words &= -0x40404041  # keep one bit of the exponent off: two codes are NaN
    low, high = (119, 123) if mode.startswith("mx") else (0x08, 0x20)
    return words, torch.randint(low, high, shape, generator=generator, dtype=torch.uint8), None


def _x(*shape: int, dtype: str = "float16") -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape))).to(getattr(torch, dtype))


def _wanted(x: Any, weights: Any, form: tuple[str, int, int]) -> tuple[Any, Any]:
    """Return the product in float64, and the sum of the magnitudes that it is made of."""
    mode, bits, group = form
    words, scales, biases = weights
    if mode == "affine":
        scales, biases = scales.double(), biases.double()
    matrix = dequantize(words, scales, biases, format_of("test", mode, bits, group), torch.float64)
    return x.double() @ matrix.T, x.double().abs() @ matrix.abs().T


def _assert_right(out: Any, x: Any, weights: Any, form: tuple[str, int, int]) -> None:
    wanted, magnitude = _wanted(x, weights, form)
    assert out.shape == wanted.shape
    assert out.dtype == x.dtype
    assert out.is_contiguous()
    # The result is rounded once; sums are fp32, of scales and biases apart, which may cancel.
    near = torch.finfo(x.dtype).eps * wanted.abs() + 2.0**-18 * magnitude + 2.0**-24
    assert bool(((out.double() - wanted).abs() <= near).all())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_many_is_each_product(dtype: str, form: tuple[str, int, int]) -> None:
    x = _x(2, 128, dtype=dtype)
    weights = [_weights(n, 128, form, dtype) for n in (17, 5)]
    found = quantized_matmul_many(x, weights, form[2], form[1], form[0])
    assert len(found) == 2
    for out, one in zip(found, weights, strict=True):
        _assert_right(out, x, one, form)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("lead", "columns"), [((), (17,)), ((2, 4), (20, 1)), ((3, 3), (16, 5)), ((1, 1), (8, 7, 3, 9))]
)
def test_many_takes_any_number_of_rows_and_products(
    dtype: str, lead: tuple[int, ...], columns: tuple[int, ...]
) -> None:
    x = _x(*lead, 192, dtype=dtype)
    weights = [_weights(n, 192, dtype=dtype) for n in columns]
    # Other kernels for a few rows round weights to the type of x.
    with prefer("lanes") if dtype != "float32" and len(columns) == 2 else contextlib.nullcontext():
        found = quantized_matmul_many(x, weights, 64, 4)
    for out, one in zip(found, weights, strict=True):
        _assert_right(out, x, one, AFFINE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_swiglu_gates_one_product_with_the_other(dtype: str, form: tuple[str, int, int]) -> None:
    x = _x(8, 128, dtype=dtype)
    gate, up = _weights(11, 128, form, dtype), _weights(11, 128, form, dtype)
    up = (up[0].flip(0), *up[1:])
    out = quantized_swiglu(x, gate, up, form[2], form[1], form[0])
    first, second = (_wanted(x, one, form)[0] for one in (gate, up))
    wanted = torch.nn.functional.silu(first) * second
    assert out.shape == (8, 11)
    assert out.dtype == x.dtype
    # Both products are rounded, the sigmoid, silu and the result.
    near = 6 * (torch.finfo(x.dtype).eps + 2.0**-18) * (wanted.abs() + second.abs() * 0.1 + 0.1)
    assert bool(((out.double() - wanted).abs() <= near).all())


def test_one_after_another_can_be_asked_for() -> None:
    x, weights = _x(2, 128), [_weights(n, 128) for n in (17, 5)]
    with prefer("apart"):
        for out, one in zip(quantized_matmul_many(x, weights, 64, 4), weights, strict=True):
            _assert_right(out, x, one, AFFINE)
        assert quantized_swiglu(x, weights[1], weights[1], 64, 4).shape == (2, 5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reads_any_strides_and_unsigned_words(dtype: str) -> None:
    x = _x(3, 384, dtype=dtype)[:, ::3]
    words, scales, biases = _weights(24, 128, dtype=dtype)
    wide = torch.stack([words, words])[0]
    turned = (wide.view(torch.uint32), scales.t().contiguous().t(), biases.t().contiguous().t())
    other = _weights(9, 128, dtype=dtype)
    found = quantized_matmul_many(x, [turned, other], 64, 4)
    _assert_right(found[0], x, (words, scales, biases), AFFINE)
    _assert_right(found[1], x, other, AFFINE)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_second_call_reads_its_own_arguments(dtype: str) -> None:
    x, weights = _x(1, 128, dtype=dtype), [_weights(n, 128, dtype=dtype) for n in (16, 8)]
    first = quantized_matmul_many(x, weights, 64, 4)
    kept = [one.clone() for one in first]
    turned = [(words.flip(0), scales, biases) for words, scales, biases in weights]
    for out, one in zip(quantized_matmul_many(x * 2, turned, 64, 4), turned, strict=True):
        _assert_right(out, x * 2, one, AFFINE)
    assert all(map(torch.equal, first, kept))


@pytest.mark.parametrize("dtype", DTYPES)
def test_takes_no_rows_and_no_columns(dtype: str) -> None:
    some, none = _weights(8, 128, dtype=dtype), _weights(0, 128, dtype=dtype)
    nothing, x = _x(0, 128, dtype=dtype), _x(2, 128, dtype=dtype)
    found = quantized_matmul_many(nothing, [some, some], 64, 4)
    assert [tuple(one.shape) for one in found] == [(0, 8), (0, 8)]
    found = quantized_matmul_many(x, [none, some], 64, 4)
    assert found[0].shape == (2, 0)
    _assert_right(found[1], x, some, AFFINE)
    assert quantized_swiglu(nothing, some, some, 64, 4).shape == (0, 8)
    assert quantized_swiglu(x, none, none, 64, 4).shape == (2, 0)


def test_says_what_does_not_fit() -> None:
    x, weights = _x(1, 128), _weights(8, 128)
    words, scales, biases = weights
    with pytest.raises(UsageError, match="one product or more, got none"):
        quantized_matmul_many(x, [], 64, 4)
    with pytest.raises(UsageError, match="expected x of float32"):
        quantized_matmul_many(x.double(), [weights], 64, 4)
    with pytest.raises(UsageError, match=r"expected words \[n, 16\] of int32"):
        quantized_matmul_many(x, [weights, _weights(8, 64)], 64, 4)
    with pytest.raises(UsageError, match=r"expected words \[n, 16\] of int32"):
        quantized_matmul_many(x, [(words.long(), scales, biases)], 64, 4)
    with pytest.raises(UsageError, match=r"scales and biases \(8, 2\) of torch.float16, got none"):
        quantized_matmul_many(x, [(words, scales, None)], 64, 4)
    with pytest.raises(UsageError, match=r"got \(8, 2\) torch.float32"):
        quantized_matmul_many(x, [(words, scales.float(), biases)], 64, 4)
    codes = _weights(8, 128, ("mxfp4", 4, 32))
    with pytest.raises(UsageError, match="no biases with mode mxfp4"):
        quantized_matmul_many(x, [(*codes[:2], codes[1])], 32, 4, "mxfp4")
    with pytest.raises(UsageError, match="gate and up of one shape"):
        quantized_swiglu(x, weights, _weights(9, 128), 64, 4)


def test_one_launch_takes_few_rows_of_a_half_type() -> None:
    with prefer("lanes"), pytest.raises(UnsupportedError, match="takes float16 and bfloat16"):
        quantized_matmul_many(_x(1, 128, dtype="float32"), [_weights(8, 128, dtype="float32")] * 2, 64, 4)
    with prefer("lanes"), pytest.raises(UnsupportedError, match="2 or 3 products, not 4"):
        quantized_matmul_many(_x(1, 128), [_weights(8, 128)] * 4, 64, 4)
    for rows in (1, 9):  # more than 8 where asked for
        with prefer("lanes"):
            found = quantized_matmul_many(_x(rows, 128), [_weights(8, 128)] * 3, 64, 4)
        for out in found:
            _assert_right(out, _x(rows, 128), _weights(8, 128), AFFINE)


@pytest.mark.parametrize("gated", [False, True])
def test_refuses_a_gradient_on_every_call(gated: bool) -> None:
    x, one = _x(1, 128), _weights(8, 128)

    def call() -> Any:
        return quantized_swiglu(x, one, one, 64, 4) if gated else quantized_matmul_many(x, [one, one], 64, 4)[0]

    call()  # what is remembered of a call must not let the next one through
    x.requires_grad_()
    with pytest.raises(UsageError, match="without a gradient"):
        call()
    with torch.no_grad():
        assert not call().requires_grad


@pytest.mark.parametrize("target", ["gfx1151", "gfx1030", "gfx942"])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_on_amd_the_products_of_one_row_are_one_launch(target: str, bits: int) -> None:
    x = torch.empty(1, 1024, dtype=torch.bfloat16, device="meta")

    def weights(n: int) -> Any:
        words = torch.empty(n, 1024 * bits // 32, dtype=torch.int32, device="meta")
        scales = torch.empty(n, 16, dtype=torch.bfloat16, device="meta")
        return words, scales, scales

    recorder = Recorder(by_name(target))
    with executor.using(recorder):
        kernels.quantized_matmul_many(x, [weights(256), weights(64), weights(64)], 64, bits)
        kernels.quantized_swiglu(x, weights(256), weights(256), 64, bits)
        kernels.quantized_matmul(x, *weights(256), True, 64, bits)
    assert [launch.kernel.__name__ for launch in recorder.launches] == ["gemv_kernel"] * 3


def test_groups_must_fill_a_row() -> None:
    words, scales = torch.zeros(8, 12, dtype=torch.int32), torch.ones(8, 1, dtype=torch.float16)
    with pytest.raises(UsageError, match="multiple of the group size 64"):
        quantized_matmul_many(torch.ones(1, 96).half(), [(words, scales, scales)] * 2, 64, 4)


EPS = 1e-5


def _exact(k: int, dtype: str, seed: int) -> Any:
    """Return a row whose squares fp32 adds without rounding, in any order."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(-8, 9, (1, k), generator=generator) / 4).to(getattr(torch, dtype))


def _after_norm(x: Any, residual: Any, gain: Any, weights: Any, bits: int, *, gated: bool) -> list[Any]:
    """Return the same with a launch for the norm: products, sum, normalised x."""
    if residual is None:
        normed, total = kernels.rms_norm(x, gain, EPS), []
    else:
        normed, *total = kernels.add_rms_norm(x, residual, gain, EPS)
    if gated:
        products = [quantized_swiglu(normed, *weights, 64, bits)]
    elif len(weights) == 1:
        products = [kernels.quantized_matmul(normed, *weights[0], True, 64, bits)]
    else:
        products = list(quantized_matmul_many(normed, weights, 64, bits))
    return [*products, *total, normed]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("columns", [(13,), (12, 5, 8), (9, 9)])
@pytest.mark.parametrize(("k", "bits"), [(64, 4), (320, 4), (320, 8), (512, 2)])
@pytest.mark.parametrize("added", [False, True])
def test_a_norm_in_the_launch_changes_no_bit(
    dtype: str, columns: tuple[int, ...], k: int, bits: int, added: bool
) -> None:
    gated = len(columns) == 2
    x, gain = _exact(k, dtype, 1), _x(k, dtype=dtype)
    residual = _exact(k, dtype, 2) if added else None
    weights = [_weights(n, k, ("affine", bits, 64), dtype) for n in columns]
    with prefer("gemv"), poisoned():
        found = kernels.rms_norm_projections(
            x, gain, EPS, weights, 64, bits, residual=residual, gated=gated, keep=True
        )  # fmt: skip
    wanted = _after_norm(x, residual, gain, weights, bits, gated=gated)
    assert len(found) == len(wanted)
    for one, like in zip(found, wanted, strict=True):
        assert one.shape == like.shape
        assert torch.equal(one, like)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("gated", [False, True])
def test_any_row_is_normalised_and_multiplied(rows: int, gated: bool) -> None:
    """Against float64, with sums that round, no weight of the norm, and odd strides; several rows go one by one."""
    x, residual = _x(rows, 320)[:, ::1], _x(rows, 640)[:, ::2]
    weights = [_weights(n, 320) for n in (24, 24)]
    found, total, normed = (
        kernels.rms_norm_projections(x, None, EPS, weights[:2], 64, 4, residual=residual, gated=True, keep=True)
        if gated
        else kernels.rms_norm_projections(x, None, EPS, weights[:1], 64, 4, residual=residual, keep=True)
    )
    assert torch.equal(total, x + residual)
    exact = total.double() / (total.double().square().mean(-1, keepdim=True) + EPS).sqrt()
    assert bool(((normed.double() - exact).abs() <= exact.abs() * 2.0**-11 + 2.0**-24).all())
    if gated:
        assert torch.equal(found, quantized_swiglu(normed, *weights, 64, 4))
    else:
        _assert_right(found, normed, weights[0], AFFINE)


@pytest.mark.parametrize("target", ["gfx1151", "gfx1201", "gfx942", "gfx906", "gfx1030"])
def test_on_amd_a_norm_and_the_products_of_one_row_are_one_launch(target: str) -> None:
    def names(rows: int, count: int, dtype: Any = torch.bfloat16, **options: Any) -> list[str]:
        x = torch.empty(rows, 1024, dtype=dtype, device="meta")
        scales = torch.empty(256, 16, dtype=dtype, device="meta")
        one = (torch.empty(256, 128, dtype=torch.int32, device="meta"), scales, scales)
        recorder = Recorder(by_name(target))
        with executor.using(recorder):
            kernels.rms_norm_projections(x, x[0], EPS, [one] * count, 64, 4, residual=x, **options)
        return [launch.kernel.__name__ for launch in recorder.launches]

    assert names(1, 1) == names(1, 3, torch.float16) == names(1, 2, gated=True, keep=True) == ["gemv_kernel"]
    assert names(2, 1)[0] == "held_kernel"


def test_a_norm_that_does_not_fit_is_refused() -> None:
    x, one = _x(1, 128), _weights(8, 128)
    with pytest.raises(UsageError, match=r"expected residual \(1, 128\) of torch.float16, got \(1, 64\)"):
        kernels.rms_norm_projections(x, None, EPS, [one], 64, 4, residual=_x(1, 64))
    with pytest.raises(UsageError, match=r"expected norm_weight \(128,\) of torch.float16, got \(128,\) torch.float32"):
        kernels.rms_norm_projections(x, torch.ones(128), EPS, [one], 64, 4)
    with pytest.raises(UsageError, match="gate and up of one shape"):
        kernels.rms_norm_projections(x, None, EPS, [one], 64, 4, gated=True)
    with pytest.raises(UsageError, match="without a gradient"):
        kernels.rms_norm_projections(x, torch.ones(128).half().requires_grad_(), EPS, [one], 64, 4)
    with prefer("gemv"):
        nothing, total = kernels.rms_norm_projections(x, None, EPS, [_weights(0, 128)], 64, 4, residual=x)
    assert nothing.shape == (1, 0)
    assert torch.equal(total, x + x)


def test_on_nvidia_a_norm_is_a_launch_of_its_own_where_lanes_take_the_products(monkeypatch: Any) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    op = registry.get("quantized_projections")
    for products, rows, taken in ((1, 1, "gemv"), (3, 1, "gemv"), (1, 2, "norm_first"), (3, 8, "norm_first")):
        problem = op.problem("float16", "affine", 4, 64, False, products, rows, 4096, 4096, True, True)
        assert select(op, problem, by_name("sm90")).implementation == taken
        assert select(op, problem._replace(rows=1), by_name("gfx1151")).implementation == "gemv"
        with switched_off("nvidia"):
            alone = select(op, problem._replace(rows=1), by_name("sm90"))
        assert alone.implementation == "gemv"


@pytest.mark.parametrize("target", ["gfx1151", "gfx942", "sm80"])
def test_a_norm_before_the_products_of_a_row_is_in_their_launch(target: str) -> None:
    op = registry.get("quantized_projections")
    for columns, depth, gated in ((28672, 4096, True), (6144, 1024, True), (10240, 8192, False)):
        problem = op.problem("bfloat16", *AFFINE, gated, 2, 1, columns, depth, normed=True, added=True)
        with switched_off("nvidia"):
            assert select(op, problem, by_name(target)).implementation == "gemv"
