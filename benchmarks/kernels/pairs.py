"""Measure ours and a peer in turn: both captured several times, and replayed in an order that is swapped each round.

Where arguments and outputs lie in memory can matter more than what two kernels differ by (1.6 % was seen, the same for
both, and 0.5 % between them), so each capture has memory of its own: a placing.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from benchmarks.kernels.ratios import Ratio, ratio

from rocmend.kernels.timing import Timing, captured, event_s, repeats, summary

PLACINGS = 20
LEAST_PLACINGS = 6
"""Fewer have no interval of 95 %."""
ROUNDS = (4, 16)
"""Of a placing, at least and at most; even, so that each is first as often as the other."""

Thunks = Sequence[Callable[[], Any]]


class Pair(NamedTuple):
    """What a pair came to.

    Args:
        ratio: The peer's time over ours.
        ours: Our times, over all placings and rounds.
        peer: The peer's.
        placings: How often both were captured.
        rounds: How often each capture was measured.
    """

    ratio: Ratio
    ours: Timing
    peer: Timing
    placings: int
    rounds: int

    def told(self) -> dict[str, Any]:
        """Return what stands in a result."""
        return {**self.ratio._asdict(), "placings": self.placings, "rounds": self.rounds}


def alternate(
    runs: Sequence[tuple[Callable[[], Any], Callable[[], Any]]],
    rounds: int,
    seconds: Callable[[Callable[[], Any]], float],
) -> tuple[list[list[float]], list[list[float]]]:
    """Measure placings in turn, and in each ours and the peer: another one first in each round.

    Args:
        runs: For each placing, what runs ours and what runs the peer.
        rounds: How often each is measured.
        seconds: Measures one of them.

    Returns:
        Seconds of ours and of the peer, for each placing by round.
    """
    both: tuple[list[list[float]], list[list[float]]] = ([[] for _ in runs], [[] for _ in runs])
    for number in range(rounds):
        for place, run in enumerate(runs):
            first = (number + place) % 2
            for which in (first, 1 - first):
                both[which][place].append(seconds(run[which]))
    return both


def measured_in_turn(
    place: Callable[[], tuple[Thunks, Thunks]], device: torch.device, *, budget_s: float
) -> Pair | None:
    """Measure ours and a peer in turn; None where one cannot be captured, or memory holds too few placings.

    Args:
        place: Makes sets of arguments anew, and returns our call on each of them and the peer's, both warm.
        device: Where they run.
        budget_s: Seconds to measure both; the least rounds may take longer. Placings may take ten times as many.
    """
    if device.type != "cuda":
        return None
    gc.collect()
    placings = _placings(place, 10 * budget_s)
    if len(placings) < LEAST_PLACINGS:
        return None
    once = max(event_s(graph.replay, 1) for graph in placings[0][:2])
    inner = repeats(once)
    least, most = ROUNDS
    rounds = max(least, min(most, 2 * int(budget_s / (4 * len(placings) * once * inner))))
    runs = [(one.replay, other.replay) for one, other, *_ in placings]
    mine, theirs = alternate(runs, rounds, lambda run: event_s(run, inner))
    calls = len(placings[0][2])
    one, other = (summary([s for each in found for s in each], calls, "graph") for found in (mine, theirs))
    return Pair(ratio(mine, theirs), one, other, len(placings), rounds)


_Placing = tuple[torch.cuda.CUDAGraph, torch.cuda.CUDAGraph, Thunks, Thunks]
"""Ours and the peer's, and what keeps their arguments alive."""


def _placings(place: Callable[[], tuple[Thunks, Thunks]], limit_s: float) -> list[_Placing]:
    """Capture both several times; everything is kept, so that arguments and outputs lie elsewhere each time."""
    found: list[_Placing] = []
    begun = time.monotonic()
    for number in range(PLACINGS):
        if len(found) >= LEAST_PLACINGS and time.monotonic() - begun > limit_s:
            break
        try:
            ours, peer = place()
        except torch.OutOfMemoryError:
            break
        first = captured(peer if number % 2 else ours)
        second = None if first is None else captured(ours if number % 2 else peer)
        if first is None or second is None:  # it cannot be captured, or memory is full
            break
        mine, theirs = (second, first) if number % 2 else (first, second)
        found.append((mine, theirs, ours, peer))
    return found
