"""Comparing outputs with references: what a tolerance lets through, and what it never does."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from hypothesis import given, settings
from hypothesis import strategies as st

from rocmend.kernels.op import Tolerance
from rocmend.kernels.suite.compare import compare, ulp

pytestmark = pytest.mark.cpu

TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
dtypes = st.sampled_from(sorted(TYPES))


def _value(value: float, dtype: Any) -> Any:
    return torch.tensor([value], dtype=dtype)


def _wanted(value: float) -> Any:
    return torch.tensor([value], dtype=torch.float64)


@given(name=dtypes, value=st.floats(-60000, 60000))
@settings(max_examples=80, deadline=None)
def test_a_unit_in_the_last_place_is_the_distance_to_the_neighbour(name: str, value: float) -> None:
    dtype = TYPES[name]
    rounded = _value(value, dtype)
    info = torch.finfo(dtype)
    if not math.isfinite(rounded.item()) or abs(rounded.item()) < info.tiny:
        return
    unit = float(ulp(rounded.double(), dtype))
    magnitude = rounded.abs()
    after = torch.nextafter(magnitude.float(), torch.tensor([math.inf])) if dtype is torch.float32 else None
    if after is not None:
        assert unit == float(after.double() - magnitude.double())
    bits = magnitude.view({2: torch.int16, 4: torch.int32}[magnitude.element_size()])
    above = (bits + 1).view(dtype)
    if math.isfinite(above.item()):
        assert unit == float(above.double() - magnitude.double())


@given(name=dtypes, value=st.floats(-60000, 60000))
@settings(max_examples=80, deadline=None)
def test_rounding_to_nearest_is_within_half_a_unit(name: str, value: float) -> None:
    dtype = TYPES[name]
    assert compare(_value(value, dtype), _wanted(value), Tolerance(ulps=0.5001)).ok


@given(name=dtypes, value=st.floats(1e-3, 3e4), steps=st.integers(2, 50), sign=st.sampled_from([1, -1]))
@settings(max_examples=80, deadline=None)
def test_an_error_of_more_units_than_allowed_is_found(name: str, value: float, steps: int, sign: int) -> None:
    dtype = TYPES[name]
    exact = _value(value * sign, dtype)
    bits = exact.view({2: torch.int16, 4: torch.int32}[exact.element_size()])
    off = (bits + steps).view(dtype)
    result = compare(off, exact.double(), Tolerance(ulps=steps / 2 - 0.01))
    assert not result.ok
    assert result.worst > 1
    assert compare(off, exact.double(), Tolerance(ulps=2 * steps)).ok  # units double at each power of two


@pytest.mark.parametrize("name", sorted(TYPES))
@pytest.mark.parametrize(
    ("got", "want"),
    [(math.nan, 1.0), (1.0, math.nan), (math.inf, 1.0), (math.inf, -math.inf), (0.0, math.inf), (math.nan, math.inf)],
)
def test_what_is_not_finite_must_agree(name: str, got: float, want: float) -> None:
    assert not compare(_value(got, TYPES[name]), _wanted(want), Tolerance(ulps=1e6, scaled=1.0)).ok


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, -0.0])
def test_what_is_not_finite_agrees_with_itself(value: float) -> None:
    assert compare(_value(value, torch.float16), _wanted(value), Tolerance(ulps=1)).ok
    assert compare(_value(value, torch.float16), _value(value, torch.float16), Tolerance()).ok


def test_bit_by_bit_tells_zeros_apart() -> None:
    assert not compare(_value(0.0, torch.float32), _value(-0.0, torch.float32), Tolerance()).ok
    assert compare(_value(0.0, torch.float32), _wanted(-0.0), Tolerance(ulps=1)).ok


def test_overflow_is_the_types_infinity() -> None:
    assert compare(_value(math.inf, torch.float16), _wanted(1e6), Tolerance(ulps=1)).ok
    assert compare(_value(65504.0, torch.float16), _wanted(65530.0), Tolerance(ulps=1)).ok
    assert not compare(_value(-math.inf, torch.float16), _wanted(1e6), Tolerance(ulps=1)).ok
    assert not compare(_value(1.0, torch.float16), _wanted(1e6), Tolerance(ulps=1)).ok


def test_denormals_of_half_precision_must_be_kept() -> None:
    denormal = 3e-6
    assert not compare(_value(0.0, torch.float16), _wanted(denormal), Tolerance(ulps=1)).ok
    assert compare(_value(0.0, torch.bfloat16), _wanted(1e-39), Tolerance(ulps=1)).ok
    assert compare(_value(0.0, torch.float32), _wanted(1e-39), Tolerance(ulps=1)).ok


def test_shapes_and_dtypes_must_agree() -> None:
    two = torch.zeros(2)
    assert not compare(two, torch.zeros(2, 1, dtype=torch.float64), Tolerance(ulps=1)).ok
    assert not compare(two, torch.zeros(2, dtype=torch.float64), Tolerance()).ok
    assert not compare(torch.zeros(2, dtype=torch.int32), torch.zeros(2, dtype=torch.int64), Tolerance()).ok
    assert compare(torch.zeros(0), torch.zeros(0), Tolerance()).ok


def test_integers_are_compared_exactly() -> None:
    result = compare(torch.tensor([1, 2, 3]), torch.tensor([1, 5, 3]), Tolerance(ulps=10))
    assert not result.ok
    assert "(1,)" in result.detail


def test_a_part_of_the_largest_magnitude() -> None:
    wanted = torch.tensor([1000.0, 1e-3], dtype=torch.float64)
    out = torch.tensor([1000.0, 2e-3])
    assert not compare(out, wanted, Tolerance(ulps=1)).ok
    assert compare(out, wanted, Tolerance(ulps=1, scaled=1e-5)).ok
