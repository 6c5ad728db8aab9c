"""Measure ours and a peer in turn: both captured several times, and replayed in an order that is swapped each round."""

from __future__ import annotations

import gc
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


def measured_in_turn(ours: Thunks, peer: Thunks, device: torch.device, *, budget_s: float) -> Pair | None:
    """Measure ours and a peer in turn; None where one cannot be captured, or memory holds too few placings.

    Args:
        ours: Our call on each set of arguments, warm.
        peer: The peer's on the same sets, warm.
        device: Where they run.
        budget_s: Seconds for both together; the least rounds may take longer.
    """
    if device.type != "cuda":
        return None
    gc.collect()
    graphs = _placings(ours, peer)
    if len(graphs) < LEAST_PLACINGS:
        return None
    once = max(event_s(graph.replay, 1) for graph in graphs[0])
    inner = repeats(once)
    least, most = ROUNDS
    rounds = max(least, min(most, 2 * int(budget_s / (4 * len(graphs) * once * inner))))
    runs = [(one.replay, other.replay) for one, other in graphs]
    mine, theirs = alternate(runs, rounds, lambda run: event_s(run, inner))
    one, other = (summary([s for place in found for s in place], len(ours), "graph") for found in (mine, theirs))
    return Pair(ratio(mine, theirs), one, other, len(graphs), rounds)


def _placings(ours: Thunks, peer: Thunks) -> list[tuple[torch.cuda.CUDAGraph, torch.cuda.CUDAGraph]]:
    """Capture both several times; all graphs are kept, so that each has memory of its own."""
    found: list[tuple[torch.cuda.CUDAGraph, torch.cuda.CUDAGraph]] = []
    for number in range(PLACINGS):
        first = captured(peer if number % 2 else ours)
        second = None if first is None else captured(ours if number % 2 else peer)
        if first is None or second is None:  # it cannot be captured, or memory is full
            break
        found.append((second, first) if number % 2 else (first, second))
    return found
