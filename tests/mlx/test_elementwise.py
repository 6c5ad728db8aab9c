"""Element-wise operations against numpy and Python, at their edges, in every type; derivatives and batches."""

from __future__ import annotations

import inspect
import math
import pydoc
from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core as mx

pytestmark = pytest.mark.cpu

INF, NAN = math.inf, math.nan
INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
FLOATS = ("float16", "bfloat16", "float32", "float64")
TOLERANCE = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 2e-6, "float64": 1e-12}


def _edges(name: str) -> Any:
    info = np.iinfo(name)
    return np.array(sorted({info.min, info.min + 1, max(info.min, -7), 0, 1, 2, 3, 100, info.max - 1, info.max}), name)


def _same(x: mx.array, expected: Any) -> bool:
    """Whether values are equal, NaN to NaN, and zeros have the same sign."""
    have, want = np.asarray(x.tolist(), np.float64), np.asarray(expected, np.float64)
    return bool(
        have.shape == want.shape
        and np.array_equal(have, want, equal_nan=True)
        and np.array_equal(np.signbit(have[have == 0]), np.signbit(want[want == 0]))
    )


def test_help_of_a_defined_function() -> None:
    shown = pydoc.render_doc(mx.expm1, renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    assert shown.splitlines()[2:] == [
        "expm1(a: 'array', /, *, stream: 'Any' = None) -> 'array'",
        "    Return ``e**a - 1``, element by element, exact for small ``a`` too.",
        "    ",
        "    Args:",
        "        a: a real array or number.",
        "        stream: where to compute it.",
        "    ",
        "    Returns:",
        "        An array of the shape and type of ``a``; float32 for integers.",
        "    ",
        "    Raises:",
        "        ValueError: ``a`` is complex.",
    ]
    assert str(inspect.signature(mx.add)) == "(a: 'Any', b: 'Any', stream: 'Any' = None) -> 'array'"
    assert mx.expm1.__module__ == "rocmend.mlx.ops.exponential"


# -- floating functions

REAL: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "exp": (np.exp, -5, 5),
    "expm1": (np.expm1, -3, 3),
    "log": (np.log, 0.01, 9),
    "log2": (np.log2, 0.01, 9),
    "log10": (np.log10, 0.01, 9),
    "log1p": (np.log1p, -0.9, 9),
    "sqrt": (np.sqrt, 0, 9),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.01, 9),
    "square": (np.square, -3, 3),
    "reciprocal": (np.reciprocal, 0.1, 9),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -9, 9),
    "erf": (np.vectorize(math.erf), -3, 3),
    "sin": (np.sin, -9, 9),
    "cos": (np.cos, -9, 9),
    "tan": (np.tan, -1.3, 1.3),
    "arcsin": (np.arcsin, -0.99, 0.99),
    "arccos": (np.arccos, -0.99, 0.99),
    "arctan": (np.arctan, -9, 9),
    "sinh": (np.sinh, -3, 3),
    "cosh": (np.cosh, -3, 3),
    "tanh": (np.tanh, -3, 3),
    "arcsinh": (np.arcsinh, -9, 9),
    "arccosh": (np.arccosh, 1.1, 9),
    "arctanh": (np.arctanh, -0.9, 0.9),
    "degrees": (np.degrees, -9, 9),
    "radians": (np.radians, -9, 9),
    "abs": (np.abs, -9, 9),
    "negative": (np.negative, -9, 9),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", sorted(REAL))
def test_floating_functions(name: str, dtype: str) -> None:
    reference, low, high = REAL[name]
    x = mx.array(np.linspace(low, high, 41), mx.float64).astype(getattr(mx, dtype))
    out = getattr(mx, name)(x)
    assert out.dtype is x.dtype
    exact = reference(np.array(x.tolist()))
    assert np.allclose(np.array(out.tolist()), exact, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * 0.1)


