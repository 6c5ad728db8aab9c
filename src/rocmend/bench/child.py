"""What runs inside a setting's process: a case is made ready, then run in blocks. Standard library and torch alone."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rocmend.bench.workload import Workload, made
from rocmend.runner.torch_device import begun, device_of, make_current, outcome_of, synchronize

if TYPE_CHECKING:
    import torch

SHORTEST_S = 2e-3
"""A sample is of as many runs as take this long: events resolve half a microsecond, a clock and a launch cost more."""
WARM_LEAST = 3
_STEADY = 0.02
_MOST_RUNS = 10_000
_PATIENCE = 10.0
"""A block of so many times its time ends with the runs that it has: a run of seconds is as good as many short ones."""


class _Ready:
    """The case that is ready in this process."""

    workload: Workload | None = None
    device: torch.device | None = None
    inner: int = 1


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
    except Exception as error:  # noqa: BLE001  whatever a library raises is the case's outcome
        return {**found, **outcome_of(error)}
    _Ready.workload, _Ready.device = workload, where
    detail = {**workload.detail(), **_peak(where)}
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
    """Run the case that is ready.

    Args:
        time_s: Seconds, about.
        least: Samples at least; runs that take many times ``time_s`` are not waited for.

    Returns:
        ``outcome``, ``reason`` and ``seconds``, the time of one run in each sample.
    """
    workload, device = _Ready.workload, _Ready.device
    if workload is None or device is None:
        return {"outcome": "infra", "reason": "no case is ready", "seconds": []}
    seconds: list[float] = []
    begin = time.perf_counter()
    gc.disable()
    try:
        while (passed := time.perf_counter() - begin) < time_s or not seconds or len(seconds) < least:
            if seconds and (len(seconds) >= _MOST_RUNS or passed > _PATIENCE * time_s > 0):
                break
            seconds.append(_sample(workload.run, device, _Ready.inner))
    except Exception as error:  # noqa: BLE001  as above
        return {**outcome_of(error), "seconds": seconds}
    finally:
        gc.enable()
    return {"outcome": "pass", "reason": "", "seconds": seconds}


def release() -> None:
    """Let go of the case that is ready, and of its memory."""
    device, _Ready.workload, _Ready.device, _Ready.inner = _Ready.device, None, None, 1
    gc.collect()
    if device is not None and device.type == "cuda":
        import torch

        torch.cuda.empty_cache()


def _sample(run: Callable[[], Any], device: torch.device, inner: int) -> float:
    """Return the seconds of one of several runs."""
    if device.type != "cuda":
        begin = time.perf_counter()
        for _ in range(inner):
            run()
        return (time.perf_counter() - begin) / inner
    import torch

    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(inner):
        run()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / inner


def _warm_up(workload: Workload, device: torch.device, most_s: float) -> tuple[float, bool]:
    """Run until three samples in a row differ by little; return the seconds spent and whether it came to that."""
    begin = time.perf_counter()
    recent: list[float] = []
    steady = False
    while not steady and (len(recent) < WARM_LEAST or time.perf_counter() - begin < most_s):
        recent.append(_sample(workload.run, device, _Ready.inner))
        _Ready.inner = max(1, math.ceil(SHORTEST_S / max(recent[-1], 1e-8)))
        last = recent[-WARM_LEAST:]
        steady = len(recent) > WARM_LEAST and max(last) - min(last) <= _STEADY * min(last)
    return time.perf_counter() - begin, steady


def _reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        import torch

        torch.cuda.reset_peak_memory_stats(device)


def _peak(device: torch.device) -> dict[str, Any]:
    if device.type != "cuda":
        return {}
    import torch

    return {"peak_bytes": torch.cuda.max_memory_allocated(device)}
