"""How sure one can be of a time, and of a ratio of two.

Runs of one block depend on each other (clocks, caches, who else is on the machine), so a block counts as one
observation: the median of its runs. All is computed on logarithms, as times are skewed and ratios are what is asked.

* The interval of a median is that of its order statistics, with no assumption about the distribution; interpolated, so
  that it is one of 95 % for any number of blocks [1]. With fewer than six blocks there is none, and Student's is used.
* It is widened where neighbouring blocks resemble each other: by what an autoregressive process of the correlation
  found, corrected for its bias in short series [2], would need, and by what Student's distribution of as many
  independent blocks is wider.
* Two settings whose blocks were taken in turn are compared block by block: what drifts meets both of a pair alike.
  Others are compared by their two intervals [3].
* Where several comparisons are made together, each has to be as unlikely to come of chance as Holm's procedure asks
  [4]: that any of them is called a difference where there is none happens in 5 of 100 such tables at most. The
  probability follows from the interval: how many of its arms the median is away from the margin, in Student's
  distribution.

Sources: [1] Hettmansperger, Sheather, Confidence intervals based on interpolated order statistics, Statistics &
Probability Letters 4 (1986) 75-79. [2] Marriott, Pope, Bias in the estimation of autocorrelations, Biometrika 41 (1954)
390-402. [3] Zou, Donner, Construction of confidence limits about effect measures, Statistics in Medicine 27 (2008)
1693-1702. [4] Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6
(1979) 65-70. [5] Satterthwaite, An approximate distribution of estimates of variance components, Biometrics Bulletin 2
(1946) 110-114.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from itertools import pairwise

import msgspec

LEVEL = 0.95
"""Of all intervals."""
ORDERED = 6
"""Blocks from which on order statistics have an interval of this level."""
STUDENT = {2: 12.7062, 3: 4.3027, 4: 3.1824, 5: 2.7764}
"""Quantiles of Student's distribution for the mean of so few."""
MARGIN = 0.01
"""A smaller difference is not called one: two processes that run the same differ by as much."""
OUTLYING = 1.25
"""A run that takes this much longer than the median is counted as an outlier; it stays in."""
_QUANTILES = ((3, 4.3027), (4, 3.1824), (5, 2.7764), (6, 2.5706), (8, 2.3646), (11, 2.2281), (16, 2.1314), (31, 2.0423))
"""Of Student's distribution, by how many values the mean is of."""
_MOST_FREEDOM = 1000
_LEAST_SERIES = 5
_LEAST_INDEPENDENT = 3.0
_MOST_CORRELATION = 0.8


