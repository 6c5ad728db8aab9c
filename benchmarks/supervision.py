"""What supervision costs, and whether it tells faults apart.

    python benchmarks/supervision.py overhead            # 10,000 lines a second for 10 s: under 3 % of a CPU?
    python benchmarks/supervision.py queue [--count N]   # short trials, durable: memory and time
    python benchmarks/supervision.py mixed [--count N]   # runs with known faults in random order: confusion matrix
    python benchmarks/supervision.py llama [--count N]   # the same with a real llama-server

Each exits with 1 where its bar is missed or a verdict is wrong.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script, this folder is what Python knows

from benchmarks.faults import FAULTS, Fault

from rocmend.runner.events import Event, EventKind
from rocmend.runner.queue import run_queue
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Command, Limits

OVERHEAD_BAR = 0.03
QUEUE_GROWTH_BAR_BYTES = 32 << 20

_TALKER = """
import os, time
line = b"0.00.%03d.000 D load: an ordinary line of a talkative program, number %08d, tensor blk.%d.attn_q.weight\\n"
begin = time.monotonic()
for tick in range({seconds} * 1000):
    for i in range(10):
        os.write(2, line % (tick % 1000, tick * 10 + i, i))
    pause = begin + (tick + 1) / 1000 - time.monotonic()
    if pause > 0:
        time.sleep(pause)
"""


def cpu_s() -> float:
    """Processor seconds of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def rss_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def overhead(seconds: int) -> int:
    """Measure the supervisor's processor time while a child prints 10,000 lines a second."""
    worst = 0.0
    spec = AttemptSpec(
        "talk", Command((sys.executable, "-c", _TALKER.format(seconds=seconds))), phases="llama.cpp", limits=Limits()
    )
    seen = 0

    def count(event: Event) -> None:
        nonlocal seen
        seen += event.kind is EventKind.OUTPUT

    with tempfile.TemporaryDirectory() as folder:
        for title, listener in (("no listener", None), ("a listener to each line", count)):
            before = cpu_s()
            result = run_attempt(spec, on_event=listener, log=Path(folder) / "talk.log")
            share = (cpu_s() - before) / (result.time_ms / 1000)
            rate = result.output.lines / (result.time_ms / 1000)
            print(f"{title:24} {rate:8.0f} lines/s  {100 * share:.2f} % of a CPU  ({result.verdict})")
            if result.output.lines != seconds * 10_000 or (listener and seen != seconds * 10_000):
                print(f"lines lost: {result.output.lines} counted, {seen} heard")
                return 1
            worst = max(worst, share)
    return 0 if worst < OVERHEAD_BAR else 1


def queue(count: int, jobs: int) -> int:
    """Run short trials in a durable queue, look at memory, and resume."""

    def attempts() -> Iterator[tuple[str, AttemptSpec]]:
        for index in range(count):
            yield f"trial-{index}", AttemptSpec(f"trial {index}", Command(("echo", f"trial {index}")))

    with tempfile.TemporaryDirectory() as folder:
        sizes: list[int] = []

        def look(_: AttemptResult) -> None:
            sizes.append(rss_bytes())

        begin = time.monotonic()
        report = run_queue(attempts(), Path(folder), jobs=jobs, on_result=look)
        took = time.monotonic() - begin
        begin = time.monotonic()
        again = run_queue(attempts(), Path(folder), jobs=jobs)
        resume = time.monotonic() - begin
        descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir())
    growth = sizes[-1] - sizes[min(len(sizes) - 1, count // 10)]
    print(f"{count} trials, {jobs} at a time: {took:.1f} s, {1000 * took / count:.0f} ms each")
    print(f"memory {sizes[-1] / 2**20:.1f} MiB, grown by {growth / 2**20:.1f} MiB since a tenth of them")
    print(f"resumed {again.resumed} in {resume:.2f} s, ran {again.ran}; {descriptors} descriptors open")
    good = report.verdicts == {"pass": count} and again.resumed == count and again.ran == 0
    return 0 if good and growth < QUEUE_GROWTH_BAR_BYTES else 1


def label(verdict: str, silence: str | None) -> str:
    """Return a verdict with what it did while silent."""
    return f"{verdict} ({silence})" if silence else verdict


def leftovers(marker: str) -> list[str]:
    """Return processes that carry a marker in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if marker.encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def mixed(faults: Sequence[Fault], count: int, seed: int, jobs: int) -> int:
    """Run faults in random order, print the confusion matrix, and name every wrong verdict."""
    import msgspec

    chance = random.Random(seed)  # noqa: S311  reproducible, not secret
    chosen = [faults[index % len(faults)] for index in range(count)]
    chance.shuffle(chosen)
    truth: dict[str, Fault] = {}
    marker = f"ROCMEND_BENCHMARK=faults-{os.getpid()}"
    attempts = []
    for index, fault in enumerate(chosen):
        spec = fault.make(chance)
        name, value = marker.split("=")
        truth[f"{index:03d}"] = fault
        attempts.append((f"{index:03d}", msgspec.structs.replace(spec, env={**spec.env, name: value})))
    matrix: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    wrong: list[str] = []

    def judge(result: AttemptResult) -> None:
        fault = truth[result.attempt_id]
        want = label(fault.verdict.value, fault.silence.value if fault.silence else None)
        got = label(result.verdict.value, result.silence.value if result.silence else None)
        matrix[want][got] += 1
        if want != got:
            wrong.append(f"{fault.name}: expected {want}, got {got}: {result.reason} [{result.samples}]")

    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run_queue(attempts, Path(folder), jobs=jobs, on_result=judge)
    took = time.monotonic() - begin
    print_matrix(matrix)
    left = leftovers(marker)
    print(f"\n{count} runs of {len(faults)} kinds, seed {seed}, in {took:.0f} s:")
    print(f"{len(wrong)} wrong verdicts, {len(left)} processes left behind")
    for line in (*wrong, *(f"left behind: {line}" for line in left)):
        print(line)
    return 1 if wrong or left or sum(sum(row.values()) for row in matrix.values()) != count else 0


def print_matrix(matrix: dict[str, collections.Counter[str]]) -> None:
    """Print truth by verdict as a Markdown table."""
    columns = sorted({name for row in matrix.values() for name in row} | set(matrix))
    print("| truth \\ verdict | " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * len(columns))
    for want in sorted(matrix):
        print(f"| {want} | " + " | ".join(str(matrix[want][name] or "·") for name in columns) + " |")


def main() -> int:
    """Run the benchmark that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("overhead", "queue", "mixed", "llama"))
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.what == "overhead":
        return overhead(options.seconds)
    if options.what == "queue":
        return queue(options.count or 1000, options.jobs)
    if options.what == "llama":
        from benchmarks.llama_faults import llama_faults

        with llama_faults() as faults:
            return mixed(faults, options.count or 60, options.seed, options.jobs)
    return mixed(FAULTS, options.count or 200, options.seed, options.jobs)


if __name__ == "__main__":
    sys.exit(main())
