"""Indexing: reading, writing, joining, against numpy; what MLX does otherwise is told apart."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from rocmend.mlx import core as mx

pytestmark = pytest.mark.cpu

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
A = np.array([[0, -1], [1, 2]], np.int32)

INDICES: list[Any] = [
    1,
    -1,
    slice(None),
    slice(1, 3),
    slice(None, None, -1),
    None,
    ...,
    (),
    (0, -1, 2),
    (..., slice(1, 3), slice(None)),
    (slice(None), -1, slice(None)),
    (..., slice(-2, None)),
    (slice(3, 0, -2), None, slice(None, None, 2)),
    (None, 1, ..., None),
    A,
    (A, 0),
    (slice(None), A),
    (A, slice(1, 3), A),
    (slice(None), A, A[0]),
    (slice(None, None, -1), A, slice(4, None, -2)),
    (A, None, A),
    (slice(5, 9),),
]


def ours(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(mx.array(one) if isinstance(one, np.ndarray) else one for one in index)
    return mx.array(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_read_and_write(index: Any) -> None:
    x = mx.array(X)
    read = np.array(x[ours(index)])
    assert read.shape == X[index].shape
    assert np.array_equal(read, X[index])
    written, y = X.copy(), mx.array(X)
    written[index] = -3
    y[ours(index)] = -3
    assert np.array_equal(np.array(y), written)
    assert np.array_equal(np.array(x), X)


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize(
    ("method", "join"),
    [
        ("add", np.add),
        ("subtract", np.subtract),
        ("multiply", np.multiply),
        ("maximum", np.maximum),
        ("minimum", np.minimum),
    ],
)
def test_each_update_counts(index: Any, method: str, join: Any) -> None:
    expected = X.copy()
    join.at(expected, index, 7)
    found = getattr(mx.array(X).at[ours(index)], method)(7)
    assert np.allclose(np.array(found), expected)


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_gradients(index: Any) -> None:
    expected = np.zeros_like(X)
    np.add.at(expected, index, 2 * X[index])
    found = mx.grad(lambda z: (z[ours(index)] ** 2).sum())(mx.array(X))
    assert np.allclose(np.array(found), expected)


@pytest.mark.parametrize("index", INDICES[4:18], ids=str)
def test_batches(index: Any) -> None:
    if index in ((), None, ...) if not isinstance(index, np.ndarray | tuple) else False:
        return
    batch = np.stack([X, X * 2, X - 1], 1)
    found = mx.vmap(lambda z: z[ours(index)], in_axes=1)(mx.array(batch))
    assert np.array_equal(np.array(found), np.stack([batch[:, i][index] for i in range(3)]))


def test_batches_of_indices() -> None:
    x = mx.array(X)
    places = mx.array([[0, 1], [2, 2]])
    found = mx.vmap(lambda i: mx.take(x, i, 1))(places)
    assert np.array_equal(np.array(found), np.stack([X[:, [0, 1]], X[:, [2, 2]]]))
    found = mx.vmap(lambda z, i: z.at[i].add(1.0), in_axes=(0, 0))(x[:2], places)
    expected = X[:2].copy()
    np.add.at(expected, (np.array([0, 0, 1, 1]), np.array([0, 1, 2, 2])), 1)
    assert np.array_equal(np.array(found), expected)


def test_masks() -> None:
    x = mx.array(X)
    x[x > 20] = 0
    assert np.array_equal(np.array(x), np.where(X > 20, 0, X))
    y = mx.array([1, 2, 3, 4])
    y[mx.array([True, False, True, False])] = mx.array([7, 8])
    assert y.tolist() == [7, 2, 8, 4]
    with pytest.raises(ValueError, match="oolean"):
        y[mx.array([True, False, True, False])]


def test_what_lies_outside() -> None:
    x = mx.array([1, 2, 3])
    x[7].item()  # anything but an error, as in MLX
    x[mx.array([5])] = 9
    assert x.tolist() == [1, 2, 3]
    for index in ((0, 5), 2**32, slice(0, 2**32), 1.0, "x", (0, 0)):
        with pytest.raises(ValueError, match=r"\[index\]|index"):
            (mx.zeros((2, 3)) if index == (0, 5) else x)[index]


def test_along_axes_and_at_places_of_arrays() -> None:
    order = np.argsort(-X, 1)
    assert np.array_equal(
        np.array(mx.take_along_axis(mx.array(X), mx.array(order), 1)), np.take_along_axis(X, order, 1)
    )
    expected = X.copy()
    np.put_along_axis(expected, order[:, :1], -1, 1)
    assert np.array_equal(np.array(mx.put_along_axis(mx.array(X), mx.array(order[:, :1]), mx.array(-1.0), 1)), expected)
    assert np.array_equal(np.array(mx.slice(mx.array(X), mx.array([1, -2]), (1, 2), (3, 2, 2))), X[:, 1:3, 3:])
    expected = X.copy()
    expected[:, 2:3] = 5
    found = mx.slice_update(mx.array(X), mx.full((3, 1, 5), 5.0), mx.array([2]), (1,))
    assert np.array_equal(np.array(found), expected)
