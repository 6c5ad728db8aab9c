"""Arrays from nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from rocmend.mlx import core as mx

pytestmark = pytest.mark.cpu


def test_filled_arrays() -> None:
    assert mx.zeros(3).tolist() == [0, 0, 0]
    assert mx.zeros((2, 0)).shape == (2, 0)
    assert mx.ones((), mx.bool_).item() is True
    assert mx.zeros((2,), None).dtype is mx.float32
    assert mx.full((2,), 3).dtype is mx.int32
    assert mx.full((2,), True).dtype is mx.bool_
    assert mx.full((2,), 3, mx.float16).dtype is mx.float16
    assert mx.full((2,), 1j).tolist() == [1j, 1j]
    # a float is not cut down to an integer type; an array keeps its own
    assert mx.full((2,), 3.5, mx.int32).tolist() == [3.5, 3.5]
    assert mx.full((2, 2), mx.array([1, 2]), mx.float16).dtype is mx.int32
    assert mx.full((1,), -1, mx.uint64).item() == 2**64 - 1
    with pytest.raises(ValueError, match="Negative"):
        mx.zeros((-1,))
    with pytest.raises(TypeError, match="Dtype"):
        mx.zeros((1,), int)


def test_filled_like_others() -> None:
    x = mx.array([[1, 2]])
    assert (mx.zeros_like(x).tolist(), mx.ones_like(x).tolist()) == ([[0, 0]], [[1, 1]])
    assert mx.ones_like(x, mx.bfloat16).dtype is mx.bfloat16
    assert mx.full_like(x, 2.5).tolist() == [[2, 2]]
    assert mx.full_like(x, 2.5, mx.float32).tolist() == [[2.5, 2.5]]
    assert mx.full_like(x, mx.array([7.5, 8.0])).tolist() == [[7, 8]]
    assert mx.empty((2, 3), mx.int8).shape == mx.empty_like(mx.zeros((2, 3))).shape == (2, 3)


@pytest.mark.parametrize(
    ("args", "named", "values", "dtype"),
    [
        ((5,), {}, [0, 1, 2, 3, 4], mx.int32),
        ((1, 10, 3), {}, [1, 4, 7], mx.int32),
        ((5, 1, -1), {}, [5, 4, 3, 2], mx.int32),
        ((3, 0), {}, [], mx.int32),
        ((3, None), {}, [0, 1, 2], mx.int32),
        ((5.0,), {}, [0, 1, 2, 3, 4], mx.float32),
        ((0, 1, 0.25), {}, [0, 0.25, 0.5, 0.75], mx.float32),
        ((2**40, 2**40 + 2), {}, [2**40, 2**40 + 1], mx.int64),
        ((), {"stop": 2, "step": 0.5}, [0, 0.5, 1, 1.5], mx.float32),
        ((), {"start": 2, "stop": 4, "step": None}, [2, 3], mx.int32),
        ((5,), {"stop": 7}, [5, 6], mx.int32),
        ((0, 3, 1, mx.float16), {}, [0, 1, 2], mx.float16),
        ((3, 1, mx.float16), {}, [0, 1, 2], mx.float16),
        ((0.5, 5), {"dtype": mx.int32}, [0, 1, 2, 3, 4], mx.int32),
        ((0, 2.5, 0.5), {"dtype": mx.int32}, [0, 0, 0, 0, 0], mx.int32),
        ((5, 1, -1), {"dtype": mx.uint8}, [5, 4, 3, 2], mx.uint8),
        ((0, 3), {"dtype": mx.complex64}, [0, 1, 2], mx.complex64),
        ((0, 3, math.inf), {}, [0], mx.float32),
        ((-3, None, -1), {}, [0, -1, -2], mx.int32),
    ],
    ids=repr,
)  # fmt: skip
def test_ranges(args: tuple[Any, ...], named: dict[str, Any], values: list[float], dtype: mx.Dtype) -> None:
    out = mx.arange(*args, **named)
    assert (out.tolist(), out.dtype) == (values, dtype)


@pytest.mark.parametrize(
    ("args", "named", "error"),
    [
        ((0, 5, 0), {}, ValueError),
        ((0, math.inf), {}, ValueError),
        ((math.nan,), {}, ValueError),
        ((True,), {}, ValueError),
        ((0, 3), {"dtype": mx.bool_}, ValueError),
        ((2**31,), {}, ValueError),
        ((), {"start": 1}, TypeError),
        ((), {"start": 1, "step": 2}, TypeError),
        ((), {}, TypeError),
        ((None,), {}, TypeError),
        (("3",), {}, TypeError),
        ((1, 2, 3, mx.int32, 5), {}, TypeError),
        ((1, 2), {"end": 3}, TypeError),
    ],
    ids=repr,
)
def test_what_is_no_range(args: tuple[Any, ...], named: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        mx.arange(*args, **named)


def test_linspace() -> None:
    assert mx.linspace(0, 1, 5).tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert mx.linspace(0, 10, 11, dtype=mx.int32).tolist() == list(range(11))
    assert mx.linspace(0, 1, 4, endpoint=False).tolist() == [0, 0.25, 0.5, 0.75]
    assert mx.linspace(2, 3, 1).tolist() == [2]
    assert mx.linspace(0, 1, 0).shape == (0,)
    assert mx.linspace(-1, 1).shape == (50,)
    with pytest.raises(ValueError, match="linspace"):
        mx.linspace(0, 1, -1)


@pytest.mark.parametrize("k", [-5, -1, 0, 1, 2, 5])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (0, 2)], ids=str)
def test_triangles_and_diagonals(shape: tuple[int, int], k: int) -> None:
    n, m = shape
    assert mx.eye(n, m, k).tolist() == np.eye(n, m, k).tolist()
    assert mx.tri(n, m, k).tolist() == np.tri(n, m, k).tolist()
    x = np.arange(2.0 * n * m).reshape(2, n, m) + 1
    assert mx.tril(mx.array(x), k).tolist() == np.tril(x, k).tolist()
    assert mx.triu(mx.array(x), k).tolist() == np.triu(x, k).tolist()


def test_triangles_at_the_edges() -> None:
    assert mx.identity(2, mx.int8).tolist() == [[1, 0], [0, 1]]
    assert mx.tri(2).dtype is mx.float32
    for triangle in (mx.tril, mx.triu):
        with pytest.raises(ValueError, match="2-D"):
            triangle(mx.zeros((3,)))
    with pytest.raises(ValueError, match="eye"):
        mx.eye(-1)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_grids(indexing: str, sparse: bool) -> None:
    parts = [np.array([1, 2]), np.array([3, 4, 5]), np.array(6)]
    for count in (1, 2, 3):
        out = mx.meshgrid(*map(mx.array, parts[:count]), indexing=indexing, sparse=sparse)
        expected = np.meshgrid(*parts[:count], indexing=indexing, sparse=sparse)
        assert [x.tolist() for x in out] == [x.tolist() for x in expected]
    with pytest.raises(ValueError, match="indexing"):
        mx.meshgrid(mx.array([1]), indexing="ji")


@pytest.mark.parametrize("name", ["bartlett", "blackman", "hamming", "hanning"])
def test_windows(name: str) -> None:
    window = getattr(mx, name)
    for points in (1, 2, 5, 12):
        assert np.allclose(window(points).tolist(), getattr(np, name)(points), atol=1e-6)
    assert window(0).shape == window(-3).shape == (0,)
    assert window(4).dtype is mx.float32


def test_constants() -> None:
    assert (mx.pi, mx.e, mx.inf, mx.newaxis) == (math.pi, math.e, math.inf, None)
    assert math.isnan(mx.nan)
    assert mx.euler_gamma == pytest.approx(float(np.euler_gamma))


def test_arrays_from_others() -> None:
    assert mx.asarray((1, 2), mx.float16).dtype is mx.float16
    x = mx.array([1])
    assert mx.asarray(x, copy=True).tolist() == [1]
    for value in (x, [1], 5):
        with pytest.raises(ValueError, match="copy"):
            mx.asarray(value, copy=False)
    assert mx.from_dlpack(np.arange(3)).dtype is mx.int64
    with pytest.raises(TypeError, match="__dlpack__"):
        mx.from_dlpack([1])
