"""What random programs (``fuzz/mlx``) found to differ from MLX 0.32.4, with the seed; values are MLX's on the CPU."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")

from rocmend.mlx import core as mx

if TYPE_CHECKING:
    from typing import Any

pytestmark = pytest.mark.cpu


def same(got: mx.array, dtype: mx.Dtype, values: Any) -> None:
    """Check type and values."""
    assert got.dtype == dtype
    assert got.tolist() == values


@pytest.mark.parametrize("dtype", [mx.bool_, mx.int8, mx.int16, mx.uint8, mx.uint16])
@pytest.mark.parametrize("name", ["sum", "prod"])
def test_nothing_to_add_keeps_the_type(name: str, dtype: mx.Dtype) -> None:
    """Seeds 1025, 1119, 1639, 1644, 2977: a sum over no axis is the array."""
    same(getattr(mx, name)(mx.array(1, dtype), keepdims=True), dtype, 1)
    same(getattr(mx, name)(mx.array([1, 0], dtype), axis=()), dtype, [1, 0])
    wider = mx.uint32 if dtype in (mx.uint8, mx.uint16) else mx.int32
    assert getattr(mx, name)(mx.array([1], dtype)).dtype == wider


def test_softmax_of_integers() -> None:
    """Seeds 1220, 1352, 1424: they stay integers unless the last axis is among the axes."""
    rows = mx.array([[1, 90], [30, 9]])
    same(mx.softmax(rows, axis=0), mx.int32, [[0, 1], [1, 0]])
    same(mx.softmax(mx.array(3)), mx.int32, 1)
    same(mx.softmax(mx.array([[True, False]]), axis=0), mx.bool_, [[True, True]])
    assert mx.softmax(rows, axis=-1).dtype == mx.float32
    assert mx.softmax(rows).dtype == mx.float32
    same(mx.softmax(mx.zeros((0, 3), mx.int32), axis=1), mx.int32, [])


@pytest.mark.parametrize(("low", "high", "dtype", "least", "most"), [
    (-5, 20, mx.uint8, 251, 251), (250, 300, mx.uint8, 250, 250), (0, 300, mx.int8, 0, 43), (-5, 20, mx.int8, -5, 19),
])  # fmt: skip
def test_bounds_that_the_type_does_not_hold(low: int, high: int, dtype: mx.Dtype, least: int, most: int) -> None:
    """Seeds 1132, 1371, 1389: bounds of ``randint`` wrap to the type, and then bound what is drawn."""
    drawn = mx.random.randint(low, high, [500], dtype, key=mx.random.key(3))
    same(mx.stack([drawn.min(), drawn.max()]), dtype, [least, most])


def test_randint_of_wide_and_narrow_types() -> None:
    """Recorded: the draws themselves are as they were."""
    key = mx.random.key(3)
    same(mx.random.randint(0, 300, [6], mx.int8, key=key), mx.int8, [43, 43, 0, 0, 0, 0])
    wide = [438596480, 807254848, 975063552, 1724208512, 1411764224, 1764512384]
    same(mx.random.randint(0, 2**31 - 1, [6], mx.uint32, key=key), mx.uint32, wide)
    same(mx.random.randint(0, 2, [6], mx.bool_, key=key), mx.bool_, [False, False, False, True, True, True])


@pytest.mark.parametrize(("name", "value", "dtype", "out"), [
    ("add", 2.5, mx.float32, [3.5, 92.5]), ("subtract", 2.5, mx.float32, [-1.5, 87.5]),
    ("multiply", 2.5, mx.float32, [2.5, 225.0]), ("divide", 2, mx.float32, [0.5, 45.0]),
    ("maximum", 2.5, mx.float32, [2.5, 90.0]), ("minimum", 2, mx.int32, [1, 2]),
])  # fmt: skip
def test_a_join_with_the_whole_array_promotes(name: str, value: float, dtype: mx.Dtype, out: list[float]) -> None:
    """Seeds 1008, 1009, 1165, 2322, 2555: ``x.at[...]`` and ``x.at[None]`` give the type of ``x + value``."""
    x = mx.array([1, 90])
    for whole in (x.at[...], x.at[None]):
        same(getattr(whole, name)(value), dtype, out)
    assert getattr(x.at[:], name)(value).dtype == mx.int32
    assert getattr(mx.array(1).at[()], name)(2.5).dtype == mx.float32


def test_a_new_axis_joins_no_larger_update() -> None:
    """Seeds 1005, 2115, 2231: ``at[None]`` takes updates of the array's own shape."""
    x = mx.zeros((1, 3))
    with pytest.raises(ValueError, match="broadcast"):
        x.at[None].add(mx.ones((1, 1, 3)))
    same(x.at[...].add(mx.ones((1, 1, 3))), mx.float32, [[1.0, 1.0, 1.0]])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_nothing_is_taken_from_an_empty_array(axis: int) -> None:
    """Seeds 1066, 1133, 1366: whichever axis is the empty one."""
    with pytest.raises(ValueError, match="non-empty take"):
        mx.take(mx.zeros((2, 0, 3)), 0, axis=axis)


