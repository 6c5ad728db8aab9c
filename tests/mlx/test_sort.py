"""Order: sorting of every type, places, and what is searched."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("torch")

from rocmend.mlx import core as mx

pytestmark = pytest.mark.cpu

TYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32"]


def values(name: str) -> Any:
    rng = np.random.default_rng(2)
    if name == "bool":
        return rng.integers(0, 2, (5, 7)).astype(bool)
    if name.startswith("float"):
        x = rng.standard_normal((5, 7)).astype(name)
        x[0, 2], x[1, 3] = np.nan, np.inf
        return x
    info = np.iinfo(name)
    return rng.integers(info.min, info.max, (5, 7), name, endpoint=True)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("name", TYPES)
def test_sort(name: str, axis: int | None) -> None:
    x = values(name)
    assert np.array_equal(np.array(mx.sort(mx.array(x), axis)), np.sort(x, axis), equal_nan=name.startswith("float"))
    places = mx.argsort(mx.array(x), axis)
    assert places.dtype is mx.uint32
    assert np.array_equal(np.array(places), np.argsort(x, axis, kind="stable"))


@pytest.mark.parametrize("name", TYPES)
def test_partition_and_topk(name: str) -> None:
    x = values(name)
    kth = 3
    whole = np.sort(x, -1)
    same = {"equal_nan": True} if name.startswith("float") else {}
    parted = np.array(mx.partition(mx.array(x), kth, -1))
    assert np.array_equal(parted[:, kth], whole[:, kth], **same)
    assert np.array_equal(np.sort(parted[:, :kth], -1), whole[:, :kth], **same)
    places = np.array(mx.argpartition(mx.array(x), kth, -1)).astype(np.int64)
    assert np.array_equal(np.take_along_axis(x, places, -1)[:, kth], whole[:, kth], **same)
    assert np.array_equal(np.sort(np.array(mx.topk(mx.array(x), 2)), -1), whole[:, -2:], **same)


def test_derivative() -> None:
    x = mx.array([3.0, 1.0, 2.0])
    weights = mx.array([1.0, 10.0, 100.0])
    assert mx.grad(lambda z: (mx.sort(z) * weights).sum())(x).tolist() == [100, 1, 10]
    assert mx.grad(lambda z: mx.topk(z, 2).sum())(x).tolist() == [1, 0, 1]


def test_searchsorted() -> None:
    row = mx.array([1.0, 2.0, 2.0, 4.0, float("nan")])
    wanted = mx.array([0.0, 2.0, 3.0, 9.0, float("nan")])
    assert mx.searchsorted(row, wanted).tolist() == [0, 1, 3, 4, 4]
    assert mx.searchsorted(row, wanted, side="right").tolist() == [0, 3, 3, 4, 5]
    with pytest.raises(ValueError, match="side"):
        mx.searchsorted(row, wanted, side="middle")


def test_unique() -> None:
    found = mx.unique(mx.array([3, 1, 1, 2]), 5, True, True, True, fill_value=9)
    assert [x.tolist() for x in found] == [[1, 2, 3, 9, 9], [1, 3, 0, 1, 1], [2, 0, 0, 1], [2, 1, 1, 0, 0]]
    assert mx.unique(mx.array([3, 1, 1, 2]), 2).tolist() == [1, 2]
    with pytest.raises(ValueError, match="size"):
        mx.unique(mx.array([1]), -1)
