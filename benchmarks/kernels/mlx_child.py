"""Time MLX's twin of a call: runs in a child process whose import path has MLX, and prints one JSON line.

python -m benchmarks.kernels.mlx_child '{"target": "module:function", "arguments": {…}, "sets": 8}'
"""

from __future__ import annotations

import importlib
import json
import statistics
import sys
import time
from typing import Any


def main(text: str) -> None:
    """Time what a request names."""
    import mlx.core as mx

    request = json.loads(text)
    module, _, name = request["target"].partition(":")
    thunks = getattr(importlib.import_module(module), name)(**request["arguments"], sets=request["sets"])

    def once(repeats: int) -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            kept: list[Any] = [thunk() for thunk in thunks]  # lazy: evaluated together
            mx.eval(kept)
        mx.synchronize()
        return (time.perf_counter() - start) / repeats / len(thunks)

    once(2)
    single = once(1)
    repeats = max(1, min(50, int(0.02 / max(single * len(thunks), 1e-6))))
    ordered = sorted(once(repeats) * 1e6 for _ in range(9))
    version = str(getattr(mx, "__version__", ""))
    device = str(mx.default_device())
    found = {"us": statistics.median(ordered), "low_us": ordered[1], "high_us": ordered[-2], "samples": 9}
    sys.stdout.write(json.dumps({**found, "method": "eval", "version": version, "device": device}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
