"""What runs inside a setting's process: a case is made ready, then run in blocks. Standard library and torch alone."""

from __future__ import annotations

import contextlib
import gc
import math
import os
import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rocmend.bench.workload import Workload, made
from rocmend.runner.torch_device import begun, device_of, make_current, outcome_of, synchronize

if TYPE_CHECKING:
    import torch

SHORTEST_S = 2e-3
"""A sample is of as many runs as take this long: events resolve half a microsecond, a clock and a launch cost more."""
WARM_LEAST_S = {"cuda": 0.3, "cpu": 0.05}
"""Seconds of warming up at least, by device: a GPU takes some hundred ms to raise its clocks."""
_COMPARED = 3
"""Samples whose median is compared with that of as many before them."""
_STEADY = 0.02
_LEAD_IN = 0.1
_LEAD_IN_S = 0.1
"""Share of a block, and most seconds, that are run first and do not count: another process had the device before."""
_OVERLONG = 3.0
"""A block that takes this many times as long as asked ends with fewer samples than asked."""
_MOST_RUNS = 10_000
_TASKS = "/proc/self/task"
_LAUNCH_BOUND = 0.9
"""Share of a sample's time that the CPU needs to launch its runs, from which on they wait for it."""


class _Ready:
    """The case that is ready in this process."""

    workload: Workload | None = None
    device: torch.device | None = None
    inner: int = 1
    sample_s: float = 0.0


def prepare(suite: str, parameters: dict[str, Any], device: str = "auto", warm_most_s: float = 5.0) -> dict[str, Any]:
    """Make a case ready: build it, run it once, compare its result, warm up until it is steady.

    Args:
        suite: Module of ``rocmend.bench.workloads``.
        parameters: The case's.
        device: ``auto``, ``cpu``, ``cuda`` or a device such as ``cuda:1``.
        warm_most_s: Seconds of warming up at most.

    Returns:
        ``outcome`` (pass, wrong-output, unsupported, oom, error, infra), ``reason``, ``first_s``, ``warm_s``,
        ``steady``, ``detail``, and what ``begun`` says of the device; its ``error`` where that did not start.
    """
    from rocmend.runner.child import phase

    found = begun(device)
    if found["error"]:
        return {**found, "outcome": "infra", "reason": found["error"]}
    where = device_of(device)
    make_current(where)
    release()
    try:
        phase("setup")
        workload = made(suite, parameters, where)
        _reset_peak(where)
        phase("first-run", slow=workload.slow)
        begin = time.perf_counter()
        workload.run()
        synchronize(where)
        first_s = time.perf_counter() - begin
        phase("compare")
        if wrong := workload.wrong():
            return {**found, "outcome": "wrong-output", "reason": wrong, "first_s": first_s}
        phase("warm-up")
        warm_s, steady = _warm_up(workload, where, warm_most_s)
        bound = _launch_share(workload, where)
    except Exception as error:  # noqa: BLE001  whatever a library raises is the case's outcome
        return {**found, **outcome_of(error)}
    _Ready.workload, _Ready.device = workload, where
    detail = {**workload.detail(), **_peak(where), **({"launch_share": bound} if bound >= _LAUNCH_BOUND else {})}
    return {
        **found,
        "outcome": "pass",
        "reason": "",
        "first_s": first_s,
        "warm_s": warm_s,
        "steady": steady,
        "detail": detail,
    }


def block(time_s: float, least: int = 1) -> dict[str, Any]:
    """Run the case that is ready: some time without a clock, then sample by sample.

    Args:
        time_s: Seconds, about.
        least: Samples at least; one where they would take far longer.

    Returns:
        ``outcome``, ``reason``, ``seconds``, the time of one run in each sample, and ``waited``, the share of the time
        that a thread waited for a processor, of the one that waited longest.
    """
    workload, device = _Ready.workload, _Ready.device
    if workload is None or device is None:
        return {"outcome": "infra", "reason": "no case is ready", "seconds": []}
    seconds: list[float] = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(int(min(_LEAD_IN * time_s, _LEAD_IN_S) / max(_Ready.sample_s, 1e-6))):
            _sample(workload.run, device, _Ready.inner)
        waited, begin = _waited_ns(), time.perf_counter()
        while _wanted(len(seconds), time.perf_counter() - begin, time_s, least):
            seconds.append(_sample(workload.run, device, _Ready.inner))
    except Exception as error:  # noqa: BLE001  as above
        return {**outcome_of(error), "seconds": seconds}
    finally:
        gc.enable()
    share = _largest(waited, _waited_ns()) / 1e9 / max(time.perf_counter() - begin, 1e-9)
    kept = [float(f"{value:.6g}") for value in seconds]  # a record holds them all
    return {"outcome": "pass", "reason": "", "seconds": kept, "waited": round(min(share, 1.0), 4)}