def test_a_mode_of_padding_is_a_string() -> None:
    """Seeds 1562, 1752, 1776."""
    with pytest.raises(TypeError, match="mode"):
        mx.pad(mx.zeros((2,)), 1, 0)


def test_the_derivative_of_logaddexp_far_out() -> None:
    """Seeds 1080, 1254, 2397: the share of an operand is 1 or 0 at infinity, and has all its digits before."""
    x = mx.array([mx.inf, 2.0, -mx.inf])
    for function in (lambda w: mx.logaddexp(w, 0.5).sum(), lambda w: mx.logaddexp(0.5, w).sum()):
        got = mx.grad(function)(x).tolist()
        assert got == [1.0, pytest.approx(0.8175745, rel=1e-6), 0.0]

    def slope(v: mx.array) -> Any:
        found: mx.array = mx.grad(lambda w: mx.logaddexp(mx.exp(w), 2.0).sum())(v)
        return found.sum()

    second = mx.grad(slope)(mx.array([63.75, 2.0, -3.0])).tolist()
    assert second == pytest.approx([4.8559407e27, 7.6025167, 0.0064702309], rel=1e-5)


@pytest.mark.parametrize(("axes", "out"), [([0, 2], []), ([0, 1], [1.0] * 4), ([1], [[1.0] * 4] * 3), (None, 1.0)])
def test_products_over_and_beside_an_empty_axis(axes: list[int] | None, out: Any) -> None:
    """Seed 20204: no elements, of which each is a product of some."""
    same(mx.prod(mx.zeros((3, 0, 4), mx.float16), axis=axes), mx.float16, out)


def test_the_second_derivative_of_arctan_far_out() -> None:
    """Seed 10923: of half types, where twice the operand is infinite."""
    x = mx.array([-65504.0, 65504.0, 2.0], mx.float16)
    slope = mx.grad(lambda v: mx.arctan(v).sum())
    got = mx.grad(lambda v: slope(v).sum())(x)
    assert got.tolist() == [0.0, 0.0, pytest.approx(-0.16, rel=2e-3)]


@pytest.mark.parametrize("index", [..., None, (), (None,), (..., None)])
def test_writing_a_whole_array_takes_the_value_s_type(index: Any) -> None:
    """Seed 30269: by indices for a whole array; the others keep the array's."""
    number = mx.array(7, mx.int8)
    alias = number
    number[index] = 2.5
    same(alias, mx.float32, 2.5)
    row = mx.array([7, 8], mx.int8)
    row[index] = 2.5
    same(row, *((mx.int8, [2, 2]) if type(index) is tuple else (mx.float32, [2.5, 2.5])))
    complex_row = mx.array([1j])
    complex_row[...] = 2.5
    same(complex_row, mx.float32, [2.5])
    row[:] = 3.5
    assert row.dtype == (mx.int8 if type(index) is tuple else mx.float32)


@pytest.mark.parametrize("index", [(None,), (None, ...), (None, None)])
def test_a_join_with_a_number_promotes(index: Any) -> None:
    """Beside seed 30269: an array without axes is whole by any index."""
    same(mx.array(1, mx.int8).at[index].add(mx.array([[2.5]])), mx.float32, 3.5)


