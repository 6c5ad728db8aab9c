"""How often `rocmend bench` finds a setting faster or slower than itself: fresh processes each time, on the CPU.

    python benchmarks/bench_itself.py [--times 100] [--size 192] [--standard]

Prints in how many of the runs a difference was reported between two settings of a run, as a command reports it and with
less care, and between each run and the one before.
"""

from __future__ import annotations

import argparse
import sys
import time

from rocmend.bench.calls import CallSession, Torch
from rocmend.bench.case import Case, Setting
from rocmend.bench.comparison import compared
from rocmend.bench.measure import QUICK, STANDARD
from rocmend.bench.records import Measured
from rocmend.bench.run import run_suite
from rocmend.bench.session import Session, Stop
from rocmend.bench.stats import Difference, compare
from rocmend.bench.suite import Suite
from rocmend.bench.suites.gemm_cases import Shape, case_of
from rocmend.runner.interpreter import importable

SHOWN = {Difference.FASTER, Difference.SLOWER}
ONE_THREAD: dict[str, str | None] = {"OMP_NUM_THREADS": "1"}


class Itself(Suite):
    """A small product, twice under the same setting."""

    name, title = "itself", "A product against itself"

    def __init__(self, torch: Torch, size: int) -> None:
        self._torch, self._size = torch, size

    def cases(self) -> list[Case]:
        """Return the product."""
        return [case_of(Shape(self._size, self._size, self._size), "float32")]

    def settings(self) -> list[Setting]:
        """Return one setting under two names."""
        return [Setting("a", ONE_THREAD), Setting("b", ONE_THREAD)]

    def open(self, setting: Setting, stop: Stop) -> Session:
        """Start a process."""
        return CallSession("gemm", setting, self._torch, stop)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--size", type=int, default=192, help="rows and columns of the product")
    parser.add_argument("--standard", action="store_true", help="as much time for a figure as without --quick")
    asked = parser.parse_args()
    found = {"as a command reports it": 0, "on a busy machine too": 0, "without a margin": 0, "from run to run": 0}
    busy = 0
    before: Measured | None = None
    pairs = 0
    with importable() as home:
        torch = Torch(home, sys.executable, "cpu", warm_most_s=1.0)
        for number in range(1, asked.times + 1):
            begin = time.monotonic()
            run = run_suite(Itself(torch, asked.size), effort=STANDARD if asked.standard else QUICK)
            if len(run.results) != 2 or any(item.summary is None for item in run.results):
                print(f"{number}: no figure: {[item.reason for item in run.results]}")
                continue
            a, b = run.results
            pairs += 1
            made = compared(a, b)
            busy += made.difference is Difference.INCOMPARABLE
            found["as a command reports it"] += made.difference in SHOWN
            found["on a busy machine too"] += compare(a.blocks, b.blocks).difference in SHOWN
            found["without a margin"] += compare(a.blocks, b.blocks, margin=0.0).difference in SHOWN
            if before is not None:
                found["from run to run"] += compared(before, a).difference in SHOWN
            before = a
            ratio = f"{made.ratio:.4f} ({made.low:.4f} to {made.high:.4f})" if made.low is not None else made.reason
            print(f"{number}: {ratio} {made.difference.value}, {time.monotonic() - begin:.1f} s", flush=True)
    print(
        f"of {pairs}, {busy} of them on a machine too busy to compare: "
        + ", ".join(f"{count} {name}" for name, count in found.items())
    )


if __name__ == "__main__":
    main()
