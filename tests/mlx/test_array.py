"""``array``: made from values, turned into values, printed, copied, changed in place."""

from __future__ import annotations

import copy
import math
import pickle
import weakref
from typing import Any

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from rocmend.mlx import core as mx

pytestmark = pytest.mark.cpu

UNSIGNED = {"uint8": 2**8, "uint16": 2**16, "uint32": 2**32, "uint64": 2**64}


# -- from values


@pytest.mark.parametrize(
    ("value", "dtype", "shape"),
    [
        (True, mx.bool_, ()),
        (3, mx.int32, ()),
        (2**31, mx.int64, ()),
        (2**63, mx.uint64, ()),
        (1.5, mx.float32, ()),
        (1j, mx.complex64, ()),
        ([], mx.float32, (0,)),
        ([[], []], mx.float32, (2, 0)),
        ([True, 1], mx.int32, (2,)),
        ([1, 2**40], mx.int64, (2,)),
        ((1, 2.5), mx.float32, (2,)),
        ([[1, 2], [3, 4j]], mx.complex64, (2, 2)),
        (np.float64(2), mx.float32, ()),
        (np.int8(2), mx.int8, ()),
        (np.zeros((2, 3)), mx.float32, (2, 3)),
        (np.zeros(2, np.complex128), mx.complex64, (2,)),
        (np.zeros(2, np.uint16), mx.uint16, (2,)),
        (b"ab", mx.uint8, (2,)),
        (torch.zeros(2, dtype=torch.bfloat16), mx.bfloat16, (2,)),
    ],
    ids=repr,
)
def test_type_and_shape_of_a_value(value: Any, dtype: mx.Dtype, shape: tuple[int, ...]) -> None:
    x = mx.array(value)
    assert (x.dtype, x.shape) == (dtype, shape)
    expected = np.asarray(torch.zeros(2)) if isinstance(value, torch.Tensor) else np.asarray(value)
    if isinstance(value, bytes):
        expected = np.frombuffer(value, np.uint8)
    assert np.array_equal(np.asarray(x.tolist()).reshape(shape), expected)


def test_rows_may_hold_arrays() -> None:
    assert mx.array([mx.array([1, 2]), [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert mx.array([1.5, mx.array(2)]).dtype is mx.float32


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1], [2, 3]], "non-uniform"),
        ([1, [2]], "extra dimension"),
        ([[1], 2], "non-uniform"),
        ([1, "a"], "Invalid type str"),
        ({1: 2}, "Invalid type dict"),
        (np.array(["a"]), "no counterpart"),
        ([2**70], "64 bits"),
        (2**70, "64 bits"),
    ],
    ids=repr,
)
def test_what_is_no_array_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mx.array(value)


def test_wrong_types_are_refused() -> None:
    with pytest.raises(TypeError, match="None"):
        mx.array(None)
    with pytest.raises(TypeError, match="Dtype"):
        mx.array([1], np.float32)


def test_numbers_wrap_around_when_a_type_is_named() -> None:
    assert mx.array([300, -1], mx.uint8).tolist() == [44, 255]
    assert mx.array(-1, mx.uint64).item() == 2**64 - 1
    assert mx.array(1.7, mx.int32).item() == 1
    assert mx.array(2, mx.bool_).item() is True


def test_an_object_may_say_which_array_it_is() -> None:
    class Holder:
        def __mlx_array__(self) -> mx.array:
            return mx.array([1, 2])

    assert mx.array(Holder()).tolist() == [1, 2]
    assert (mx.array([1, 1]) + Holder()).tolist() == [2, 3]
    assert mx.ArrayLike(Holder()).__mlx_array__().tolist() == [1, 2]


def test_foreign_memory_is_copied() -> None:
    source = np.arange(4, dtype=np.int32)
    x = mx.array(source)
    y = mx.asarray(source)
    source[0] = 9
    assert x.tolist() == y.tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="copy"):
        mx.asarray(source, copy=False)
    assert mx.array(source[::-1]).tolist() == [3, 2, 1, 9]
    assert mx.array(np.broadcast_to(np.int8(3), (2, 2))).tolist() == [[3, 3], [3, 3]]


