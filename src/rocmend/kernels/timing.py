"""Time a function on a GPU: many launches on rotating buffers, in a graph where it can be captured."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

MOST_SETS = 64
LEAST_ROTATION_BYTES = 256e6
_REPLAYS = 30
_LEAST_S = 1e-3  # a measurement shorter than this is repeated within itself: events resolve half a microsecond


class Timing(NamedTuple):
    """How long one call takes.

    Args:
        us: Median.
        low_us: 10th percentile.
        high_us: 90th percentile.
        method: ``graph``, ``events`` (launch overhead included) or ``clock`` (on the CPU).
        samples: Number of measurements.
    """

    us: float
    low_us: float
    high_us: float
    method: str
    samples: int

    @property
    def spread(self) -> float:
        """The 90th percentile less the 10th, over the median."""
        return (self.high_us - self.low_us) / self.us if self.us else math.inf


def set_count(device: torch.device, set_bytes: float) -> int:
    """Return how many sets of buffers defeat a device's caches: four times the last level, 256 MB at least."""
    cache = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0) if device.type == "cuda" else 0
    wanted = max(LEAST_ROTATION_BYTES, 4.0 * cache) if device.type == "cuda" else 0.0
    return max(1, min(MOST_SETS, math.ceil(wanted / max(set_bytes, 1.0))))


def timed(thunks: Sequence[Callable[[], Any]], device: torch.device, *, budget_s: float = 1.5) -> Timing:
    """Time one call, averaged over the sets of buffers that ``thunks`` work on.

    Args:
        thunks: The same call on each set.
        device: Where it runs.
        budget_s: Seconds to spend.
    """
    if device.type != "cuda":
        return summary([_clock(thunks) for _ in range(5)], len(thunks), "clock")
    for thunk in [*thunks[:3], thunks[0]]:
        thunk()
    torch.cuda.synchronize(device)
    gc.collect()
    graph = captured(thunks)
    run = graph.replay if graph is not None else lambda: [thunk() for thunk in thunks]
    once = event_s(run, 1)
    inner = repeats(once)
    samples = max(5, min(_REPLAYS, int(budget_s / max(once * inner, 1e-6))))
    seconds = [event_s(run, inner) for _ in range(samples)]
    return summary(seconds, len(thunks), "graph" if graph is not None else "events")


def call_us(thunk: Callable[[], Any], device: torch.device) -> float:
    """Return the microseconds that one eager call keeps the CPU busy: the launch, not the work."""
    best = math.inf
    for _ in range(7):
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        for _ in range(20):
            thunk()
        best = min(best, (time.perf_counter() - start) / 20)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return best * 1e6


def repeats(once_s: float) -> int:
    """Return how often what takes so many seconds is repeated within a measurement."""
    return max(1, math.ceil(_LEAST_S / max(once_s, 1e-7)))


def captured(thunks: Sequence[Callable[[], Any]]) -> torch.cuda.CUDAGraph | None:
    """Capture all calls in one graph, and replay it once; None where they cannot be captured.

    Outputs live on until the capture's end, so that no two calls write to the same memory, and no two graphs do.
    """
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            outputs = [thunk() for thunk in thunks]
        del outputs
    except RuntimeError:  # a peer that synchronises or allocates cannot be captured
        torch.cuda.synchronize()
        return None
    graph.replay()
    torch.cuda.synchronize()
    return graph


def event_s(run: Callable[[], Any], times: int) -> float:
    """Return the seconds that a GPU takes for one of several runs."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(times):
        run()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / times


def _clock(thunks: Sequence[Callable[[], Any]]) -> float:
    start = time.perf_counter()
    for thunk in thunks:
        thunk()
    return time.perf_counter() - start


def summary(seconds: Sequence[float], calls: int, method: str) -> Timing:
    """Summarize measurements, of so many calls each: median and spread per call."""
    ordered = sorted(value / calls * 1e6 for value in seconds)
    low, high = ordered[len(ordered) // 10], ordered[-1 - len(ordered) // 10]
    return Timing(statistics.median(ordered), low, high, method, len(ordered))
