"""What ops declare: names that exist, and rules that several share."""

from __future__ import annotations

from typing import NamedTuple

import pytest

pytest.importorskip("torch")

from rocmend.kernels import registry
from rocmend.kernels.common.floats import limits
from rocmend.kernels.op import resolve
from rocmend.kernels.target import CPU

pytestmark = pytest.mark.cpu


class _Problem(NamedTuple):
    dtype: str
    key_dim: int


@pytest.mark.parametrize("name", [op.name for op in registry.ops()])
def test_functions_and_references_of_all_cases_exist(name: str) -> None:
    op = registry.get(name)
    cases = list(resolve(op.cases)())
    assert cases
    assert {case.function for case in cases} - {None} <= set(op.functions)
    for reference in {case.reference or case.function for case in cases}:
        assert callable(resolve(op.reference_of(reference))), reference
    for function in op.functions.values():
        assert callable(resolve(function))
    assert all(case.tolerance or case.dtype in op.tolerance for case in cases)


def test_limits_name_the_field_and_its_value() -> None:
    rule = limits(key_dim=256)
    assert rule(_Problem("float16", 256), CPU) is None
    assert rule(_Problem("float16", 257), CPU) == "the kernel takes key dim up to 256, not 257"
    assert "not float64" in (rule(_Problem("float64", 4), CPU) or "")
