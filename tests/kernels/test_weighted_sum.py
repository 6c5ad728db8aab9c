"""Weighted sums: every type, odd and empty shapes, any strides, and what does not fit."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.core.errors import UsageError
from rocmend.kernels import weighted_sum
from rocmend.kernels.select import UnsupportedError, prefer

pytestmark = [pytest.mark.cpu]

DTYPES = ["float32", "float16", "bfloat16"]


def _normal(*shape: int, dtype: str = "float32") -> Any:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).to(getattr(torch, dtype))


def _assert_right(x: Any, weights: Any) -> None:
    out = weighted_sum(x, weights)
    products = x.double() * weights.double()[..., None]
    wanted = products.sum(-2)
    assert out.dtype == x.dtype
    assert out.is_contiguous()
    assert out.shape == wanted.shape
    # Half a unit in the last place for each product and for the result, and as much of fp32 for each addition.
    units = torch.finfo(x.dtype).eps + torch.finfo(torch.float32).eps * x.shape[-2] / 2
    near = units * products.abs().sum(-2)
    assert bool(((out.double() - wanted).abs() <= near).all())


@pytest.mark.parametrize("tier", ["triton", "reference"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (3, 8, 70), (2, 3, 5, 33), (7, 32, 1), (2, 1, 257)])
def test_is_the_sum_of_the_rows_times_their_weights(tier: str, dtype: str, shape: tuple[int, ...]) -> None:
    with prefer(tier):
        _assert_right(_normal(*shape, dtype=dtype), _normal(*shape[:-1], dtype=dtype))


@pytest.mark.parametrize("tier", ["triton", "reference"])
def test_reads_any_strides(tier: str) -> None:
    x, weights = _normal(4, 6, 40), _normal(4, 6)
    with prefer(tier):
        _assert_right(_normal(4, 40, 6).transpose(1, 2), weights)
        _assert_right(x[:, ::2], weights[:, 1::2])
        _assert_right(x[..., ::3], _normal(6, 4).t())
        _assert_right(x[:1].expand(4, 6, 40), weights[:1].expand(4, 6))
        _assert_right(x.transpose(0, 1), weights.t())


@pytest.mark.parametrize("tier", ["triton", "reference"])
@pytest.mark.parametrize("shape", [(0, 3, 16), (2, 0, 16), (2, 3, 0)])
def test_sums_nothing(tier: str, shape: tuple[int, ...]) -> None:
    with prefer(tier):
        out = weighted_sum(_normal(*shape), _normal(*shape[:-1]))
    assert torch.equal(out, torch.zeros(shape[0], shape[2]))


def test_adds_up_more_rows_than_the_kernel_takes() -> None:
    _assert_right(_normal(2, 33, 40), _normal(2, 33))
    with prefer("triton"), pytest.raises(UnsupportedError, match="rows up to 32, not 33"):
        weighted_sum(_normal(2, 33, 40), _normal(2, 33))


@pytest.mark.parametrize("tier", ["triton", "reference"])
def test_keeps_infinities_and_nan_in_their_places(tier: str) -> None:
    x = torch.ones(1, 3, 4)
    x[0, 1, 1], x[0, 2, 2] = float("inf"), float("nan")
    with prefer(tier):
        out = weighted_sum(x, torch.tensor([[1.0, -2.0, 0.5]]))[0]
    assert out[[0, 3]].tolist() == [-0.5, -0.5]
    assert out[1] == float("-inf")
    assert out[2].isnan()


def test_a_second_call_reads_its_own_arguments() -> None:
    first, second = _normal(2, 3, 20), _normal(2, 3, 20) + 1
    with prefer("triton"):
        kept = weighted_sum(first, _normal(2, 3))
        copy = kept.clone()
        _assert_right(second, _normal(2, 3) * 2)
    assert torch.equal(kept, copy)


def test_says_what_does_not_fit() -> None:
    x, weights = _normal(2, 3, 8), _normal(2, 3)
    with pytest.raises(UsageError, match=r"expected weights \(2, 3\) for x \(2, 3, 8\), got \(3,\)"):
        weighted_sum(x, weights[0])
    with pytest.raises(UsageError, match="expected weights"):
        weighted_sum(x[0, 0], weights[0])
    with pytest.raises(UsageError, match="one type of float32"):
        weighted_sum(x, weights.half())
    with pytest.raises(UsageError, match="one type of float32"):
        weighted_sum(x.double(), weights.double())


@pytest.mark.parametrize("which", [0, 1])
def test_refuses_a_gradient_on_every_call(which: int) -> None:
    given = [_normal(2, 3, 8), _normal(2, 3)]
    weighted_sum(*given)  # what is remembered of a call must not let the next one through
    given[which].requires_grad_()
    with pytest.raises(UsageError, match="without a gradient"):
        weighted_sum(*given)
    with torch.no_grad():
        assert not weighted_sum(*given).requires_grad
