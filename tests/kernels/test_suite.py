"""Every case of every op that is small enough for the interpreter."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import registry
from rocmend.kernels.suite import Case, cases_of, run_case

# The interpreter is NumPy: infinities and NaN among the inputs are meant.
pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]


def _all() -> list[tuple[str, Case]]:
    return [(op.name, case) for op in registry.ops() for case in cases_of(op)]


@pytest.mark.parametrize(("op", "case"), [pytest.param(op, case, id=f"{op}-{case.name}") for op, case in _all()])
def test_case(op: str, case: Case) -> None:
    result = run_case(registry.get(op), case, torch.device("cpu"))
    assert result.ok, f"{result.detail} (worst {result.worst:.2f} of what is allowed)"