def test_a_join_after_an_ellipsis_takes_what_it_reads() -> None:
    """Seed 30546: an update of the shape that the index reads, which MLX 0.32.4 refuses."""
    x = mx.zeros((4, 3, 5, 5))
    where = (mx.array([-4, -2, 1]), ..., slice(4, None, 3))
    got = x.at[where].minimum(mx.full((3, 3, 5, 1), -2.0))
    expected = torch.zeros(4, 3, 5, 5)
    expected[[0, 2, 1], :, :, 4] = -2
    assert got.tolist() == expected.tolist()


@pytest.mark.parametrize("number", [-1, 300, 2**40, 0.5])
def test_logic_takes_numbers_that_the_type_does_not_hold(number: float) -> None:
    """Seed 43169: only whether they are 0 counts."""
    x = mx.array([3, 0], mx.uint8)
    same(mx.logical_and(number, x), mx.bool_, [True, False])
    same(mx.logical_or(x, number), mx.bool_, [True, True])


@pytest.mark.parametrize(("shape", "source", "target", "out"), [
    ((8, 0), mx.bfloat16, mx.int32, (8, 0)), ((3, 2, 3, 0), mx.int16, mx.float32, (3, 2, 3, 0)),
    ((0, 4), mx.float32, mx.int8, (0, 16)), ((0, 4), mx.int8, mx.float32, (0, 1)),
])  # fmt: skip
def test_nothing_is_viewed_as_another_type(
    shape: tuple[int, ...], source: mx.Dtype, target: mx.Dtype, out: tuple[int, ...]
) -> None:
    """Seeds 44491, 44648: of elements of another size."""
    found = mx.zeros(shape, source).view(target)
    mx.eval(found)
    assert (found.shape, found.dtype) == (out, target)


def test_integers_are_not_close_to_infinity() -> None:
    """Seed 60771: those that are infinite in the other operand's type."""
    big = mx.array([42, 4227580408], mx.uint32)
    same(mx.isclose(mx.array(mx.inf, mx.float16), big), mx.bool_, [False, False])
    same(mx.isclose(big, mx.array(-mx.inf, mx.float16)), mx.bool_, [False, False])
    same(mx.isclose(mx.array([mx.inf, -mx.inf]), mx.array(mx.inf)), mx.bool_, [True, False])


def test_an_integer_and_an_array_read_nothing_of_an_empty_axis() -> None:
    """Seeds 67669, 215659."""
    same(mx.zeros((0, 1, 0))[mx.array([0, 0]), ::-1], mx.float32, [[[]], [[]]])
    x = mx.zeros((3, 0, 2))
    with pytest.raises(ValueError, match="input is empty"):
        x[0, 1, mx.array([0, -1])]
    same(x[0, 1, mx.array([], mx.int32)], mx.float32, [])
    same(x[0, :, mx.array([0, -1])], mx.float32, [[], []])


@pytest.mark.parametrize("count", [1, 16, 32, 33, 80])
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
def test_hyperbolic_functions_near_the_greatest_number(count: int, dtype: mx.Dtype) -> None:
    """Seed 93662: wherever the element lies."""
    x = mx.full((count,), -89.0, dtype)
    for got, sign in ((mx.sinh(x), -1), (mx.cosh(x), 1)):
        assert got.dtype == dtype
        assert got.tolist() == pytest.approx([sign * 2.2448064e38] * count, rel=2**-7 if dtype == mx.bfloat16 else 1e-6)
    same(mx.sinh(mx.array([mx.inf, -95.0])), mx.float32, [math.inf, -math.inf])
    assert math.isnan(mx.cosh(mx.array(mx.nan)).item())


def test_a_single_element_with_a_stride_is_viewed_as_another_type() -> None:
    """Seed 92598."""
    x = mx.array([[1, 2, 3]], mx.uint64)
    same(mx.diagonal(x).view(mx.uint8), mx.uint8, [1, 0, 0, 0, 0, 0, 0, 0])
    same(mx.array([[1, 2], [3, 4], [5, 6]], mx.int16)[1::2, :].view(mx.int32), mx.int32, [[262147]])
