from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.probe.oracle import compare, flatten, tolerance_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.cpu

FINITE = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)


@given(st.lists(FINITE, min_size=1, max_size=30))
def test_a_tensor_is_itself(values: list[float]) -> None:
    tensor = torch.tensor(values, dtype=torch.float64)
    assert compare(tensor, tensor, 0.0).ok
    assert compare(tensor, tensor, 1e-9).ok


@given(st.lists(FINITE, min_size=1, max_size=30), st.data())
def test_any_one_element_far_off_is_found(values: list[float], data: st.DataObject) -> None:
    expected = torch.tensor(values, dtype=torch.float64)
    place = data.draw(st.integers(0, len(values) - 1))
    actual = expected.clone()
    actual[place] += 4 * float(expected.abs().max()) + 1
    found = compare(actual, expected, 1e-1)
    assert not found.ok
    assert found.worst_index == (place,)


@given(st.sampled_from([math.nan, math.inf, -math.inf]), st.sampled_from([math.nan, math.inf, -math.inf, 0.0]))
def test_special_values_only_equal_themselves(actual: float, expected: float) -> None:
    found = compare(torch.tensor([actual, 1.0]), torch.tensor([expected, 1.0], dtype=torch.float64), 1e-1)
    same = actual == expected or (math.isnan(actual) and math.isnan(expected))
    assert found.ok is same


def test_the_figures() -> None:
    expected = torch.tensor([[3.0, 4.0], [0.0, 5.0]], dtype=torch.float64)
    actual = expected.clone()
    actual[1, 0] = 0.5
    found = compare(actual, expected, 1e-3, output=2)
    scale = math.sqrt(50 / 4)
    assert (found.wrong, found.count, found.output, found.worst_index) == (1, 4, 2, (1, 0))
    assert found.max_abs_error == pytest.approx(0.5)
    assert found.max_rel_error == pytest.approx(0.5 / scale)
    assert (found.actual, found.expected) == (0.5, 0.0)


def test_complex_parts_are_compared_each() -> None:
    expected = torch.tensor([1 + 2j, 3 + 4j], dtype=torch.complex128)
    actual = torch.tensor([1 + 2j, 3 + 5j], dtype=torch.complex64)
    assert compare(actual, expected, 1e-4).worst_index == (1, 1)


def test_whole_numbers_truth_and_emptiness() -> None:
    assert not compare(torch.tensor([1, 2]), torch.tensor([1, 3]), 0.0).ok
    assert compare(torch.tensor([True]), torch.tensor([True]), 0.0).ok
    assert compare(torch.empty(0), torch.empty(0, dtype=torch.float64), 1e-4).ok
    assert not compare(torch.empty(0), torch.empty(1), 1e-4).ok


def test_an_exact_comparison_rounds_the_reference_to_the_results_dtype() -> None:
    third = torch.tensor([1 / 3], dtype=torch.float64)
    assert compare(third.half(), third, 0.0).ok


def test_tolerances() -> None:
    assert tolerance_of("bfloat16") > tolerance_of("float16") > tolerance_of("float32") > tolerance_of("float64") > 0
    assert tolerance_of("int32") == 0
    assert tolerance_of("float16", exact=True) == 0
    assert tolerance_of("float16", loosen=2) == 2 * tolerance_of("float16")


def test_results_are_flattened_in_order() -> None:
    one, two, three = (torch.tensor(value) for value in (1, 2, 3))
    assert [int(tensor) for tensor in flatten({"a": [one, (two,)], "b": three, "c": None})] == [1, 2, 3]
    assert [int(tensor) for tensor in flatten([True, 2])] == [1, 2]