def _waited_ns() -> dict[str, int]:
    """Return how long each thread has waited on a run queue; none where the kernel does not count it.

    Source: https://docs.kernel.org/scheduler/sched-stats.html (schedstat of a task)
    """
    found = {}
    with contextlib.suppress(OSError):
        for thread in os.listdir(_TASKS):  # noqa: PTH208  twice a block
            with contextlib.suppress(OSError, ValueError, IndexError), open(f"{_TASKS}/{thread}/schedstat") as file:  # noqa: PTH123
                found[thread] = int(file.read().split()[1])
    return found


def _largest(before: dict[str, int], after: dict[str, int]) -> int:
    return max((value - before.get(thread, value) for thread, value in after.items()), default=0)


def _wanted(done: int, passed_s: float, time_s: float, least: int) -> bool:
    """Return whether a block takes another sample."""
    if not done:
        return True
    if done < least:
        return passed_s < _OVERLONG * max(time_s, SHORTEST_S * least)
    return passed_s < time_s and done < _MOST_RUNS


def release() -> None:
    """Let go of the case that is ready, and of its memory."""
    device, _Ready.workload, _Ready.device, _Ready.inner, _Ready.sample_s = _Ready.device, None, None, 1, 0.0
    gc.collect()
    if device is not None and device.type == "cuda":
        import torch

        torch.cuda.empty_cache()


def _sample(run: Callable[[], Any], device: torch.device, inner: int) -> float:
    """Return the seconds of one of several runs: by events on a GPU's stream, by the clock on a CPU."""
    if device.type != "cuda":
        begin = time.perf_counter()
        for _ in range(inner):
            run()
        return (time.perf_counter() - begin) / inner
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if inner > 1:
        run()  # the GPU is at work when the first event comes, so that no launch is waited for
    start.record()
    for _ in range(inner):
        run()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / inner


def _warm_up(workload: Workload, device: torch.device, most_s: float) -> tuple[float, bool]:
    """Run until samples no longer get faster or slower; return the seconds spent and whether it came to that.

    Medians of three samples are compared, so that noise does not keep it from ending, and a trend does.
    """
    begin = time.perf_counter()
    recent: list[float] = []
    passed = 0.0
    steady = False
    least_s = min(WARM_LEAST_S.get(device.type, 0.0), most_s)
    while not (steady and passed >= least_s) and (len(recent) < _COMPARED or passed < most_s):
        recent.append(_sample(workload.run, device, _Ready.inner))
        _Ready.inner = max(1, math.ceil(SHORTEST_S / max(statistics.median(recent[-_COMPARED:]), 1e-8)))
        if len(recent) >= 2 * _COMPARED:
            before, last = recent[-2 * _COMPARED : -_COMPARED], recent[-_COMPARED:]
            steady = abs(statistics.median(last) / max(statistics.median(before), 1e-12) - 1) <= _STEADY
        passed = time.perf_counter() - begin
    _Ready.sample_s = statistics.median(recent[-_COMPARED:]) * _Ready.inner
    return passed, steady


def _launch_share(workload: Workload, device: torch.device) -> float:
    """Return which share of the time that runs take on a GPU the CPU needs to launch them; 0 on a CPU."""
    if device.type != "cuda" or _Ready.inner == 1:
        return 0.0
    synchronize(device)
    begin = time.perf_counter()
    for _ in range(_Ready.inner):
        workload.run()
    launched = time.perf_counter() - begin
    synchronize(device)
    return round(launched / max(time.perf_counter() - begin, 1e-9), 2)


def _reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def _peak(device: torch.device) -> dict[str, Any]:
    if device.type != "cuda":
        return {}
    import torch

    return {"peak_bytes": torch.cuda.max_memory_allocated(device)}
