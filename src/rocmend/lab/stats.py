"""How sure one can be of a rate."""

from __future__ import annotations

import math

Z_95 = 1.959963984540054
"""Half-width of a 95 % interval of the normal distribution, in standard deviations."""


def wilson(successes: int, runs: int, z: float = Z_95) -> tuple[float, float]:
    """Return the Wilson score interval of a rate.

    centre = (p + z²/2n) / (1 + z²/n); half-width = z/(1 + z²/n) · sqrt(p(1-p)/n + z²/4n²)

    Args:
        successes: How often it came out.
        runs: How often it was tried.
        z: Standard deviations; 1.96 for 95 %.

    Returns:
        Lower and upper bound; 0 and 1 where nothing was tried.

    Raises:
        ValueError: More successes than runs, or a negative number.

    Source:
        E. B. Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927) 209-212.
    """
    if not 0 <= successes <= runs:
        raise ValueError(f"{successes} of {runs} is no rate")
    if runs == 0:
        return 0.0, 1.0
    rate, square = successes / runs, z * z
    scale = 1 + square / runs
    centre = (rate + square / (2 * runs)) / scale
    half = z / scale * math.sqrt(rate * (1 - rate) / runs + square / (4 * runs * runs))
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    return low, 1.0 if successes == runs else min(1.0, centre + half)


def rate_text(successes: int, runs: int) -> str:
    """Return ``3 of 10 (30 %, 95 % interval 11 to 60 %)``."""
    if runs == 0:
        return "0 of 0"
    low, high = wilson(successes, runs)
    percent = 100 * successes / runs
    return f"{successes} of {runs} ({percent:.0f} %, 95 % interval {100 * low:.0f} to {100 * high:.0f} %)"
