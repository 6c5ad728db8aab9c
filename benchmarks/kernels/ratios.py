"""Ratios of a peer's times to ours, measured in turn, and what a target makes of them.

Two kernels that are measured one after the other differ by up to half a per cent for reasons that are not theirs:
clocks move, and where arguments and outputs lie in memory matters. So both are captured several times, each time with
these elsewhere (a placing), and replayed in turn (``pairs``). A placing's ratio is the median of its rounds'; reported
are the median over placings, and the interval between two of them that covers it with 95 %.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

NEAR = 0.05
"""Pairs are measured where the figures one after the other come so close to a target; farther off they suffice."""
NARROW = 0.005
"""An interval wider than this tells nothing."""
CONFIDENCE = 0.95


class Ratio(NamedTuple):
    """How many times as long as ours a peer takes.

    Args:
        ratio: The median over placings.
        low: Lower end of the interval that covers it.
        high: Upper end.
    """

    ratio: float
    low: float
    high: float


def interval(values: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return two of independent values between which the median of what they were drawn from lies.

    The k-th least and the k-th largest of n do not cover it with probability ``2 · sum(C(n, i) for i < k) / 2^n``,
    whatever the distribution; the largest k that this allows is taken.

    Raises:
        ValueError: Too few values for the confidence.
    """
    count, ordered = len(values), sorted(values)
    k, missed = 0, 0.0
    while k < count // 2:
        missed += 2 * math.comb(count, k) / 2**count
        if missed > 1 - confidence:
            break
        k += 1
    if k == 0:
        raise ValueError(f"{count} values have no interval of {confidence:.0%}")
    return ordered[k - 1], ordered[count - k]


def ratio(ours: Sequence[Sequence[float]], peer: Sequence[Sequence[float]]) -> Ratio:
    """Return the ratio of a peer's times to ours.

    Args:
        ours: For each placing, seconds of its rounds.
        peer: The like, measured in the same rounds.
    """
    each = [
        statistics.median(theirs / mine for mine, theirs in zip(one, other, strict=True))
        for one, other in zip(ours, peer, strict=True)
    ]
    return Ratio(statistics.median(each), *interval(each))


def verdict(least: float, found: Ratio) -> str:
    """Say whether a peer's time is at least so many times ours.

    ``reached`` or ``missed`` where the whole interval lies on one side; else ``level``, within what can be told apart,
    where the interval is narrow; else ``no verdict``.
    """
    if found.low >= least:
        return "reached"
    if found.high < least:
        return "missed"
    return "level" if found.high - found.low <= NARROW * least else "no verdict"


def near(least: float, ours_us: float, peer_us: float) -> bool:
    """Return whether figures that were measured one after the other come close to a target."""
    return abs(peer_us / ours_us / least - 1) <= NEAR
