"""Run the suites of all ops on the GPUs at hand, many processes side by side, and write the records of what came out.

python -m benchmarks.kernels.suites --log suites.jsonl --record runs.json --jobs 30 --seconds 230

It runs the cases that ``rocmend kernels check --sizes tiny,small,large`` runs, in minutes instead of an hour: compiling
takes most of a suite's time, and that is spread over the cores; what takes longest comes first (``--like`` names logs
of earlier runs, whose seconds and memory are gone by); large cases run side by side as far as the GPU's memory goes.
Each outcome is added to the log at once, and a second run with the same log does what is missing: cases that did not
pass, and those of ops whose code has changed. ``--seconds 0`` runs nothing and writes records from the log alone. An op
gets a record once all of its cases of the sizes asked for have been run.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.kernels.suites.board import Board, items
from benchmarks.kernels.suites.crew import Crew
from benchmarks.kernels.suites.outcomes import Log, costs
from benchmarks.kernels.suites.sources import digest

from rocmend.kernels import registry, rungs
from rocmend.kernels.suite.supervise import OpRun, evidence_of, summed

SIZES = ("tiny", "small", "large")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns 1 where something did not pass or was not begun."""
    asked = _asked(arguments)
    end = time.monotonic() + asked.seconds
    started = dt.datetime.now(dt.UTC)
    ops = [one for one in asked.ops.split(",") if one] or [op.name for op in registry.ops()]
    sizes = tuple(asked.sizes.split(","))
    log = Log(asked.log, {op: digest(op) for op in ops})
    wanted = items(ops, sizes, costs([*asked.like, *([asked.log] if asked.log else [])]))
    missing = [item for item in wanted if not log.passed(item.op, item.case)]
    if missing and asked.seconds > 0:
        board = Board(missing, end - 1)
        gpus = asked.gpus.split(",") if asked.gpus else _gpus(asked.device)
        for gpu, gib in zip(gpus, asked.gib.split(",") if asked.gib else [], strict=False):
            board.opened(gpu, float(gib))
        Crew(board, log, asked.device, asked.case_limit).work(gpus, asked.jobs, end)
    runs, not_begun = [], 0
    for op in ops:
        names = {item.case for item in wanted if item.op == op}
        found = {name: one for name, one in log.outcomes[op].items() if name in names}
        run = summed(op, found, log.about, sizes, started, sum(one.time_ms for one in found.values()))
        left = len(names) - len(found)
        not_begun += left
        tail = f", {left} not begun" if left else ""
        print(f"{op}: {run.passed}/{len(names)} worst {run.worst:.2f} {run.time_ms / 1e3:.0f} s{tail}")
        for bad in run.not_passed:
            print(f"    {bad.case}: {bad.verdict.value} {bad.detail[:200]}")
        if names and not left:
            runs.append(run)
    if asked.record is not None:
        _record(asked.record, runs)
    passed = sum(log.passed(item.op, item.case) for item in wanted)
    print(f"{passed} of {len(wanted)} passed, {not_begun} not begun", flush=True)
    return 0 if passed == len(wanted) else 1


def _asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    made = argparse.ArgumentParser(prog="python -m benchmarks.kernels.suites", description=__doc__)
    made.add_argument("--ops", default="", help="with commas between; all where none is named")
    made.add_argument("--sizes", default=",".join(SIZES))
    made.add_argument("--device", default="cuda", help="cuda, or cpu for Triton's interpreter")
    made.add_argument("--gpus", default="", help="numbers with commas between; those that are visible otherwise")
    made.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 2), help="processes over all GPUs")
    made.add_argument("--gib", default="", help="memory that cases may take on each GPU; else nearly all that there is")
    made.add_argument("--seconds", type=float, default=230.0)
    made.add_argument("--case-limit", type=float, default=90.0)
    made.add_argument("--like", type=Path, action="append", default=[], help="log of an earlier run, for its costs")
    made.add_argument("--log", type=Path, default=None, help="each outcome; what passed there is not run again")
    made.add_argument("--record", type=Path, default=None, help="runs.json: records of ops whose cases all ran")
    return made.parse_args(arguments)


def _gpus(device: str) -> list[str]:
    if device == "cpu":
        return [""]
    import torch

    named = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return [one for one in named.split(",") if one] or [str(number) for number in range(torch.cuda.device_count())]


def _record(path: Path, runs: Sequence[OpRun]) -> None:
    from rocmend.cli.commands.kernels_check import _write
    from rocmend.cli.output import OutputFile

    _write(OutputFile(path, "file of records"), rungs.from_evidence(evidence_of(one, "suites") for one in runs))


if __name__ == "__main__":
    sys.exit(main())
