"""Time MLX's twins of calls: runs in a child process whose import path has MLX, and prints a JSON line for each.

python -m benchmarks.kernels.mlx_child requests.json [--once] [--each SECONDS]

A request is {"key": …, "target": "module:function", "arguments": {…}, "sets": 8}; the file is a list of them. With
--once each is called a single time, on one set: MLX compiles some of its kernels when they are first called, for half a
minute and more, and keeps them in the folder that MLX_PTX_CACHE_DIR names. With --each the process ends where one takes
longer.
"""

from __future__ import annotations

import argparse
import faulthandler
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any


def made(request: Mapping[str, Any], sets: int) -> Sequence[Callable[[], Any]]:
    """Return what a request names, one call a set."""
    module, _, name = request["target"].partition(":")
    thunks: Sequence[Callable[[], Any]] = getattr(importlib.import_module(module), name)(
        **request["arguments"], sets=sets
    )
    return thunks


def called(request: Mapping[str, Any]) -> dict[str, Any]:
    """Call what a request names once."""
    import mlx.core as mx

    mx.eval(made(request, 1)[0]())
    return {"called": True}


def one(request: Mapping[str, Any]) -> dict[str, Any]:
    """Time what a request names: all sets evaluated together, MLX's own scheduling spread over them."""
    import mlx.core as mx

    thunks = made(request, request["sets"])
    rounds = max(1, 8 // len(thunks))

    def once(repeats: int) -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            kept: list[Any] = [thunk() for _ in range(rounds) for thunk in thunks]  # lazy: evaluated together
            mx.eval(kept)
        mx.synchronize()
        return (time.perf_counter() - start) / repeats / len(thunks) / rounds

    once(1)
    single = once(1)
    repeats = max(1, min(50, int(0.02 / max(single * len(thunks) * rounds, 1e-6))))
    samples = 9 if single * len(thunks) * rounds < 0.1 else 5
    ordered = sorted(once(repeats) * 1e6 for _ in range(samples))
    version, device = str(getattr(mx, "__version__", "")), str(mx.default_device())
    return {
        "us": statistics.median(ordered), "low_us": ordered[1], "high_us": ordered[-2], "samples": samples,
        "method": "eval", "version": version, "device": device,
    }  # fmt: skip


def say(**values: Any) -> None:
    """Print a line."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str]) -> None:
    """Answer the requests of a file, in order."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels.mlx_child", description=__doc__)
    parser.add_argument("requests", type=Path)
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--each", type=float, default=0.0, metavar="SECONDS")
    asked = parser.parse_args(arguments)
    import mlx.core as mx

    for request in json.loads(asked.requests.read_text(encoding="utf-8")):
        say(begin=request["key"])
        begun = time.perf_counter()
        if asked.each:
            faulthandler.dump_traceback_later(asked.each, exit=True)
        try:
            found = called(request) if asked.once else one(request)
        except Exception as error:  # noqa: BLE001  whatever MLX raises is what the twin came to
            found = {"error": f"{type(error).__name__}: {error}"}
        faulthandler.cancel_dump_traceback_later()
        say(key=request["key"], found={**found, "seconds": round(time.perf_counter() - begun, 2)})
        mx.clear_cache()
    say(end=True)


if __name__ == "__main__":
    main(sys.argv[1:])
