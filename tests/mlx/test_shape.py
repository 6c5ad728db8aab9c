"""Shapes: views, joins, padding, and the errors for what does not fit."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from rocmend.mlx import core as mx

pytestmark = pytest.mark.cpu

X = np.arange(24, dtype=np.int32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("ours", "expected"),
    [
        (lambda x: x.reshape(4, -1), X.reshape(4, 6)),
        (lambda x: mx.flatten(x, 1), X.reshape(2, 12)),
        (lambda x: mx.unflatten(x, -1, (2, -1)), X.reshape(2, 3, 2, 2)),
        (lambda x: mx.expand_dims(x, (0, -1)), X[None, ..., None]),
        (lambda x: mx.squeeze(x[:, :1], 1), X[:, 0]),
        (lambda x: mx.transpose(x, (2, 0, 1)), X.transpose(2, 0, 1)),
        (lambda x: mx.moveaxis(x, 0, -1), np.moveaxis(X, 0, -1)),
        (lambda x: mx.swapaxes(x, 0, 2), X.swapaxes(0, 2)),
        (lambda x: mx.broadcast_to(x[:1], (5, 3, 4)), np.broadcast_to(X[:1], (5, 3, 4))),
        (lambda x: mx.concatenate([x, x[:, :1]], 1), np.concatenate([X, X[:, :1]], 1)),
        (lambda x: mx.stack([x, x], -1), np.stack([X, X], -1)),
        (lambda x: mx.split(x, [1, -1], 2)[1], X[..., 1:-1]),
        (lambda x: mx.tile(x, (2, 1, 2)), np.tile(X, (2, 1, 2))),
        (lambda x: mx.repeat(x, 2, 1), np.repeat(X, 2, 1)),
        (lambda x: mx.roll(x, (1, -2), (0, 2)), np.roll(X, (1, -2), (0, 2))),
        (lambda x: mx.flip(x, (0, 2)), np.flip(X, (0, 2))),
        (lambda x: mx.diagonal(x, 1, 1, 2), np.diagonal(X, 1, 1, 2)),
        (lambda x: mx.trace(x, 0, 1, 2), np.trace(X, 0, 1, 2)),
        (
            lambda x: mx.pad(x, ((1, 0), (0, 2), (1, 1)), constant_values=7),
            np.pad(X, ((1, 0), (0, 2), (1, 1)), constant_values=7),
        ),
        (lambda x: mx.pad(x, 2, "reflect"), np.pad(X[:, :, :], 2, "reflect")),
        (lambda x: mx.pad(x, 5, "symmetric"), np.pad(X, 5, "symmetric")),
        (lambda x: mx.pad(x, 1, "edge"), np.pad(X, 1, "edge")),
        (lambda x: mx.as_strided(x, (3, 3), (1, 2), 4), 4 + np.arange(3)[:, None] + 2 * np.arange(3)),
        (lambda x: mx.as_strided(x.T, (3,), (-1,), 5), np.ascontiguousarray(X.T).reshape(-1)[[5, 4, 3]]),
        (lambda x: mx.diag(x[0, 0], -1), np.diag(X[0, 0], -1)),
    ],
)
def test_equals_numpy(ours: Any, expected: Any) -> None:
    found = ours(mx.array(X))
    assert found.shape == expected.shape
    assert np.array_equal(np.array(found), expected)


def test_handles_are_apart() -> None:
    x = mx.array([1, 2, 3])
    for same in (x.reshape(3), x[:], mx.transpose(x), mx.broadcast_to(x, (3,)), mx.concatenate([x])):
        same.__iadd__(1)
        assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: x.reshape(5, 5), ValueError),
        (lambda x: x.reshape(-1, -1), ValueError),
        (lambda x: mx.reshape(x, [2**31]), OverflowError),
        (lambda x: mx.squeeze(x, 0), ValueError),
        (lambda x: mx.squeeze(x, 7), IndexError),
        (lambda x: mx.squeeze(x, 7), ValueError),
        (lambda x: mx.expand_dims(x, (1, 1)), ValueError),
        (lambda x: mx.transpose(x, (0, 1)), ValueError),
        (lambda x: mx.transpose(x, (0, 0, 1)), ValueError),
        (lambda x: mx.broadcast_to(x, (2, 3)), ValueError),
        (lambda x: mx.concatenate([x][:0]), ValueError),
        (lambda x: mx.concatenate([x, x[0]]), ValueError),
        (lambda x: mx.split(x, 5, 0), ValueError),
        (lambda x: mx.pad(x, -1), ValueError),
        (lambda x: mx.pad(x, 1, "wrap"), ValueError),
        (lambda x: mx.as_strided(x, (30,), (1,)), ValueError),
    ],
)
def test_errors(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(mx.array(X))


def test_derivatives() -> None:
    x = mx.array(X.astype(np.float32))
    weights = mx.array(np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32))

    def loss(z: Any) -> Any:
        turned = mx.pad(mx.transpose(z, (2, 0, 1)).reshape(4, 6)[::-1], ((0, 0), (1, 1)))
        return (turned[:, 1:-1] * weights).sum()

    expected = np.array(weights)[::-1].reshape(4, 2, 3).transpose(1, 2, 0)
    assert np.allclose(np.array(mx.grad(loss)(x)), expected)
