"""How sure one can be of a time, and of a ratio of two."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from enum import StrEnum

import msgspec

RESAMPLES = 2000
_SEED = 20_260_131


class Summary(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times of runs in short.

    Attributes:
        median: Seconds.
        low: Lower end of the 95 % interval of the median.
        high: Its upper end.
        runs: How many there were.
        blocks: In how many blocks.
    """

    median: float
    low: float
    high: float
    runs: int
    blocks: int


class Difference(StrEnum):
    """What a comparison says of B against A."""

    FASTER = "faster"
    SLOWER = "slower"
    NONE = "no difference shown"
    INCOMPARABLE = "incomparable"


class Comparison(msgspec.Struct, frozen=True, omit_defaults=True):
    """B against A.

    Attributes:
        difference: What is shown.
        ratio: Speed of B over that of A: above 1, B is faster; None where they can't be compared.
        low: Lower end of its 95 % interval.
        high: Its upper end.
        reason: Why they can't be compared.
    """

    difference: Difference
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


def _medians(blocks: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.median(block) for block in blocks if block]


def _resampled(values: Sequence[float], generator: random.Random) -> float:
    return statistics.median(generator.choices(values, k=len(values)))


def summarize(blocks: Sequence[Sequence[float]]) -> Summary:
    """Return the median over blocks and its interval.

    Runs of one block depend on each other (clocks, caches), so blocks are what is drawn again.

    Args:
        blocks: Seconds of the runs, by block; at least one run.
    """
    medians = _medians(blocks)
    generator = random.Random(_SEED)  # noqa: S311  it draws samples
    drawn = sorted(_resampled(medians, generator) for _ in range(RESAMPLES))
    low, high = drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES) - 1]
    return Summary(statistics.median(medians), low, high, sum(map(len, blocks)), len(medians))


def half_width(blocks: Sequence[Sequence[float]]) -> float:
    """Return half the width of the interval over the median; inf where there are too few blocks for one."""
    if len(_medians(blocks)) < 3:
        return math.inf
    found = summarize(blocks)
    return (found.high - found.low) / 2 / found.median


def compare(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], *, margin: float = 0.0) -> Comparison:
    """Compare two series of blocks.

    Args:
        a: Seconds of A's runs, by block, taken in turn with B's where possible.
        b: Of B's.
        margin: Smallest difference that counts, e.g. 0.02.
    """
    first, second = _medians(a), _medians(b)
    if not first or not second:
        return Comparison(Difference.INCOMPARABLE, reason="one of them has no times")
    generator = random.Random(_SEED)  # noqa: S311  it draws samples
    drawn = sorted(_resampled(first, generator) / _resampled(second, generator) for _ in range(RESAMPLES))
    low, high = drawn[int(0.025 * RESAMPLES)], drawn[int(0.975 * RESAMPLES) - 1]
    ratio = statistics.median(first) / statistics.median(second)
    if low > 1 + margin:
        found = Difference.FASTER
    elif high < 1 / (1 + margin):
        found = Difference.SLOWER
    else:
        found = Difference.NONE
    return Comparison(found, ratio, low, high)
