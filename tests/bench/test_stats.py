"""Intervals cover what they claim to, a thing is not found faster than itself, and a true difference is found."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator

import pytest

from rocmend.bench.case import Case
from rocmend.bench.comparison import together
from rocmend.bench.measure import QUICK, STANDARD, Effort, measure
from rocmend.bench.session import Block, Prepared, Session
from rocmend.bench.stats import MARGIN, Difference, compare, median_interval, summarize
from rocmend.core.verdict import Verdict

SLOTS = 2 * STANDARD.most_blocks
Noise = Callable[[random.Random], Iterator[float]]


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311  it draws samples


def independent(sd: float) -> Noise:
    def make(draw: random.Random) -> Iterator[float]:
        while True:
            yield draw.gauss(0, sd)

    return make


def correlated(rho: float) -> Noise:
    def make(draw: random.Random) -> Iterator[float]:
        now = draw.gauss(0, 0.02)
        while True:
            yield now
            now = rho * now + math.sqrt(1 - rho * rho) * draw.gauss(0, 0.02)

    return make


def skewed(draw: random.Random) -> Iterator[float]:
    while True:
        yield 0.02 * math.exp(draw.gauss(0, 0.7))


def drifting(draw: random.Random) -> Iterator[float]:
    for slot in range(SLOTS):
        yield 0.1 * slot / SLOTS + draw.gauss(0, 0.005)


def warming_up(draw: random.Random) -> Iterator[float]:
    for slot in range(SLOTS):
        yield 0.1 * math.exp(-slot / 8) + draw.gauss(0, 0.005)


def throttled(draw: random.Random) -> Iterator[float]:
    begins = draw.randrange(SLOTS)
    for slot in range(SLOTS):
        yield 0.1 * (slot >= begins) + draw.gauss(0, 0.005)


def bursts(draw: random.Random) -> Iterator[float]:
    left, by = 0, 0.0
    while True:
        if not left and draw.random() < 0.08:
            left, by = draw.randrange(1, 6), draw.uniform(0.1, 1)
        yield draw.gauss(0, 0.01) + (by if left else 0)
        left = max(0, left - 1)


def all_of_it(draw: random.Random) -> Iterator[float]:
    for parts in zip(correlated(0.6)(draw), drifting(draw), bursts(draw), strict=False):
        yield sum(parts)


class _Noisy(Session):
    """Times that come from a noise that all sessions share, as they share a machine."""

    def __init__(self, noise: Iterator[float], effect: float) -> None:
        self.noise, self.effect = noise, effect

    def prepare(self, case: Case) -> Prepared:
        del case
        return Prepared(Verdict.PASS)

    def block(self, case: Case, time_s: float, least: int = 1) -> Block:
        del case, time_s, least
        return Block((math.exp(next(self.noise) + self.effect),))

    def close(self) -> None:
        """Hold nothing."""


CASE = Case("made/a", "made", {}, "ms")


def differences(
    noise: Noise, effect: float = 0.0, *, effort: Effort = STANDARD, count: int = 400, margin: float = 0.0
) -> int:
    """Return in how many of so many experiments, as ``measure`` does them, a difference is found."""
    draw = seeded(20261129)
    found = 0
    for _ in range(count):
        shared = noise(draw)
        made = measure(CASE, {"a": _Noisy(shared, 0.0), "b": _Noisy(shared, effect)}, effort)
        found += compare(made["a"].blocks, made["b"].blocks, margin=margin).difference is not Difference.NONE
    return found


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(independent(0.02), id="independent"),
        pytest.param(independent(0.001), id="little"),
        pytest.param(independent(0.008), id="stops-early"),
        pytest.param(independent(0.012), id="stops-late"),
        pytest.param(skewed, id="skewed"),
        pytest.param(correlated(0.3), id="correlated"),
        pytest.param(correlated(0.6), id="more-correlated"),
        pytest.param(correlated(0.9), id="most-correlated"),
        pytest.param(drifting, id="drifting"),
        pytest.param(warming_up, id="warming-up"),
        pytest.param(throttled, id="throttled"),
        pytest.param(bursts, id="bursts"),
        pytest.param(all_of_it, id="all-of-it"),
    ],
)
def test_a_thing_is_not_found_faster_than_itself(noise: Noise) -> None:
    """No margin is used here, and blocks end as soon as the intervals are narrow: 95 of 100 at least."""
    assert differences(noise) <= 0.05 * 400 + 4  # a standard deviation of that count


@pytest.mark.parametrize("noise", [independent(0.02), independent(0.1), skewed, correlated(0.3)])
@pytest.mark.parametrize("blocks", [3, 8])
def test_in_a_table_of_40_equal_cases_none_is_found_faster_in_95_of_100(noise: Noise, blocks: int) -> None:
    draw = seeded(4)
    tables = wrong = held = 0
    for _ in range(60):
        found = []
        for _ in range(40):
            source = noise(draw)
            a, b = ([[math.exp(next(source))] for _ in range(blocks)] for _ in range(2))
            found.append(compare(a, b))
        made = together(found)
        tables += 1
        wrong += any(one.difference is not Difference.NONE for one in made)
        held += sum(one.low is not None and one.high is not None and one.low <= 1 <= one.high for one in made)
        assert [(one.low, one.high) for one in made] == [(one.low, one.high) for one in found]
    assert wrong <= 0.05 * tables + 1.7  # a standard deviation of that count
    assert held >= 0.93 * 40 * tables


def test_a_real_difference_among_40_cases_is_found() -> None:
    draw, found = seeded(5), 0
    for _ in range(40):
        noise = independent(0.02)(draw)
        pairs = [([[math.exp(next(noise))] for _ in range(20)], number) for number in range(40)]
        made = together(
            [compare(a, [[math.exp(next(noise) - 0.1 * (not number))] for _ in range(20)]) for a, number in pairs]
        )
        found += made[0].difference is Difference.FASTER
    assert found >= 0.9 * 40


def test_a_difference_of_5_percent_under_noise_of_2_percent_is_found() -> None:
    assert differences(independent(0.02), 0.05, count=200, margin=MARGIN) >= 0.9 * 200
    assert differences(independent(0.02), -0.05, count=200, margin=MARGIN) >= 0.9 * 200
    assert differences(independent(0.02), 0.05, count=200, effort=QUICK) >= 0.8 * 200


def outlying(draw: random.Random) -> Iterator[float]:
    for value in independent(0.02)(draw):
        yield value + (draw.uniform(0.1, 1) if draw.random() < 0.1 else 0.0)


@pytest.mark.parametrize("blocks", [3, 5, 6, 8, 13, 20])
@pytest.mark.parametrize(
    ("noise", "least"),
    [
        pytest.param(independent(0.02), 0.93, id="independent"),
        pytest.param(skewed, 0.93, id="skewed"),
        pytest.param(outlying, 0.93, id="outliers"),
        pytest.param(correlated(0.2), 0.90, id="correlated"),  # a few blocks do not show how correlated they are
    ],
)
def test_an_interval_holds_the_median_in_95_of_100(noise: Noise, least: float, blocks: int) -> None:
    draw = seeded(7)
    source = noise(draw)
    true = statistics.median(next(source) for _ in range(20_001))
    count = 1500
    held = 0
    for _ in range(count):
        source = noise(draw)
        found = median_interval([next(source) for _ in range(blocks)])
        held += found.low <= true <= found.high
    assert least <= held / count <= 0.98


def test_runs_of_a_block_count_as_one_however_many_they_are() -> None:
    draw = seeded(3)
    blocks = []
    for _ in range(10):
        level = draw.gauss(0, 0.05)  # what all runs of a block have in common
        blocks.append([math.exp(level + draw.gauss(0, 0.001)) for _ in range(200)])
    found = summarize(blocks)
    assert found.low is not None
    assert found.high is not None
    assert found.high / found.low > 1.03
    assert (found.runs, found.blocks) == (2000, 10)


def test_outliers_are_counted_and_stay() -> None:
    blocks = [[1.0, 1.0, 1.0, 3.0], [1.0, 1.0, 1.0, 1.0]] * 5
    found = summarize(blocks)
    assert (found.median, found.outliers, found.slowest, found.runs) == (1.0, 5, 3.0, 40)


def test_one_block_has_no_interval_and_compares_with_nothing() -> None:
    assert summarize([[1.0, 2.0, 3.0]]).low is None
    assert compare([[1.0]], [[2.0]]).difference is Difference.INCOMPARABLE
    assert compare([], [[2.0]]).difference is Difference.INCOMPARABLE


def test_times_that_are_all_the_same_are_no_error() -> None:
    found = compare([[1.0]] * 8, [[0.5]] * 8)
    assert (found.difference, found.ratio, found.low) == (Difference.FASTER, 2.0, 2.0)


def test_a_difference_below_the_margin_is_not_one() -> None:
    assert compare([[1.0]] * 8, [[1.005]] * 8).difference is Difference.NONE
    assert compare([[1.0]] * 8, [[1.005]] * 8, margin=0.0).difference is Difference.SLOWER


def test_blocks_that_were_not_taken_in_turn_are_compared_by_their_intervals() -> None:
    draw = seeded(5)
    a, b = ([[math.exp(draw.gauss(0, 0.02))] for _ in range(12)] for _ in range(2))
    paired, apart = compare(a, b), compare(a, b[:9], paired=False)
    assert paired.difference is apart.difference is Difference.NONE
    assert apart.low is not None
    assert apart.high is not None
    assert apart.low < 1 < apart.high