class Summary(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times of runs in short.

    Attributes:
        median: Seconds; the median of the blocks' medians.
        low: Lower end of its 95 % interval; None where there is one block.
        high: Its upper end.
        runs: How many there were.
        blocks: In how many blocks.
        outliers: Runs that took 1.25 times the median or more; they count like all others.
        slowest: Seconds of the slowest run.
    """

    median: float
    low: float | None
    high: float | None
    runs: int
    blocks: int
    outliers: int = 0
    slowest: float = 0.0


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
        reason: Why they can't be compared, or why no difference is shown.
        in_turn: Their blocks were taken in turn, and were compared block by block.
        freedom: Degrees of freedom of the interval.
    """

    difference: Difference
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""
    in_turn: bool = False
    freedom: float = 0.0

    @property
    def turned(self) -> Comparison:
        """The same of A against B."""
        turned = {Difference.FASTER: Difference.SLOWER, Difference.SLOWER: Difference.FASTER}
        reason = self.reason
        for one, other in turned.items():
            if reason.startswith(f"{one.value} by itself"):
                reason = f"{other.value}{reason.removeprefix(one.value)}"
                break
        ratio, low, high = (None if end is None else 1 / end for end in (self.ratio, self.high, self.low))
        return Comparison(
            turned.get(self.difference, self.difference), ratio, low, high, reason, self.in_turn, self.freedom
        )


class Interval(msgspec.Struct, frozen=True):
    """A median with its 95 % interval; both ends are infinite where there is one value.

    Attributes:
        middle: The median.
        low: Lower end.
        high: Upper end.
        freedom: Degrees of freedom that its width rests on.
    """

    middle: float
    low: float
    high: float
    freedom: float = 1.0

    @property
    def half_width(self) -> float:
        """Half its width."""
        return (self.high - self.low) / 2


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median of a series and its 95 % interval.

    Args:
        values: In the order in which they were taken; at least one.
    """
    count, ordered = len(values), sorted(values)
    middle = statistics.median(ordered)
    if count < 2:
        return Interval(middle, -math.inf, math.inf)
    if count < ORDERED:
        center = statistics.fmean(ordered)
        reach = STUDENT[count] * statistics.stdev(ordered) / math.sqrt(count)
        low, high = center - reach, center + reach
    else:
        depth, share = _depth(count)
        low = (1 - share) * ordered[depth] + share * ordered[depth + 1]
        high = (1 - share) * ordered[-1 - depth] + share * ordered[-2 - depth]
    wider = _widening(values)
    return Interval(middle, middle - (middle - low) * wider, middle + (high - middle) * wider, count - 1)


@cache
def _depth(count: int) -> tuple[int, float]:
    """Return which order statistics are the ends of an interval of the median, and how far to go to the next ones."""
    missed, depth = 0.5**count, 0
    while True:
        more = missed + math.comb(count, depth + 1) * 0.5**count
        if 0.5 - more < LEVEL / 2:
            break
        missed, depth = more, depth + 1
    outer, inner = 1 - 2 * missed, 1 - 2 * more
    part = (outer - LEVEL) / (outer - inner)
    rank = depth + 1
    return depth, (count - rank) * part / (rank + (count - 2 * rank) * part)


def _widening(values: Sequence[float]) -> float:
    """Return by what an interval of independent values is to be widened, from the correlation of neighbours' ranks."""
    count = len(values)
    if count < _LEAST_SERIES:
        return 1.0
    ranks = _ranks(values)
    total = sum(rank * rank for rank in ranks)
    if not total:
        return 1.0
    found = sum(one * other for one, other in pairwise(ranks)) / total
    found = (found * count + 1) / (count - 3 if count > ORDERED else count)
    found = min(max(found, 0.0), _MOST_CORRELATION)
    alike = (1 + found) / (1 - found)
    return math.sqrt(alike) * _student(max(count / alike, _LEAST_INDEPENDENT)) / _student(count)


def _student(count: float) -> float:
    """Return the quantile of Student's distribution for the mean of so many, by a straight line between known ones."""
    for (less, above), (more, below) in pairwise(_QUANTILES):
        if count <= more:
            return above + (below - above) * (count - less) / (more - less)
    return _QUANTILES[-1][1]


def _ranks(values: Sequence[float]) -> list[float]:
    """Return ranks around 0; equal values share theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    first = 0
    for place in range(1, len(order) + 1):
        if place == len(order) or values[order[place]] != values[order[first]]:
            for index in order[first:place]:
                ranks[index] = (first + place - 1) / 2 - (len(values) - 1) / 2
            first = place
    return ranks


def _logs(blocks: Sequence[Sequence[float]]) -> list[float]:
    """Return the logarithm of each block's median."""
    return [math.log(max(statistics.median(block), 1e-12)) for block in blocks if block]


def summarize(blocks: Sequence[Sequence[float]]) -> Summary:
    """Return the median over blocks and its interval.

    Args:
        blocks: Seconds of the runs, by block; at least one run.
    """
    found = median_interval(_logs(blocks))
    runs = [seconds for block in blocks for seconds in block]
    median = math.exp(found.middle)
    return Summary(
        median=median,
        low=math.exp(found.low) if math.isfinite(found.low) else None,
        high=math.exp(found.high) if math.isfinite(found.high) else None,
        runs=len(runs),
        blocks=sum(map(bool, blocks)),
        outliers=sum(seconds > OUTLYING * median for seconds in runs),
        slowest=max(runs),
    )


def half_width(blocks: Sequence[Sequence[float]]) -> float:
    """Return half the width of the interval over the median; inf where there are too few blocks for one."""
    logs = _logs(blocks)
    return median_interval(logs).half_width if logs else math.inf


def ratio_interval(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], *, paired: bool = True) -> Interval:
    """Return the logarithm of the speed of B over that of A, and its interval.

    Args:
        a: Seconds of A's runs, by block; at least one run.
        b: Of B's.
        paired: Their blocks were taken in turn.
    """
    first, second = _logs(a), _logs(b)
    if paired and len(first) == len(second):
        return median_interval([one - other for one, other in zip(first, second, strict=True)])
    one, other = median_interval(first), median_interval(second)
    middle = one.middle - other.middle
    below = math.hypot(one.middle - one.low, other.high - other.middle)
    above = math.hypot(one.high - one.middle, other.middle - other.low)
    return Interval(middle, middle - below, middle + above, _freedom([one, other]))


