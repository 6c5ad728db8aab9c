"""What `rocmend bench` adds to a time: a run of known length, as the harness reports it.

    python benchmarks/bench_overhead.py [--ms 10] [--blocks 10]

Prints how much longer than its length a run is reported (the shortest of all: others on the machine only add to it),
without sensors and with them, and what a block takes beside its runs.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time

from rocmend.bench.calls import CallSession, Torch
from rocmend.bench.case import DEFAULT, Case
from rocmend.bench.telemetry import telemetry
from rocmend.runner.interpreter import importable


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ms", type=float, default=10.0, help="length of a run")
    parser.add_argument("--blocks", type=int, default=10)
    asked = parser.parse_args()
    case = Case("ruler/run", "ruler", {"seconds": asked.ms / 1e3}, "ms")
    with importable() as home:
        torch = Torch(home, sys.executable, "cpu", warm_most_s=1.0)
        for name, watch in (("without sensors", contextlib.nullcontext()), ("with sensors", telemetry(gpu=True))):
            with watch, CallSession("ruler", DEFAULT, torch, lambda: False) as session:
                session.prepare(case)
                seconds: list[float] = []
                beside: list[float] = []
                for _ in range(asked.blocks):
                    begin = time.perf_counter()
                    block = session.block(case, 0.2, 3)
                    beside.append(time.perf_counter() - begin - sum(block.seconds))
                    seconds += block.seconds
            over = min(seconds) * 1e3 - asked.ms  # others on the machine only add to it
            print(
                f"{name}: a run of {asked.ms:g} ms is reported {over * 1e3:.1f} µs longer ({over / asked.ms:.3%}), the "
                f"median run {statistics.median(seconds) * 1e3 - asked.ms:.1f} ms; "
                f"a block takes {statistics.median(beside) * 1e3:.1f} ms beside its {len(seconds) // asked.blocks} runs"
            )


if __name__ == "__main__":
    main()