def test_erfinv_inverts_erf() -> None:
    x = mx.array([-2.0, -0.5, 0.0, 0.3, 1.0])
    assert np.allclose(mx.erfinv(mx.erf(x)).tolist(), x.tolist(), atol=1e-5)
    assert _same(mx.erfinv(mx.array([1.0, -1.0, 2.0])), [INF, -INF, NAN])


@pytest.mark.parametrize("name", sorted(REAL.keys() - {"square", "abs", "negative"}))
def test_integers_become_float32(name: str) -> None:
    assert getattr(mx, name)(mx.array([1, 2])).dtype is mx.float32
    assert getattr(mx, name)(1).shape == ()


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cos", "tanh", "reciprocal", "square", "arcsin"])
def test_complex_functions(name: str) -> None:
    values = np.array([1 + 2j, -0.5 - 0.25j, 0.3j, 2.0], np.complex64)
    reference = {"arcsin": np.arcsin}.get(name, getattr(np, name))
    assert np.allclose(np.array(getattr(mx, name)(mx.array(values))), reference(values), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["expm1", "erf", "erfinv", "sigmoid", "floor", "ceil", "trunc"])
def test_what_complex_numbers_do_not_have(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        getattr(mx, name)(mx.array(1j))


# -- signs and rounding


def test_signs_and_rounding_at_the_edges() -> None:
    x = mx.array([0.5, 1.5, -0.5, -0.0, 2.7, -2.7, INF, NAN])
    assert _same(mx.round(x), [0.0, 2.0, -0.0, -0.0, 3.0, -3.0, INF, NAN])
    assert _same(mx.floor(x), [0.0, 1.0, -1.0, -0.0, 2.0, -3.0, INF, NAN])
    assert _same(mx.ceil(x), [1.0, 2.0, -0.0, -0.0, 3.0, -2.0, INF, NAN])
    assert _same(mx.trunc(x), [0.0, 1.0, -0.0, -0.0, 2.0, -2.0, INF, NAN])
    assert _same(mx.sign(x), [1.0, 1.0, -1.0, 0.0, 1.0, -1.0, 1.0, 0.0])
    assert mx.round(mx.array([15, 25, -15]), -1).tolist() == [20, 20, -20]
    assert np.allclose(mx.round(mx.array([1.255, 12345.678]), 2).tolist(), [1.26, 12345.68], atol=1e-2)
    assert mx.round(mx.array([1.5 + 2.5j])).item() == 2 + 2j
    assert mx.abs(mx.array([3 + 4j])).item() == 5.0


@pytest.mark.parametrize("name", INTEGERS)
def test_signs_of_integers(name: str) -> None:
    values = _edges(name)
    x = mx.array(values)
    for function, reference in ((mx.abs, np.abs), (mx.sign, np.sign), (mx.negative, np.negative), (mx.floor, np.array)):
        with np.errstate(all="ignore"):
            expected = reference(values)
        assert function(x).tolist() == expected.tolist(), function.__name__


def test_negative_of_bool_is_refused() -> None:
    with pytest.raises(ValueError, match="logical_not"):
        mx.negative(mx.array(True))


# -- two operands

INTEGER_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operations_of_all_pairs_of_edges(dtype: str) -> None:
    values = _edges(dtype)
    x, y = mx.array(values[:, None]), mx.array(values[None])
    with np.errstate(all="ignore"):
        for name, reference in INTEGER_OPERATIONS.items():
            assert getattr(mx, name)(x, y).tolist() == reference(values[:, None], values[None]).tolist(), name


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_of_integers_rounds_down(dtype: str) -> None:
    values = _edges(dtype)
    # the smallest number over -1 does not fit: no result is right
    divisors = values[(values != 0) & (values != -1 if np.iinfo(dtype).min else True)]
    x, y = mx.array(values[:, None]), mx.array(divisors[None])
    exact = [[(int(a) // int(b), int(a) % int(b)) for b in divisors] for a in values]
    quotient, rest = mx.divmod(x, y)
    assert quotient.tolist() == (x // y).tolist() == [[q for q, _ in row] for row in exact]
    assert rest.tolist() == (x % y).tolist() == [[r for _, r in row] for row in exact]
    assert (quotient.dtype, rest.dtype) == (x.dtype, x.dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_powers_of_integers_wrap_around(dtype: str) -> None:
    values = _edges(dtype)
    bits = np.iinfo(dtype).bits
    exponents = [0, 1, 2, 5, 63]
    out = mx.power(mx.array(values[:, None]), mx.array(np.array(exponents, dtype)[None]))
    exact = [[np.array(int(a) ** e % 2**bits, f"uint{bits}").astype(dtype).item() for e in exponents] for a in values]
    assert out.tolist() == exact


def test_powers_at_the_edges() -> None:
    assert mx.power(mx.array([2, -2, 1, 0]), mx.array([-1, 3, -1, 0])).tolist() == [0, -8, 0, 1]
    top = mx.array([2**63 - 1, -1, 2], mx.int64).astype(mx.uint64)
    assert mx.power(top, mx.array([-1], mx.int64).astype(mx.uint64)).tolist() == [2**63 - 1, 2**64 - 1, 0]
    assert mx.power(mx.array([True, False, True, False]), mx.array([True, True, False, False])).tolist() == [
        True, False, True, True,
    ]  # fmt: skip
    assert _same(mx.power(mx.array([-8.0, 4.0, 0.0]), mx.array([1 / 3, 0.5, 0.0])), [NAN, 2.0, 1.0])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts(dtype: str) -> None:
    values = _edges(dtype)
    places = np.array([0, 1, 2, 7], dtype)
    x, y = mx.array(values[:, None]), mx.array(places[None])
    assert (x >> y).tolist() == np.right_shift(values[:, None], places[None]).tolist()
    assert (x << y).tolist() == np.left_shift(values[:, None], places[None]).tolist()
    assert (~mx.array(values)).tolist() == np.invert(values).tolist()


def test_bits_of_floats_are_refused() -> None:
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"):
        with pytest.raises(RuntimeError, match=rf"\[{name}\]"):
            getattr(mx, name)(mx.array(1.0), 1)
    with pytest.raises(ValueError, match="bitwise_invert"):
        mx.bitwise_invert(mx.array(1.0))
    assert mx.left_shift(mx.array(True), True).dtype is mx.uint8


def test_bools_compute_as_one_bit() -> None:
    x, y = mx.array([[True], [False]]), mx.array([[True, False]])
    assert (x + y).tolist() == [[True, True], [True, False]]
    assert (x * y).tolist() == [[True, False], [False, False]]
    assert (x - y).tolist() == [[False, True], [True, False]]
    assert mx.maximum(x, y).tolist() == [[True, True], [True, False]]
    assert (~x).tolist() == [[False], [True]]


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainders_of_floats_have_the_sign_of_the_divisor(dtype: str) -> None:
    x = mx.array([-7.5, 7.0, -8.0, 1.0, INF, NAN, 1.0]).astype(getattr(mx, dtype))
    y = mx.array([2.0, -2.0, 2.0, INF, 2.0, 2.0, 0.0]).astype(getattr(mx, dtype))
    assert _same(x % y, [0.5, -1.0, -0.0, 1.0, NAN, NAN, NAN])
    assert _same((x // y)[:3], [-4.0, -4.0, -4.0])


@pytest.mark.parametrize("dtype", FLOATS)
def test_nan_wins_over_the_larger_and_the_smaller(dtype: str) -> None:
    x = mx.array([1.0, NAN, 2.0, INF]).astype(getattr(mx, dtype))
    y = mx.array([NAN, 1.0, 3.0, -INF]).astype(getattr(mx, dtype))
    assert _same(mx.maximum(x, y), [NAN, NAN, 3.0, INF])
    assert _same(mx.minimum(x, y), [NAN, NAN, 2.0, -INF])


def test_order_of_complex_numbers() -> None:
    x, y = mx.array([1 + 2j, 1 + 2j, 2 + 0j]), mx.array([1 + 3j, 1 + 2j, 1 + 9j])
    assert (x < y).tolist() == [True, False, False]
    assert (x <= y).tolist() == [True, True, False]
    assert (x > y).tolist() == [False, False, True]
    assert mx.maximum(x, y).tolist() == [1 + 3j, 1 + 2j, 2 + 0j]
    assert mx.minimum(x, y).tolist() == [1 + 2j, 1 + 2j, 1 + 9j]
    assert (mx.array(1j) - mx.array(complex(INF, 0))).item() == complex(-INF, 1)


def test_logaddexp_and_arctan2() -> None:
    x, y = mx.array([-INF, INF, 1.0, 1000.0]), mx.array([-INF, 1.0, 2.0, 1000.0])
    assert np.allclose(mx.logaddexp(x, y).tolist(), [-INF, INF, 2.3132617, 1000.6931], rtol=1e-6)
    assert np.allclose(mx.arctan2(mx.array([1.0, -1.0, 0.0]), mx.array([1.0, -1.0, -1.0])).tolist(),
                       np.arctan2([1, -1, 0], [1, -1, -1]), rtol=1e-6)  # fmt: skip
    with pytest.raises(ValueError, match="arctan2"):
        mx.arctan2(mx.array(1j), 1)


def test_half_precision_is_rounded_once() -> None:
    # exact in float32, halfway cases to even in the narrow type
    x, y = mx.array([1.0, 3.0, 2049.0], mx.float16), mx.array([2.0**-11, 3 * 2.0**-10, 2.0], mx.float16)
    exact = np.array(x.tolist(), np.float32) + np.array(y.tolist(), np.float32)
    assert (x + y).tolist() == exact.astype(np.float16).tolist()
    b = mx.array([1.0, 257.0], mx.bfloat16)
    assert (b + mx.array([2.0**-8, 1.0], mx.bfloat16)).tolist() == [1.0, 256.0]


# -- numbers beside arrays


@pytest.mark.parametrize(
    ("dtype", "number", "result"),
    [
        ("float16", 2.5, "float16"),
        ("bfloat16", 3, "bfloat16"),
        ("int8", 2, "int8"),
        ("int8", 2.5, "float32"),
        ("uint16", True, "uint16"),
        ("bool_", 1, "int32"),
        ("bool_", 1.5, "float32"),
        ("float16", 1j, "complex64"),
        ("float64", 0.1, "float64"),
    ],
)
def test_a_number_takes_the_type_of_the_array(dtype: str, number: Any, result: str) -> None:
    x = mx.array([1, 0]).astype(getattr(mx, dtype))
    for out in (x + number, number + x, mx.maximum(x, number), mx.where(mx.array([True, True]), x, number)):
        assert out.dtype is getattr(mx, result)
    assert np.allclose((x * number).tolist(), np.array([number, 0], complex), rtol=1e-2)


def test_float64_numbers_are_not_rounded() -> None:
    assert (mx.array([0.0], mx.float64) + 0.1).item() == 0.1


def test_minus_zero_and_nan_stay_themselves() -> None:
    x = mx.array([1.0, -1.0])
    assert _same(x * 0.0, [0.0, -0.0])
    assert _same(x * -0.0, [-0.0, 0.0])
    assert _same(x + NAN, [NAN, NAN])
    assert _same(mx.full((2,), -0.0), [-0.0, -0.0])
    assert _same(x * np.float64(-0.0), [-0.0, 0.0])
    assert (x + np.complex128(1j)).tolist() == [1 + 1j, -1 + 1j]


@pytest.mark.parametrize(("dtype", "number"), [("int8", 1000), ("uint8", -1), ("int32", 2**40), ("int64", 2**70)])
def test_numbers_that_do_not_fit_are_refused(dtype: str, number: int) -> None:
    with pytest.raises(ValueError, match=r"overflow|does not fit"):
        mx.array([1], getattr(mx, dtype)) + number


def test_numpy_arrays_take_the_type_of_the_array() -> None:
    assert (mx.array([1], mx.int8) + np.array([2, 3])).dtype is mx.int8
    assert (mx.array([1.0], mx.float16) * np.float32(2)).dtype is mx.float16


def test_shapes_meet() -> None:
    assert (mx.zeros((2, 1, 3)) + mx.zeros((4, 1))).shape == (2, 4, 3)
    with pytest.raises(ValueError, match="cannot be broadcast"):
        mx.zeros((2, 3)) + mx.zeros((4,))


# -- conversion


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", [*INTEGERS, "float16", "float32", "float64"])
def test_conversion_of_integers(source: str, target: str) -> None:
    values = _edges(source)
    with np.errstate(all="ignore"):
        expected = values.astype(target)
    assert mx.array(values).astype(getattr(mx, target)).tolist() == expected.tolist()


def test_conversion_of_large_unsigned_integers_rounds_to_nearest() -> None:
    values = [2**63 + 1025, 2**64 - 1, 2**63 + 2**39, 2**63 + 2**39 + 1, 2**53 + 1]
    x = mx.array(np.array(values, np.uint64))
    assert x.astype(mx.float64).tolist() == [float(v) for v in values]
    assert x.astype(mx.float32).tolist() == np.array(values, np.uint64).astype(np.float32).tolist()


def test_conversion_of_floats() -> None:
    x = mx.array([300.7, -1.5, 0.0, -0.0, 70000.0])
    assert x.astype(mx.int32).tolist() == [300, -1, 0, 0, 70000]
    assert x.astype(mx.uint8).tolist() == [44, 255, 0, 0, 112]
    assert x.astype(mx.uint64).tolist() == [300, 2**64 - 1, 0, 0, 70000]
    assert mx.array([1e19]).astype(mx.uint64).tolist() == [9999999980506447872]
    assert mx.array([NAN, 0.5, -0.0]).astype(mx.bool_).tolist() == [True, True, False]
    assert mx.array([1j, 0]).astype(mx.bool_).tolist() == [True, False]
    assert mx.array([2.5 + 1j]).astype(mx.int32).tolist() == [2]
    assert mx.array([1, 0]).astype(mx.complex64).tolist() == [1, 0]
    assert x.astype(mx.float32) is not x
    with pytest.raises(TypeError, match="Dtype"):
        x.astype("float16")  # type: ignore[arg-type]


def test_bits() -> None:
    x = mx.array([1.0, -2.0])
    assert x.view(mx.uint32).tolist() == [0x3F800000, 0xC0000000]
    assert x.view(mx.uint8).shape == (8,)
    assert x.view(mx.uint8).view(mx.float32).tolist() == [1.0, -2.0]
    assert mx.array([1.0, -2.0], mx.bfloat16).view(mx.uint16).tolist() == [0x3F80, 0xC000]
    assert mx.array([True, False]).view(mx.int8).tolist() == [1, 0]
    with pytest.raises(ValueError, match="last axis"):
        mx.zeros((3,), mx.uint8).view(mx.uint16)
    with pytest.raises(ValueError, match="scalar"):
        mx.array(1.0).view(mx.uint8)


def test_eight_bit_floats() -> None:
    bits = mx.to_fp8(mx.array([1.0, 1000.0, -1000.0, NAN, INF, 0.001, -0.0]))
    # as MLX 0.32.4: all that is too large is 448, NaN too
    assert bits.tolist() == [56, 126, 254, 126, 126, 1, 128]
    assert mx.from_fp8(mx.array([0, 1, 56, 126, 184], mx.uint8), mx.float32).tolist() == [0, 2.0**-9, 1, 448, -1]
    finite = [i for i in range(256) if i & 127 != 127]
    assert mx.to_fp8(mx.from_fp8(mx.array(finite, mx.uint8), mx.float16)).tolist() == finite
    for bad in (mx.array([1]), mx.array([1j])):
        with pytest.raises(ValueError, match="to_fp8"):
            mx.to_fp8(bad)


@pytest.mark.parametrize("size", [1, 5, 16, 20, 33])
def test_products_of_complex_numbers_do_not_depend_on_where_they_lie(size: int) -> None:
    """To the bit: in rows, side by side, in the other order, and as the derivative of a product."""
    rng = np.random.default_rng(size)
    a, b, c = (mx.array((rng.normal(size=size) + 1j * rng.normal(size=size)).astype(np.complex64)) for _ in range(3))
    rows = mx.stack([mx.conjugate(b) * c, mx.conjugate(a) * c])
    assert mx.array_equal(mx.conjugate(mx.stack([b, a])) * c, rows)
    assert mx.array_equal(c[::-1] * mx.conjugate(a)[::-1], rows[1][::-1])
    assert mx.array_equal(mx.vjp(lambda x: x.prod(axis=0), [mx.stack([a, b])], [c])[1][0], rows)
    np.testing.assert_allclose(np.array(a * b), np.array(a) * np.array(b), rtol=1e-5, atol=1e-6)


def test_parts_of_complex_numbers() -> None:
    x = mx.array([1 + 2j, 3 - 4j])
    assert (x.real.tolist(), x.imag.tolist()) == ([1, 3], [2, -4])
    assert mx.conj(x).tolist() == [1 - 2j, 3 + 4j]
    y = mx.array([1, 2])
    assert (y.real.tolist(), y.imag.tolist(), y.imag.dtype) == ([1, 2], [0, 0], mx.int32)


# -- tests and choices


def test_kinds_of_floating_values() -> None:
    x = mx.array([1.0, NAN, INF, -INF])
    assert mx.isnan(x).tolist() == [False, True, False, False]
    assert mx.isinf(x).tolist() == [False, False, True, True]
    assert mx.isfinite(x).tolist() == [True, False, False, False]
    assert mx.isposinf(x).tolist() == [False, False, True, False]
    assert mx.isneginf(x).tolist() == [False, False, False, True]
    assert mx.isfinite(mx.array([1])).tolist() == [True]
    assert mx.isnan(mx.array([1])).tolist() == [False]
    assert mx.isinf(mx.array([complex(0, INF)])).tolist() == [True]


def test_closeness() -> None:
    x, y = mx.array([1.0, INF, -INF, NAN, INF]), mx.array([1.0 + 1e-6, INF, INF, NAN, 1.0])
    assert mx.isclose(x, y).tolist() == [True, True, False, False, False]
    assert mx.isclose(x, y, equal_nan=True).tolist() == [True, True, False, True, False]
    assert not mx.allclose(x, y).item()
    assert mx.allclose(x[:2], y[:2]).item()
    assert mx.array_equal(mx.array([1, 2]), mx.array([1.0, 2.0])).item()
    assert not mx.array_equal(mx.array([1, 2]), mx.array([1])).item()
    assert mx.array_equal(mx.array([NAN]), mx.array([NAN]), equal_nan=True).item()


def test_choices() -> None:
    x = mx.array([1.0, NAN, 3.0])
    assert _same(mx.clip(x, 2, 2.5), [2.0, NAN, 2.5])
    assert _same(mx.clip(x, None, 2), [1.0, NAN, 2.0])
    assert mx.clip(mx.array([1, 2, 3]), 1.5, 2.5).dtype is mx.float32
    with pytest.raises(ValueError, match="clip"):
        mx.clip(x, None, None)
    assert mx.where(mx.array([1, 0]), 2, 3.5).tolist() == [2.0, 3.5]
    assert mx.where(mx.array([[True], [False]]), mx.array([1, 2]), 0).tolist() == [[1, 2], [0, 0]]
    assert _same(mx.nan_to_num(mx.array([NAN, INF, -INF], mx.float16)), [0, 65504, -65504])
    assert _same(mx.nan_to_num(mx.array([NAN, INF, -INF]), 1, 2, 3), [1, 2, 3])
    with pytest.raises(ValueError, match="nan_to_num"):
        mx.nan_to_num(mx.array([1.0], mx.float64))


def test_depends_gives_its_inputs() -> None:
    x, y = mx.array(1), mx.array(2)
    assert mx.depends(x, y).item() == 1
    assert [out.item() for out in mx.depends([x, y], [x])] == [1, 2]


# -- derivatives: against central differences in float64

DIFFERENTIABLE = sorted((REAL.keys() | {"erfinv"}) - {"degrees", "radians"})


def _domain(name: str) -> Any:
    _, low, high = REAL.get(name, (None, -0.9, 0.9))
    inner = (high - low) * 0.1
    points = np.linspace(low + inner, high - inner, 7)
    return points[np.abs(points) > 1e-6]


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_derivatives_of_one_operand(name: str) -> None:
    function = getattr(mx, name)
    points, step = _domain(name), 1e-6
    x = mx.array(points, mx.float64)
    slope = [
        (function(mx.array(p + step, mx.float64)).item() - function(mx.array(p - step, mx.float64)).item()) / (2 * step)
        for p in points
    ]
    g = mx.array(np.linspace(1, 2, len(points)), mx.float64)
    _, pulled = mx.vjp(function, [x], [g])
    _, pushed = mx.jvp(function, [x], [g])
    expected = np.array(slope) * np.array(g.tolist())
    assert np.allclose(pulled[0].tolist(), expected, rtol=1e-5, atol=1e-7)
    assert np.allclose(pushed[0].tolist(), expected, rtol=1e-5, atol=1e-7)


PAIRS = ("add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "logaddexp", "arctan2", "remainder")


@pytest.mark.parametrize("name", PAIRS)
def test_derivatives_of_two_operands_and_of_broadcasting(name: str) -> None:
    function = getattr(mx, name)
    a, b = np.array([[0.7], [1.9], [3.1]]), np.array([1.3, 2.2])
    x, y = mx.array(a, mx.float64), mx.array(b, mx.float64)
    g = np.linspace(1, 2, 6).reshape(3, 2)
    _, pulled = mx.vjp(function, [x, y], [mx.array(g, mx.float64)])
    step = 1e-6

    def at(u: Any, v: Any) -> Any:
        return np.array(function(mx.array(u, mx.float64), mx.array(v, mx.float64)).tolist())

    dx = (at(a + step, b) - at(a - step, b)) / (2 * step)
    dy = (at(a, b + step) - at(a, b - step)) / (2 * step)
    assert np.allclose(pulled[0].tolist(), (dx * g).sum(1, keepdims=True), rtol=1e-5, atol=1e-7)
    assert np.allclose(pulled[1].tolist(), (dy * g).sum(0), rtol=1e-5, atol=1e-7)
    ones = [mx.ones(a.shape, mx.float64), mx.ones(b.shape, mx.float64)]
    _, pushed = mx.jvp(function, [x, y], ones)
    assert np.allclose(pushed[0].tolist(), dx + dy, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["multiply", "divide", "exp", "sin", "log", "abs", "real", "imag", "conj", "acosh"])
def test_derivatives_of_complex_functions_agree_with_torch(name: str) -> None:
    first = np.array([1 + 2j, -0.5 + 0.25j], np.complex64)
    second = np.array([2 - 1j, 0.5 + 1j], np.complex64)
    count = 2 if name in ("multiply", "divide") else 1
    of_torch = {"multiply": torch.mul, "divide": torch.div, "conj": torch.conj_physical}.get(name) or getattr(
        torch, name
    )
    leaves = [torch.tensor(v, requires_grad=True) for v in (first, second)[:count]]
    out = of_torch(*leaves)
    g = (
        np.array([1.5, -0.5], np.float32)
        if name in ("abs", "real", "imag")
        else np.array([1 + 1j, 0.5 - 2j], np.complex64)
    )
    out.backward(torch.tensor(g))
    ours = getattr(mx, {"acosh": "arccosh"}.get(name, name))
    _, pulled = mx.vjp(ours, [mx.array(v) for v in (first, second)[:count]], [mx.array(g)])
    for have, leaf in zip(pulled, leaves, strict=True):
        assert np.allclose(np.array(have), leaf.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_derivatives_of_choices_and_conversion() -> None:
    x, y = mx.array([1.0, -2.0, 3.0]), mx.array([10.0])
    _, (dx, dy) = mx.vjp(lambda a, b: mx.where(a > 0, a * 2, b), [x, y], [mx.array([1.0, 2.0, 3.0])])
    assert (dx.tolist(), dy.tolist()) == ([2.0, 0.0, 6.0], [2.0])
    assert mx.grad(lambda a: (a.astype(mx.float16) * 3).sum().astype(mx.float32))(x).tolist() == [3.0, 3.0, 3.0]
    assert mx.grad(lambda a: (mx.stop_gradient(a) * a).sum())(x).tolist() == x.tolist()
    assert mx.grad(lambda a: (mx.floor(a) + mx.round(a) + mx.sign(a)).sum())(x).tolist() == [0.0, 0.0, 0.0]
    assert mx.grad(lambda a: mx.depends(a * 2, y).sum())(x).tolist() == [2.0, 2.0, 2.0]
    s = 1 / (1 + math.exp(-0.5))
    slope = s * (1 - s)
    second = slope * (1 - 2 * s) * 0.25 + 4 * 0.5 * slope + 2 * s
    assert mx.grad(mx.grad(lambda a: mx.sigmoid(a) * a * a))(mx.array(0.5)).item() == pytest.approx(second, rel=1e-5)
    # the power of 0 has a derivative, though the logarithm of 0 has none
    assert mx.grad(lambda a: (mx.array([0.0, 2.0]) ** a).sum())(mx.array(2.0)).item() == pytest.approx(4 * math.log(2))


def test_batches() -> None:
    x, y = mx.arange(6.0).reshape(2, 3), mx.arange(3.0)
    assert mx.vmap(mx.exp)(x).tolist() == mx.exp(x).tolist()
    assert mx.vmap(mx.add, in_axes=(0, None))(x, y).tolist() == (x + y).tolist()
    assert mx.vmap(mx.add, in_axes=(1, 0))(x, y).tolist() == (x + y).T.tolist()
    assert mx.vmap(lambda a, b: a * b, in_axes=(0, None))(y, x).tolist() == (y[:, None, None] * x).tolist()
    assert mx.vmap(lambda a: mx.where(a > 1, a, 0), out_axes=1)(x).tolist() == mx.where(x > 1, x, 0).T.tolist()
    assert mx.vmap(lambda a: a.view(mx.uint16))(x).tolist() == x.view(mx.uint16).tolist()
    assert mx.vmap(lambda a: mx.depends(a, y), in_axes=1, out_axes=1)(x).tolist() == x.tolist()


def test_what_has_no_derivative() -> None:
    x, t = mx.array([7.0, -2.0]), mx.array([1.0, 2.0])
    for function in (mx.greater, mx.equal, mx.floor_divide):
        _, (pushed,) = mx.jvp(lambda a, of=function: of(a, 3.0), [x], [t])
        assert (pushed.tolist(), pushed.dtype) == ([0.0, 0.0], mx.float32)
    _, pushed = mx.jvp(lambda a: mx.divmod(a, 3.0), [x], [t])
    assert [part.tolist() for part in pushed] == [[0.0, 0.0], [0.0, 0.0]]
