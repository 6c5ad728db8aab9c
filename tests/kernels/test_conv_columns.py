"""Convolutions as matrix products: every direction against torch, and blocks of positions."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from rocmend.kernels import registry
from rocmend.kernels.ops.conv.conv.workspace import blocks
from rocmend.kernels.select import UnsupportedError, select
from rocmend.kernels.suite import cases_of, run_case
from rocmend.kernels.target import by_name

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore::RuntimeWarning")]
UNEVEN = ("unequal", "cropped", "both-steps", "taps-that-miss", "no-image", "no-channels")


@pytest.mark.parametrize("case", list(cases_of(registry.get("conv"))), ids=lambda c: c.name)
def test_matrix_products_convolve(case: Any) -> None:
    if any(name in case.name for name in UNEVEN):
        with pytest.raises(UnsupportedError):
            run_case(registry.get("conv"), case, torch.device("cpu"), tier="columns")
        return
    result = run_case(registry.get("conv"), case, torch.device("cpu"), tier="columns")
    assert result.ok, result.detail


def test_they_stand_in_for_miopen_where_there_is_no_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    from rocmend.kernels import executor

    op, target = registry.get("conv"), by_name("gfx1030")
    problem = op.problem("float16", "forward", 3136, 3136, 64, 64, 1, 9, True)
    monkeypatch.setattr(executor, "triton_unavailable", lambda _target: "triton is not installed")
    assert select(op, problem, target).implementation == "columns"
    assert select(op, problem, by_name("gfx942")).implementation == "torch.nn"


@given(st.lists(st.integers(0, 7), min_size=1, max_size=4), st.integers(1, 60))
def test_blocks_cover_every_position_once_and_stay_within_the_limit(shape: list[int], limit: int) -> None:
    seen: dict[tuple[int, ...], int] = {}
    for block in blocks(shape, limit):
        positions = [()]
        for box in block:
            positions = [(*head, at) for head in positions for at in range(box.start, box.stop)]  # type: ignore[misc]
        assert len(positions) <= limit
        for position in positions:
            seen[position] = seen.get(position, 0) + 1
    assert len(seen) == math.prod(shape)
    assert set(seen.values()) <= {1}
