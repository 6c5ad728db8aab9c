"""Run MLX's or mlx-lm's own tests, from a checkout of theirs, with rocmend's ``mlx.core``.

    python benchmarks/mlx/suite.py CHECKOUT_OF_MLX                      # all of python/tests, on the CPU
    python benchmarks/mlx/suite.py CHECKOUT_OF_MLX --files test_ops.py --device gpu
    python benchmarks/mlx/suite.py CHECKOUT_OF_MLX_LM --json result.json  # tests/test_models.py
    python benchmarks/mlx/suite.py CHECKOUT_OF_MLX --oracle PYTHON      # the same table for another Python's mlx

Each file runs in a process of its own. Where that crashes, or a test takes too long, the test is counted as such and
the rest of the file goes on in a fresh process. Exit code 1: something failed that ``rocmend.mlx`` has no reason for.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rocmend.core.supervise import Ending, run_command
from rocmend.mlx.programs.left_out import known_tests

HERE = Path(__file__).resolve().parent
OUTCOMES = ("passed", "failed", "skipped", "crashed", "timed out")
RESTARTS = 30  # a file that crashes more often is given up


@dataclass
class FileResult:
    """What came out of one file: the outcome of each test, and why those that did not pass did not."""

    name: str
    outcomes: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    time_s: float = 0.0

    def count(self, outcome: str) -> int:
        """Return how many tests ended so."""
        return sum(one == outcome for one in self.outcomes.values())


def tests_of(checkout: Path) -> tuple[Path, str]:
    """Return the folder of a checkout's tests and the files that are run by default."""
    for folder, pattern in ((checkout / "python" / "tests", "test_*.py"), (checkout / "tests", "test_models.py")):
        if any(folder.glob(pattern)):
            return folder, pattern
    raise SystemExit(f"{checkout} is no checkout of mlx (python/tests) or mlx-lm (tests/test_models.py).")


def run_file(path: Path, options: argparse.Namespace) -> FileResult:
    """Run one file's tests, in as many processes as it takes."""
    result = FileResult(path.name)
    with tempfile.TemporaryDirectory() as scratch:
        for attempt in range(RESTARTS):
            lines = Path(scratch) / f"lines-{attempt}"
            skip = Path(scratch) / "done"
            skip.write_text("\n".join(f"{path.name}::{test}" for test in result.outcomes), encoding="utf-8")
            env = os.environ | {
                "ROCMEND_LINES": str(lines),
                "ROCMEND_SKIP_IDS": str(skip),
                "ROCMEND_TEST_LIMIT_S": str(options.test_limit),
                "DEVICE": options.device,
                # arrays are small, and threads that wait for each other on busy cores take most of the time
                "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
                "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
                "PYTHONDONTWRITEBYTECODE": "1",
                "TMPDIR": scratch,
            }
            ran = run_command(_command(path, options), time_limit_s=options.file_limit, env=env)
            result.time_s += ran.time_ms / 1000
            running = _read(lines, result)
            over = ran.ending is Ending.EXITED and ran.exit_code in (0, 1, 5)
            if running is None:
                if not over and (not lines.exists() or ran.exit_code not in (0, 1, 2, 5)):
                    result.outcomes[f"process {attempt}"] = "crashed"
                    result.reasons[f"process {attempt}"] = _last(ran.stderr or ran.stdout)
                break
            slow = ran.ending is Ending.TIMEOUT or "Timeout (" in ran.stderr
            result.outcomes[running] = "timed out" if slow else "crashed"
            result.reasons[running] = "took too long" if slow else f"signal {ran.signal}: {_last(ran.stderr)}"
            if ran.ending is Ending.TIMEOUT:
                break
    return result


