from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocmend.lab.stats import Z_95, rate_text, wilson


@pytest.mark.parametrize(
    ("successes", "runs", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (1, 20, 0.0089, 0.2361), (0, 0, 0.0, 1.0)],
)
def test_known_intervals(successes: int, runs: int, low: float, high: float) -> None:
    assert wilson(successes, runs) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 10_000), st.data())
def test_bounds_are_where_the_score_test_turns(runs: int, data: st.DataObject) -> None:
    successes = data.draw(st.integers(0, runs))
    low, high = wilson(successes, runs)
    rate = successes / runs
    assert 0 <= low <= rate <= high <= 1
    for bound in (low, high):
        if 0 < bound < 1:
            score = abs(rate - bound) / math.sqrt(bound * (1 - bound) / runs)
            assert score == pytest.approx(Z_95, rel=1e-6)


@pytest.mark.parametrize(("successes", "runs"), [(-1, 3), (4, 3)])
def test_refuses_what_is_no_rate(successes: int, runs: int) -> None:
    with pytest.raises(ValueError, match="no rate"):
        wilson(successes, runs)


def test_says_a_rate_in_words() -> None:
    assert rate_text(3, 10) == "3 of 10 (30 %, 95 % interval 11 to 60 %)"
    assert rate_text(0, 0) == "0 of 0"
