"""Reductions: types they are kept in, NaN, axes of nothing, derivatives."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from rocmend.mlx import core as mx

pytestmark = pytest.mark.cpu

X = np.random.default_rng(1).standard_normal((3, 4, 5)).astype(np.float32)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), [1, 2]])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "median"])
def test_equals_numpy(name: str, axis: Any, keepdims: bool) -> None:
    found = getattr(mx, name)(mx.array(X), axis=axis, keepdims=keepdims)
    expected = getattr(np, name)(X, axis=tuple(axis) if isinstance(axis, list) else axis, keepdims=keepdims)
    assert found.shape == expected.shape
    assert np.allclose(np.array(found), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        ("bool_", "int32"), ("int8", "int32"), ("int16", "int32"), ("uint8", "uint32"), ("uint16", "uint32"),
        ("uint32", "uint32"), ("int64", "int64"), ("float16", "float16"), ("bfloat16", "bfloat16"),
    ],
)  # fmt: skip
def test_types(dtype: str, kept: str) -> None:
    ones = mx.ones((300,), getattr(mx, dtype))
    assert mx.sum(ones).dtype is getattr(mx, kept)
    assert mx.sum(ones).item() == 300
    assert mx.max(ones).dtype is getattr(mx, dtype)


def test_unsigned_and_nan() -> None:
    assert mx.sum(mx.array([40000, 40000], mx.uint16)).item() == 80000
    for dtype in (mx.uint16, mx.uint32, mx.uint64):
        top = 2 ** (dtype.size * 8) - 1
        x = mx.array(np.array([1, top], dtype.name if hasattr(dtype, "name") else str(dtype).split(".")[-1]))
        assert (mx.max(x).item(), mx.min(x).item(), mx.argmax(x).item()) == (top, 1, 1)
    broken = mx.array([1.0, float("nan"), 2.0], mx.float16)
    assert np.isnan(mx.max(broken).item())
    assert np.isnan(mx.min(broken).item())
    assert (mx.argmax(broken).item(), mx.argmin(broken).item()) == (1, 1)


def test_nothing_to_reduce() -> None:
    empty = mx.zeros((0, 3))
    assert mx.sum(empty, 0).tolist() == [0, 0, 0]
    assert mx.prod(empty).item() == 1
    assert mx.max(empty, 1).shape == (0,)
    for call in (mx.max, mx.min, mx.argmax, mx.logsumexp, mx.median):
        with pytest.raises(ValueError, match=r"\["):
            call(empty)
    with pytest.raises(ValueError, match="uplicate"):
        mx.sum(empty, (0, 0))
    with pytest.raises(IndexError):
        mx.sum(empty, 2)


def test_logsumexp() -> None:
    x = mx.array(X)
    assert np.allclose(np.array(mx.logsumexp(x, (0, 2))), np.log(np.exp(X).sum((0, 2))), atol=1e-5)
    assert mx.logsumexp(mx.array([1000.0, 1000.0])).item() == pytest.approx(1000 + np.log(2))
    assert mx.logsumexp(mx.array([-np.inf, -np.inf])).item() == -np.inf
    weights = np.exp(X) / np.exp(X).sum(-1, keepdims=True)
    assert np.allclose(np.array(mx.grad(lambda z: mx.logsumexp(z, -1).sum())(x)), weights, atol=1e-5)


def test_derivatives() -> None:
    x = mx.array([2.0, 0.0, 3.0])
    assert mx.grad(mx.prod)(x).tolist() == [0, 6, 0]
    assert mx.grad(mx.max)(mx.array([1.0, 4.0, 4.0])).tolist() == [0, 0.5, 0.5]
    assert mx.grad(mx.mean)(x).tolist() == pytest.approx([1 / 3] * 3)
    batched = mx.vmap(lambda z: mx.sum(z, 0), in_axes=1)(mx.array(X))
    assert np.allclose(np.array(batched), X.sum(0), atol=1e-5)


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_derivatives_of_logsumexp_are_the_softmax_rounded_once(dtype: Any) -> None:
    """Not the exponential of a difference to a sum that was rounded: that is off by a part of the sum's size."""
    x = (mx.random.normal((3, 40), key=mx.random.key(0)) * 3 + 200).astype(dtype)
    exact = mx.softmax(x.astype(mx.float32), axis=-1)
    found = mx.grad(lambda v: mx.logsumexp(v, axis=-1).astype(mx.float32).sum())(x)
    assert found.dtype == dtype
    near = mx.abs(found.astype(mx.float32) - exact).max().item()
    assert near <= {mx.float32: 2**-23, mx.float16: 2**-12, mx.bfloat16: 2**-9}[dtype]
    _, tangents = mx.jvp(lambda v: mx.logsumexp(v, axis=-1), [x], [mx.ones_like(x)])
    assert mx.abs(tangents[0].astype(mx.float32) - 1).max().item() <= 4 * mx.finfo(dtype).eps