def _freedom(parts: Sequence[Interval]) -> float:
    """Return the degrees of freedom of a sum of independent parts [5]."""
    squares = [one.half_width**2 for one in parts]
    whole = sum(square * square / one.freedom for square, one in zip(squares, parts, strict=True))
    return sum(squares) ** 2 / whole if whole > 0 and math.isfinite(whole) else min(one.freedom for one in parts)


def compare(
    a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], *, paired: bool = True, margin: float = MARGIN
) -> Comparison:
    """Compare two series of blocks.

    Args:
        a: Seconds of A's runs, by block.
        b: Of B's.
        paired: Their blocks were taken in turn, as ``measure`` does.
        margin: Smallest difference that counts, e.g. 0.02.
    """
    if not any(a) or not any(b):
        return Comparison(Difference.INCOMPARABLE, reason="one of them has no times")
    found = ratio_interval(a, b, paired=paired)
    if not math.isfinite(found.low):
        return Comparison(Difference.INCOMPARABLE, math.exp(found.middle), reason="one block says nothing of noise")
    ends = math.exp(found.low), math.exp(found.high)
    return Comparison(judged(found, margin), math.exp(found.middle), *ends, in_turn=paired, freedom=found.freedom)


def judged(found: Interval, margin: float = MARGIN) -> Difference:
    """Return what the interval of a logarithm of a ratio shows: a difference where all of it lies beyond the margin."""
    least = math.log1p(margin)
    if found.low > least:
        return Difference.FASTER
    return Difference.SLOWER if found.high < -least else Difference.NONE


def chance(found: Interval, margin: float = MARGIN) -> float:
    """Return how likely an interval lies so far beyond the margin where there is no difference: a two-sided p-value."""
    arm = max(found.middle - found.low, found.high - found.middle)  # by chance one of them is short
    beyond = abs(found.middle) - math.log1p(margin)
    if beyond <= 0 or not math.isfinite(arm):
        return 1.0
    freedom = max(1, min(int(found.freedom), _MOST_FREEDOM))
    quantile = STUDENT.get(freedom + 1) or _student(freedom + 1)
    return _both_tails(quantile * beyond / arm, freedom) if arm > 0 else 0.0


def _both_tails(value: float, freedom: int) -> float:
    """Return the probability that Student's variable is farther from 0, in closed form.

    Source: Abramowitz, Stegun, Handbook of mathematical functions (1964), 26.7.3 and 26.7.4.
    """
    angle = math.atan(value / math.sqrt(freedom))
    square = math.cos(angle) ** 2
    odd = freedom % 2
    term = math.cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for number in range(1 + odd, freedom - 2, 2):
        term *= square * number / (number + 1)
        total += term
    within = math.sin(angle) * total
    return max(0.0, 1 - (2 * (angle + within) / math.pi if odd else within))


def not_by_chance(chances: Sequence[float]) -> list[bool]:
    """Return which of several comparisons show a difference, such that none is one by chance in 95 of 100 cases [4]."""
    shown = [False] * len(chances)
    for place, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[index] > (1 - LEVEL) / (len(chances) - place):
            break
        shown[index] = True
    return shown


def combined(ratios: Sequence[Interval]) -> Interval:
    """Return the mean of logarithms of ratios, with the interval that follows from theirs.

    Args:
        ratios: Of each case, measured apart from each other; at least one.
    """
    mean = statistics.fmean(one.middle for one in ratios)
    below = math.hypot(*(one.middle - one.low for one in ratios)) / len(ratios)
    above = math.hypot(*(one.high - one.middle for one in ratios)) / len(ratios)
    return Interval(mean, mean - below, mean + above, _freedom(ratios))