@pytest.mark.slow
def test_axes_longer_than_32_bits_are_refused() -> None:
    with pytest.raises(OverflowError, match="2147483648"):
        mx.array(np.broadcast_to(np.zeros(1, np.bool_), (2**31,)))
    for size in (2**31, -(2**31) - 1):
        with pytest.raises(OverflowError, match=str(size)):
            mx.zeros((2, size))


# -- into values


@pytest.mark.parametrize("name", sorted(UNSIGNED))
def test_unsigned_integers_come_back_unsigned(name: str) -> None:
    top = UNSIGNED[name] - 1
    x = mx.array([0, top], getattr(mx, name)) if top < 2**32 else mx.array([0, -1], mx.uint64)
    assert x.tolist() == [0, top]
    assert x[1].item() == top
    whole = np.array(x)
    assert (whole.dtype.name, whole.tolist()) == (name, [0, top])
    assert torch.from_dlpack(x).dtype is getattr(torch, name)
    assert mx.array(whole).tolist() == [0, top]
    assert mx.from_dlpack(torch.from_dlpack(x)).tolist() == [0, top]
    assert int(mx.array(-1, getattr(mx, name))) == top


def test_scalars() -> None:
    assert float(mx.array([1.5])) == 1.5
    assert complex(mx.array(2)) == 2 + 0j
    assert [1, 2, 3][mx.array(1)] == 2
    assert bool(mx.array([0.0])) is False
    assert f"{mx.array(2.5):.2f}" == "2.50"
    for convert in (bool, int, float, lambda x: x.item()):
        with pytest.raises(ValueError, match="length-1"):
            convert(mx.array([1, 2]))
    for bad in (mx.array(1.0), mx.array([1]), mx.array(True)):
        with pytest.raises(TypeError, match="0-dimensional integer"):
            [1, 2][bad]
    for ask in (len, iter, list):
        with pytest.raises(TypeError, match="0-dimensional"):
            ask(mx.array(1))
    with pytest.raises(TypeError, match="format"):
        format(mx.array([1]), ".2f")


def test_sizes() -> None:
    x = mx.zeros((2, 3), mx.float16)
    assert (x.size, x.ndim, x.itemsize, x.nbytes, len(x)) == (6, 2, 2, 12, 2)
    assert [row.shape for row in x] == [(3,), (3,)]


def test_numpy_sees_the_same_memory_and_keeps_it_alive() -> None:
    x = mx.array([1, 2, 3])
    seen = np.array(x, copy=False) if np.__version__ < "2" else np.asarray(x)
    alive = weakref.ref(x)
    del x
    assert alive() is not None
    assert seen.tolist() == [1, 2, 3]
    with pytest.raises((TypeError, ValueError), match="bfloat16"):
        np.array(mx.array([1], mx.bfloat16))
    assert bytes(mx.array([1, 2], mx.uint8)) == b"\x01\x02"
    assert mx.array([1]).__dlpack_device__() == (1, 0)


# -- printed; texts as MLX 0.32.4 prints them


@pytest.mark.parametrize(
    ("x", "text"),
    [
        (mx.array(1.5), "array(1.5, dtype=float32)"),
        (mx.array([[1, 2], [3, 4]]), "array([[1, 2],\n       [3, 4]], dtype=int32)"),
        (mx.array([True, False]), "array([True, False], dtype=bool)"),
        (mx.array([1 + 2j, -1 - 0.5j]), "array([1+2j, -1-0.5j], dtype=complex64)"),
        (mx.array([complex(math.nan, -0.0)]), "array([nan+-0j], dtype=complex64)"),
        (mx.array([1e-10, 1e20, -0.0, 1 / 3]), "array([1e-10, 1e+20, -0, 0.333333], dtype=float32)"),
        (mx.array([1234567.0, math.nan, -math.inf]), "array([1.23457e+06, nan, -inf], dtype=float32)"),
        (mx.arange(6), "array([0, 1, 2, 3, 4, 5], dtype=int32)"),
        (mx.arange(7), "array([0, 1, 2, ..., 4, 5, 6], dtype=int32)"),
        (mx.zeros((2, 0)), "array([[],\n       []], dtype=float32)"),
        (mx.zeros((0, 2)), "array([], dtype=float32)"),
        (mx.array([-1], mx.uint64), "array([18446744073709551615], dtype=uint64)"),
        (
            mx.zeros((7, 1), mx.int8),
            "array([[0],\n       [0],\n       [0],\n       ...,\n       [0],\n       [0],\n       [0]], dtype=int8)",
        ),
        (
            mx.array([[[1], [2]], [[3], [4]]]),
            "array([[[1],\n        [2]],\n       [[3],\n        [4]]], dtype=int32)",
        ),
    ],
    ids=str,
)
def test_text(x: mx.array, text: str) -> None:
    assert repr(x) == text
    assert str(x) == text