def _command(path: Path, options: argparse.Namespace) -> list[str]:
    start = [options.oracle] if options.oracle else [sys.executable, "-m", "rocmend.mlx", "--device", options.device]
    quiet = ["-q", "-p", "lines", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=short", "-W", "ignore"]
    chosen = ["-k", options.k] if options.k else []
    return [*start, "-m", "pytest", "-c", os.devnull, f"--rootdir={path.parent}", *quiet, *chosen, str(path)]


def _read(lines: Path, result: FileResult) -> str | None:
    """Take up what a process told; return the test that it was running at its end, None if it ended in order."""
    running: str | None = None
    if not lines.exists():
        return None
    for line in lines.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "collected":
            continue
        test = event["id"].partition("::")[2] or "import"
        running = test if event["event"] == "start" else None
        if running is None:
            result.outcomes[test] = event["outcome"]
            if event["why"]:
                result.reasons[test] = event["why"]
    return running


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fault = [line for line in lines if line.startswith("Fatal Python error")]  # a traceback follows it
    return (fault or lines)[-1][:300] if lines else "no output"


def unexplained(results: list[FileResult], device: str) -> list[str]:
    """Return the tests that neither passed nor were skipped and have no reason in the tables of ``rocmend.mlx``."""
    known = known_tests(device)
    return [
        f"{result.name}::{test}"
        for result in results
        for test, outcome in result.outcomes.items()
        if outcome not in ("passed", "skipped") and f"{result.name}::{test}" not in known
    ]


def table(results: list[FileResult], device: str) -> str:
    """Return the table of counts, and a line for each test that did not pass, with the reason if there is one."""
    known = known_tests(device)
    rows = [f"{'file':28}" + "".join(f"{outcome:>11}" for outcome in OUTCOMES) + f"{'s':>8}"]
    for result in results:
        counts = "".join(f"{result.count(outcome):11}" for outcome in OUTCOMES)
        rows.append(f"{result.name:28}{counts}{result.time_s:8.1f}")
    total = collections.Counter(outcome for result in results for outcome in result.outcomes.values())
    seconds = sum(result.time_s for result in results)
    rows.append(f"{'total':28}" + "".join(f"{total[outcome]:11}" for outcome in OUTCOMES) + f"{seconds:8.1f}")
    for result in results:
        for test, outcome in result.outcomes.items():
            if outcome not in ("passed", "skipped"):
                why = known.get(f"{result.name}::{test}")
                rows.append(f"{outcome}: {result.name}::{test}: {result.reasons.get(test, '')}")
                rows.append(f"    known: {why}" if why else "    no reason is known")
    return "\n".join(rows)


def main() -> int:
    """Run the files and print the table."""
    parser = argparse.ArgumentParser(description="Run MLX's own tests with rocmend's mlx.core.")
    parser.add_argument("checkout", type=Path, help="a checkout of ml-explore/mlx or ml-explore/mlx-lm")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--files", nargs="+", help="names of files; default: all of mlx's, test_models.py of mlx-lm's")
    parser.add_argument("-k", help="pytest's expression for the tests to run")
    parser.add_argument("--jobs", type=int, default=1, help="files at a time")
    parser.add_argument("--test-limit", type=float, default=300, help="seconds for a test")
    parser.add_argument("--file-limit", type=float, default=3600, help="seconds for a file")
    parser.add_argument("--oracle", help="a Python whose own mlx is to be run instead of rocmend's")
    parser.add_argument("--json", type=Path, help="write the results there too")
    options = parser.parse_args()
    folder, pattern = tests_of(options.checkout.resolve())
    paths = [folder / name for name in options.files] if options.files else sorted(folder.glob(pattern))
    if missing := [path.name for path in paths if not path.is_file()]:
        parser.error(f"there is no {', '.join(missing)} in {folder}")
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda path: run_file(path, options), paths):
            results.append(result)
            counts = " ".join(f"{outcome} {result.count(outcome)}" for outcome in OUTCOMES if result.count(outcome))
            print(f"{result.name}: {counts}", file=sys.stderr, flush=True)
    print(table(results, options.device))
    if options.json:
        data = {"device": options.device, "oracle": options.oracle, "files": [asdict(result) for result in results]}
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 1 if unexplained(results, options.device) else 0


if __name__ == "__main__":
    sys.exit(main())
