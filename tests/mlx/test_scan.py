"""Scans: from either end, with and without the element itself, in every type."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from rocmend.mlx import core as mx

pytestmark = pytest.mark.cpu

X = np.random.default_rng(3).integers(1, 4, (3, 5)).astype(np.float32)
SCANS = {
    "cumsum": np.add,
    "cumprod": np.multiply,
    "cummax": np.maximum,
    "cummin": np.minimum,
    "logcumsumexp": np.logaddexp,
}
FIRST = {"cumsum": 0, "cumprod": 1, "cummax": -np.inf, "cummin": np.inf, "logcumsumexp": -np.inf}


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("name", SCANS)
def test_equals_numpy(name: str, axis: int | None, reverse: bool, inclusive: bool) -> None:
    x, along = (X.reshape(-1), 0) if axis is None else (X, axis)
    x = np.flip(x, along) if reverse else x
    expected = SCANS[name].accumulate(x, along)
    if not inclusive:
        edge = np.full_like(expected.take([0], along), FIRST[name])
        expected = np.concatenate([edge, expected.take(range(x.shape[along] - 1), along)], along)
    expected = np.flip(expected, along) if reverse else expected
    found = np.array(getattr(mx, name)(mx.array(X), axis, reverse=reverse, inclusive=inclusive))
    assert np.allclose(found, expected, atol=1e-5)


def test_types() -> None:
    assert mx.cumsum(mx.array([True, True])).tolist() == [1, 2]
    assert mx.cumsum(mx.array([100, 100], mx.int8)).tolist() == [100, -56]
    assert mx.cumsum(mx.array([100, 100], mx.int8), dtype=mx.int32).tolist() == [100, 200]
    assert mx.cummax(mx.array([3, 1, 2], mx.uint32), inclusive=False).tolist() == [0, 3, 3]
    assert mx.cummin(mx.array([3, 1, 2], mx.uint32), inclusive=False).tolist() == [2**32 - 1, 3, 1]
    assert mx.cummax(mx.array(np.array([1, 2**63 + 1, 5], np.uint64))).tolist() == [1, 2**63 + 1, 2**63 + 1]
    assert np.isnan(np.array(mx.cummax(mx.array([1.0, float("nan"), 2.0])))).tolist() == [False, True, True]


def test_derivatives() -> None:
    x = mx.array([2.0, 0.0, 3.0])
    assert mx.grad(lambda z: mx.cumsum(z).sum())(x).tolist() == [3, 2, 1]
    assert mx.grad(lambda z: mx.cumprod(z).sum())(x).tolist() == [1, 8, 0]
    assert mx.grad(lambda z: mx.cummax(z, 0).sum())(x).tolist() == [2, 0, 1]
    batched = mx.vmap(lambda z: mx.cumsum(z, 0), in_axes=1)(mx.array(X))
    assert np.array_equal(np.array(batched), np.cumsum(X, 0).T)


def test_diff() -> None:
    assert np.array_equal(np.array(mx.diff(mx.array(X), 2, 1)), np.diff(X, 2, 1))
    assert mx.diff(mx.array([True, False, False])).tolist() == [True, False]
    with pytest.raises(ValueError, match="negative"):
        mx.diff(mx.array(X), -1)
