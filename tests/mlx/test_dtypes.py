"""Element types: their names, their limits, how they meet."""

from __future__ import annotations

import copy
import pickle

import pytest

pytest.importorskip("torch")

from rocmend.mlx import core as mx
from rocmend.mlx.dtypes import DTYPES

pytestmark = pytest.mark.cpu

# The type in which two types meet, as MLX 0.32.4 answers mx.result_type(row, column); b for bool, c for complex64.
NAMES = ("b", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64", "bf16", "c")
MEETING = """
b    u8   u16  u32  u64  i8   i16  i32  i64  f16  f32  f64  bf16 c
u8   u8   u16  u32  u64  i16  i16  i32  i64  f16  f32  f64  bf16 c
u16  u16  u16  u32  u64  i32  i32  i32  i64  f16  f32  f64  bf16 c
u32  u32  u32  u32  u64  i64  i64  i64  i64  f16  f32  f64  bf16 c
u64  u64  u64  u64  u64  f32  f32  f32  f32  f16  f32  f64  bf16 c
i8   i16  i32  i64  f32  i8   i16  i32  i64  f16  f32  f64  bf16 c
i16  i16  i32  i64  f32  i16  i16  i32  i64  f16  f32  f64  bf16 c
i32  i32  i32  i64  f32  i32  i32  i32  i64  f16  f32  f64  bf16 c
i64  i64  i64  i64  f32  i64  i64  i64  i64  f16  f32  f64  bf16 c
f16  f16  f16  f16  f16  f16  f16  f16  f16  f16  f32  f64  f32  c
f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f32  f64  f32  c
f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  f64  c
bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32  f32  f64  bf16 c
c    c    c    c    c    c    c    c    c    c    c    c    c    c
"""


def test_types_meet_as_in_mlx() -> None:
    of = dict(zip(NAMES, DTYPES, strict=True))
    for row, line in zip(NAMES, MEETING.split("\n")[1:-1], strict=True):
        for column, met in zip(NAMES, line.split(), strict=True):
            assert mx.result_type(of[row], of[column]) is of[met], (row, column)


def test_result_type_takes_arrays_and_several() -> None:
    assert mx.result_type(mx.array([1], mx.uint8), mx.int8, mx.array(1.0, mx.float16)) is mx.float16
    with pytest.raises(ValueError, match="At least one"):
        mx.result_type()
    with pytest.raises(TypeError, match="Dtype"):
        mx.result_type("int8")


@pytest.mark.parametrize(
    ("source", "target", "answer"),
    [
        (mx.int32, mx.float32, True),
        (mx.float32, mx.int32, False),
        (mx.uint8, mx.int16, True),
        (mx.int8, mx.uint16, False),
        (mx.float16, mx.bfloat16, False),
        (mx.bool_, mx.uint8, True),
    ],
    ids=str,
)
def test_can_cast_is_promotion(source: mx.Dtype, target: mx.Dtype, answer: bool) -> None:
    assert mx.can_cast(source, target) is answer
    assert mx.can_cast(mx.zeros((2,), source), target) is answer


def test_categories_are_a_tree() -> None:
    assert mx.issubdtype(mx.uint16, mx.unsignedinteger)
    assert mx.issubdtype(mx.unsignedinteger, mx.integer)
    assert mx.issubdtype(mx.float16, mx.inexact)
    assert mx.issubdtype(mx.complex64, mx.number)
    assert not mx.issubdtype(mx.bool_, mx.number)
    assert not mx.issubdtype(mx.integer, mx.int32)
    assert not mx.issubdtype(mx.floating, mx.complexfloating)
    assert repr(mx.floating) == "DtypeCategory.floating"


def test_kinds_of_the_array_api() -> None:
    assert mx.isdtype(mx.uint64, "unsigned integer")
    assert mx.isdtype(mx.int8, ("real floating", mx.int8))
    assert not mx.isdtype(mx.bool_, "numeric")
    with pytest.raises(ValueError, match="Unknown data type kind"):
        mx.isdtype(mx.int8, "whole")


def test_limits() -> None:
    assert (mx.iinfo(mx.int16).min, mx.iinfo(mx.int16).max) == (-32768, 32767)
    assert (mx.iinfo(mx.uint64).min, mx.iinfo(mx.uint64).max) == (0, 2**64 - 1)
    half = mx.finfo(mx.float16)
    assert (half.min, half.max, half.bits) == (-65504.0, 65504.0, 16)
    assert (half.eps, half.smallest_normal) == (2.0**-10, 2.0**-14)
    assert mx.finfo(mx.complex64).dtype is mx.float32
    assert repr(mx.finfo(mx.float32)) == "finfo(min=-3.40282e+38, max=3.40282e+38, dtype=float32)"
    assert repr(mx.iinfo(mx.uint8)) == "iinfo(min=0, max=255, dtype=uint8)"
    with pytest.raises(ValueError, match="not inexact"):
        mx.finfo(mx.int8)
    with pytest.raises(ValueError, match="integer types"):
        mx.iinfo(mx.float32)


def test_a_type_is_one_object() -> None:
    assert copy.deepcopy(mx.bool_) is mx.bool_
    assert pickle.loads(pickle.dumps(mx.bfloat16)) is mx.bfloat16  # noqa: S301  (its own bytes)
    assert repr(mx.bool_) == "mlx.core.bool"
    assert mx.float32 != "float32"
    assert mx.uint16.size == 2