def test_print_options() -> None:
    with mx.printoptions(precision=3):
        assert repr(mx.array([1.5, 1 / 3])) == "array([1.500, 0.333], dtype=float32)"
        assert repr(mx.array([1 - 1j / 3])) == "array([1.000-0.333j], dtype=complex64)"
        assert repr(mx.array([1])) == "array([1], dtype=int32)"
        assert mx.get_printoptions().precision == 3
    assert mx.get_printoptions().precision == -1
    mx.set_printoptions(1)
    assert repr(mx.array(0.25)) == "array(0.2, dtype=float32)"
    mx.set_printoptions()


# -- copied and changed


@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16, mx.uint32, mx.complex64, mx.bool_], ids=repr)
def test_copies_and_pickles(dtype: mx.Dtype) -> None:
    x = mx.array([[1, 0], [3, 4]]).astype(dtype)
    read = pickle.loads(pickle.dumps(x))  # noqa: S301  (its own bytes)
    for twin in (copy.copy(x), copy.deepcopy(x), read, mx.array(x)):
        assert twin is not x
        assert (twin.dtype, twin.shape, twin.tolist()) == (dtype, (2, 2), x.tolist())


def test_the_state_of_a_pickle_is_mlx_s() -> None:
    values, dtype = mx.array([1, 2], mx.bfloat16).__getstate__()
    assert (values.tolist(), values.dtype.name, dtype) == ([16256, 16384], "uint16", 12)


def test_in_place_operators_change_the_handle_and_not_the_value() -> None:
    a = mx.array([4.0, 6.0])
    same, value = a, a + 0
    other = mx.positive(a)
    a += 2
    a *= mx.array([1.0, 2.0])
    a -= 1
    a /= 1
    assert same is a
    assert a.tolist() == [5.0, 15.0]
    assert value.tolist() == other.tolist() == [4.0, 6.0]
    b = mx.array([5, 6])
    whole = b
    b //= 2
    b **= 2
    b %= 5
    b |= 8
    b &= 12
    b ^= 1
    b <<= 2
    b >>= 1
    assert whole.tolist() == [((((2**2 % 5) | 8) & 12) ^ 1) << 2 >> 1, ((((3**2 % 5) | 8) & 12) ^ 1) << 2 >> 1]


def test_integers_are_not_divided_in_place() -> None:
    x = mx.array([4])
    with pytest.raises(ValueError, match="In place division"):
        x /= 2


def test_hash_is_identity() -> None:
    a, b = mx.array(1), mx.array(1)
    assert len({a, b, a}) == 2


def test_operands_that_are_no_arrays() -> None:
    x = mx.array([1, 2])
    assert (x == "a") is False
    assert (x != [1, 2]) is True
    refused: list[Any] = ["a", [1, 2], {}]
    for bad in refused:
        with pytest.raises(ValueError, match="Invalid type"):
            x + bad
        with pytest.raises(ValueError, match="Invalid type"):
            assert x < bad
    with pytest.raises(TypeError, match="None"):
        assert x == None  # noqa: E711
    with pytest.raises(ValueError, match="Floating point"):
        x << 1.5
    with pytest.raises(ValueError, match="Floating point"):
        ~mx.array(1.0)


def test_namespace() -> None:
    assert mx.array(1).__array_namespace__().exp is mx.exp


def test_the_namespace_tells_about_itself() -> None:
    info = mx.array(1).__array_namespace__().__array_namespace_info__()
    assert info.dtypes(kind=("bool", "real floating")) == {
        "bool": mx.bool_,
        "float32": mx.float32,
        "float64": mx.float64,
    }
    assert len(info.dtypes(kind="integral")) == 8
    assert info.default_dtypes()["integral"] is mx.int32
    assert info.default_device() in info.devices()
    assert info.capabilities()["boolean indexing"] is False
    with pytest.raises(ValueError, match="kind"):
        info.dtypes(kind="x")
    with pytest.raises(TypeError, match="Device"):
        info.dtypes(device="cpu")
