"""Every case of every op that is small enough for the interpreter."""

from __future__ import annotations

import dataclasses

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.core.errors import UnitError
from rocmend.kernels import registry
from rocmend.kernels.suite import Call, Case, cases_of, run_case

# The interpreter is NumPy: infinities and NaN among the inputs are meant.
pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def _all() -> list[tuple[str, Case | str]]:
    found: list[tuple[str, Case | str]] = []
    for op in registry.ops():
        try:
            found += [(op.name, case) for case in cases_of(op)]
        except (ImportError, AttributeError, SyntaxError) as error:  # red for this op, not for all
            found.append((op.name, f"{type(error).__name__}: {error}"))
    return found


@pytest.mark.parametrize(
    ("op", "case"),
    [pytest.param(op, case, id=f"{op}-{getattr(case, 'name', 'cases')}") for op, case in _all()],
)
def test_case(op: str, case: Case | str) -> None:
    assert isinstance(case, Case), case
    result = run_case(registry.get(op), case, torch.device("cpu"))
    assert case.implementation in {"", result.implementation}
    assert result.ok, f"{result.detail} (worst {result.worst:.2f} of what is allowed)"


def test_a_case_about_no_implementation_is_an_error() -> None:
    op = registry.get("softmax")
    wrong = dataclasses.replace(op, cases=f"{__name__}:misspelled")
    with pytest.raises(UnitError, match="softmax/x-held2: the op has no implementation 'held2'"):
        list(cases_of(wrong))


def misspelled() -> list[Case]:
    return [Case("x", lambda _: Call(()), "float32").by("held2")]


def test_every_folder_of_an_op_can_be_loaded() -> None:
    assert registry.problems() == []
