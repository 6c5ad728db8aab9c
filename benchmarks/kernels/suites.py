"""Run the suites of all ops on the GPU at hand, many children side by side, and write the records of what came out.

python -m benchmarks.kernels.suites --record runs.json --log suites.jsonl --jobs 18 --seconds 230

It does what ``rocmend kernels check --sizes tiny,small,large --record runs.json`` does, in minutes: compiling takes a
suite's time, and that is spread over the cores. Tiny and small cases run side by side; large ones, which need
gigabytes, a few at a time. What was not begun when the time was up counts as not passed.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any, NamedTuple

from benchmarks.kernels.isolated import run

from rocmend.core.verdict import Verdict
from rocmend.kernels import registry, rungs
from rocmend.kernels.op import resolve
from rocmend.kernels.suite.supervise import CaseOutcome, OpRun, _summed, events, evidence_of

SIZES = ("tiny", "small", "large")


class Shard(NamedTuple):
    """Some cases of an op, of one size."""

    op: str
    size: str
    cases: tuple[str, ...]


class Seen:
    """What children told, by op and case; written down whenever one has told, if a file is given."""

    def __init__(self, log: Path | None = None) -> None:
        self.log = log
        self.outcomes: dict[str, dict[str, CaseOutcome]] = {}
        self.about: dict[str, Any] = {}
        self.lock = Lock()

    def add(self, op: str, outcome: CaseOutcome) -> None:
        """Keep an outcome."""
        with self.lock:
            self.outcomes.setdefault(op, {})[outcome.case] = outcome

    def keep(self) -> None:
        """Write the file: who ends this program early loses nothing."""
        if self.log is not None:
            with self.lock:
                _log(self.log, self)


def shards(ops: Sequence[str], sizes: Sequence[str], small: int, large: int) -> list[Shard]:
    """Return all cases in shards of so many; the ones that take long to compile come first."""
    found: list[Shard] = []
    for op in ops:
        by_size: dict[str, list[str]] = {}
        for case in resolve(registry.get(op).cases)():
            by_size.setdefault("large" if case.size == "large" else "small", []).append(case.name)
        for size, names in by_size.items():
            if size not in sizes and not (size == "small" and "tiny" in sizes):
                continue
            random.Random(0).shuffle(names)  # noqa: S311  it spreads work
            count = max(1, -(-len(names) // (large if size == "large" else small)))
            found += [Shard(op, size, tuple(names[at::count])) for at in range(count)]
    order = list(found)
    random.Random(1).shuffle(order)  # noqa: S311  it spreads work
    return sorted(order, key=lambda one: one.size != "large")


def _run_shard(  # noqa: PLR0913, PLR0917  it is called in one place
    shard: Shard, device: str, end: float, case_s: float, seen: Seen, env: dict[str, str]
) -> None:
    every = {case.name for case in resolve(registry.get(shard.op).cases)()}
    wanted = set(shard.cases)
    for _ in range(4):
        left = end - time.monotonic()
        missing = wanted - set(seen.outcomes.get(shard.op, {}))
        if left < 2 or not missing:
            return
        request = {
            "ops": [shard.op], "device": device, "sizes": list(SIZES), "case_s": min(case_s, left),
            "done": sorted(every - missing),
        }  # fmt: skip
        command = [sys.executable, "-P", "-m", "rocmend.kernels.suite.child", json.dumps(request)]
        text, errors, why = run(command, left, env)
        open_case, ended = "", False
        for event in events(text):
            if event["event"] == "device":
                seen.about = seen.about or event
            elif event["event"] == "begin":
                open_case = event["case"]
            elif event["event"] == "case":
                open_case = ""
                verdict = Verdict(event["verdict"])
                seen.add(shard.op, CaseOutcome(event["case"], verdict, event["detail"], event["worst"], event["ms"]))
            ended = ended or event["event"] == "end"
        seen.keep()
        if ended or time.monotonic() >= end - 2:
            return
        if not open_case:
            return
        hang = "Timeout (" in errors
        seen.add(shard.op, CaseOutcome(open_case, Verdict.HANG if hang else Verdict.CRASH, f"{why}: {errors[-300:]}"))


def work(asked: argparse.Namespace) -> tuple[list[OpRun], int]:
    """Run everything; return the runs and how many cases were not begun."""
    started, begin = dt.datetime.now(dt.UTC), time.monotonic()
    end = begin + asked.seconds
    ops = [one for one in asked.ops.split(",") if one] or [op.name for op in registry.ops()]
    sizes = tuple(asked.sizes.split(","))
    seen, gate = Seen(asked.log), BoundedSemaphore(asked.large_jobs)
    if asked.log and asked.log.exists():
        _resume(asked.log, seen)
    env = {"PYTHONPATH": os.pathsep.join([str(Path.cwd() / "src"), *(entry for entry in sys.path if entry)])}
    env |= {"OMP_NUM_THREADS": "2", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    if asked.device == "cpu":
        env["TRITON_INTERPRET"] = "1"
    todo = shards(ops, sizes, asked.small_shard, asked.large_shard)
    large = [shard for shard in todo if shard.size == "large"]
    others = [shard for shard in todo if shard.size != "large"]

    def one(shard: Shard) -> None:
        _run_shard(shard, asked.device, end, asked.case_limit, seen, env)

    def guarded(shard: Shard) -> None:
        with gate:
            one(shard)

    with ThreadPoolExecutor(asked.large_jobs) as few, ThreadPoolExecutor(max(1, asked.jobs - asked.large_jobs)) as many:
        waits = [few.submit(guarded, shard) for shard in large]
        waits += [many.submit(one, shard) for shard in others]
        for wait in waits:
            wait.result()
    # What ran out of memory beside others runs again, alone.
    for op, outcomes in seen.outcomes.items():
        again = tuple(name for name, found in outcomes.items() if found.verdict is Verdict.OOM)
        if again and end - time.monotonic() > 5:
            for name in again:
                del outcomes[name]
            one(Shard(op, "large", again))
    runs, missed = [], 0
    for op in ops:
        outcomes = seen.outcomes.get(op, {})
        wanted = {name for shard in todo if shard.op == op for name in shard.cases}
        for name in sorted(wanted - set(outcomes)):
            missed += 1
            seen.add(op, CaseOutcome(name, Verdict.INFRA, "not begun: the time was up"))
        found = {name: outcome for name, outcome in seen.outcomes.get(op, {}).items() if name in wanted}
        spent = sum(outcome.time_ms for outcome in found.values())
        runs.append(_summed(op, found, seen.about, sizes, started, spent))
    seen.keep()
    return runs, missed


def _log(path: Path, seen: Seen) -> None:
    def lines() -> Iterator[str]:
        yield json.dumps({"about": seen.about})
        for op, outcomes in sorted(seen.outcomes.items()):
            for one in outcomes.values():
                value = {"op": op, "case": one.case, "verdict": one.verdict.value, "ms": round(one.time_ms, 1)}
                yield json.dumps({**value, "worst": one.worst, "detail": one.detail[:300]})

    part = path.with_name(f"{path.name}.part")
    part.write_text("\n".join(lines()) + "\n", encoding="utf-8")
    part.replace(path)


def _resume(path: Path, seen: Seen) -> None:
    """Take over what passed in an earlier run on the same machine."""
    for text in path.read_text(encoding="utf-8").splitlines():
        value = json.loads(text)
        if "about" in value:
            seen.about = value["about"]
        elif value["verdict"] == Verdict.PASS.value:
            seen.add(value["op"], CaseOutcome(value["case"], Verdict.PASS, "", value["worst"], value["ms"]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns 1 where something did not pass."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.kernels.suites", description=__doc__)
    made.add_argument("--ops", default="")
    made.add_argument("--sizes", default="tiny,small,large")
    made.add_argument("--device", default="cuda")
    made.add_argument("--jobs", type=int, default=18)
    made.add_argument("--large-jobs", type=int, default=6)
    made.add_argument("--small-shard", type=int, default=50, help="cases of a child")
    made.add_argument("--large-shard", type=int, default=25, help="cases of a child")
    made.add_argument("--seconds", type=float, default=230.0)
    made.add_argument("--case-limit", type=float, default=90.0)
    made.add_argument("--record", type=Path, required=True)
    made.add_argument("--log", type=Path, default=None, help="every outcome; what passed there is not run again")
    asked = made.parse_args(arguments)
    from rocmend.cli.commands.kernels_check import _write

    runs, missed = work(asked)
    _write(asked.record, rungs.from_evidence(evidence_of(one, "suites") for one in runs))
    for one in runs:
        print(f"{one.op}: {one.passed}/{one.count} {one.verdict.value} worst {one.worst:.2f} {one.time_ms / 1e3:.0f} s")
        for bad in one.not_passed[:6]:
            print(f"    {bad.case}: {bad.verdict.value} {bad.detail[:200]}")
    print(
        f"{sum(one.passed for one in runs)} of {sum(one.count for one in runs)} passed, {missed} not begun", flush=True
    )
    return 0 if all(one.passed == one.count for one in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
