"""``python -m benchmarks.kernels.whole``: the suites, all benches, MLX beside them and calls, in one call.

First the suites of all ops run on all GPUs; beside them every bench is gated and compiled, and MLX called once. Then
MLX is timed alone, then the benches, each GPU some topics, then calls, with the machine to themselves. In the time that
is left the cases run that were not begun. What there is in the folder already is not done again (of MLX all or
nothing): a folder is for one state of the code.

    python -m benchmarks.kernels.whole FOLDER --gpus 0,1 --mlx-site SITE
    python -m benchmarks.kernels.whole FOLDER --gpus 0 --seconds 900 --first-seconds 400
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.kernels import bench as benching
from benchmarks.kernels.__main__ import ORDER, chosen, written
from benchmarks.kernels.whole.shares import filled, lacking, shares
from benchmarks.kernels.whole.steps import Steps, running

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "benchmarks/kernels/results/h200.json"
MARGIN_S = 4.0
"""What a program is given behind the time that it was told."""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks.kernels.whole", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    made.add_argument("folder", type=Path, help="where results go: result.json, page.md, calls.json, suites.jsonl …")
    made.add_argument("--gpus", default="0", help="comma-separated numbers, as CUDA_VISIBLE_DEVICES takes them")
    made.add_argument("--mlx-site", type=Path, default=None, help="folder that has mlx installed")
    made.add_argument("--like", type=Path, default=KEPT, metavar="FILE", help="an earlier result, for its seconds")
    made.add_argument("--suites-like", type=Path, default=None, metavar="FILE", help="the log of earlier suites")
    made.add_argument("--topics", default="", help="comma-separated; all by default")
    made.add_argument("--seconds", type=float, default=430.0, help="for all")
    made.add_argument("--first-seconds", type=float, default=145.0, help="for suites, gates and MLX's first calls")
    made.add_argument("--mlx-seconds", type=float, default=60.0, help="for timing MLX")
    made.add_argument("--calls-seconds", type=float, default=60.0, help="kept for calls")
    made.add_argument("--budget", type=float, default=0.12, metavar="SECONDS", help="for each timing")
    made.add_argument("--jobs", type=int, default=max(2, (os.cpu_count() or 2) * 3 // 4), help="processes of suites")
    made.add_argument("--gib", type=float, default=100.0, help="of each GPU for the suites, while others use it")
    made.add_argument("--tiny", action="store_true", help="tiny sizes on the CPU, in Triton's interpreter")
    return made


class Whole:
    """One run: what it is asked for, and its steps."""

    def __init__(self, asked: argparse.Namespace, steps: Steps) -> None:
        self.asked, self.steps = asked, steps
        self.folder: Path = asked.folder.resolve()
        self.gpus: list[str] = asked.gpus.split(",")
        names = [one for one in asked.topics.split(",") if one] or benching.topics()
        self.topics = sorted(names, key=[*ORDER, *sorted(set(names) - set(ORDER))].index)
        self.parts = shares(self.topics, len(self.gpus), read(asked.like))
        self.lacks = False
        self.small = ("--device", "cpu", "--tiny", "--peer", "torch") if asked.tiny else ()

    def path(self, name: str) -> Path:
        """Return where a result is kept."""
        return self.folder / name

    def first(self) -> None:
        """Run suites; beside them gates, what is compiled, and MLX's first calls."""
        jobs = [lambda: self.suites("suites", self.asked.first_seconds - self.steps.now())]
        if not self.path("gates.json").exists():
            jobs += [
                lambda number=number, rank=rank: self._prepare(number, rank)  # type: ignore[misc]
                for number in range(len(self.parts))
                for rank in (1, 2)
            ]
        if self._mlx_is_lacking():
            jobs.append(lambda: self._twins("mlx-first", self.asked.first_seconds - self.steps.now(), "--first-only"))
        with ThreadPoolExecutor(len(jobs)) as pool:
            for done in [pool.submit(job) for job in jobs]:
                done.result()
        found = [read(self.path(f"gates{number}{rank}.json")) for number in range(len(self.parts)) for rank in (1, 2)]
        gates = {name: gate for some in found if some for name, gate in some.items()}
        if gates and not self.path("gates.json").exists():
            written(self.path("gates.json"), gates)
            wrong = sorted(name for name, gate in gates.items() if not gate["ok"])
            self.steps.tell(f"{len(gates) - len(wrong)} gates passed; not: {', '.join(wrong) or 'none'}")

    def suites(self, name: str, seconds: float) -> None:
        """Run cases of the suites that have not passed yet."""
        command: list[object] = ["--log", self.path("suites.jsonl"), "--record", self.path("runs.json")]
        command += ["--seconds", f"{max(0.0, seconds - MARGIN_S):.0f}", "--jobs", self.asked.jobs, "--case-limit", 80]
        command += ["--like", self.asked.suites_like] if self.asked.suites_like else []
        if self.asked.tiny:
            command += ["--device", "cpu", "--sizes", "tiny", "--ops", "softmax"]
        else:
            command += ["--gpus", self.asked.gpus, "--gib", ",".join([str(self.asked.gib)] * len(self.gpus))]
        self._module(name, ".suites", command, seconds + 3 * MARGIN_S)

    def _prepare(self, number: int, rank: int) -> None:
        seconds = self.asked.first_seconds - self.steps.now()
        command: list[object] = ["--prepare", 7, "--rank", rank, "--topics", ",".join(self.parts[number])]
        command += [
            "--gates",
            self.path(f"gates{number}{rank}.json"),
            "--out",
            self.path(f"prepared{number}{rank}.json"),
        ]
        command += ["--topic-limit", seconds, "--budget-total", seconds - MARGIN_S, "--bench-limit", 90, *self.small]
        self._module(f"prepare{number}{rank}", "", command, seconds + MARGIN_S, self.gpus[number])

    def _mlx_is_lacking(self) -> bool:
        return self.asked.mlx_site is not None and not self.path("mlx.json").exists()

    def mlx(self) -> None:
        """Time MLX, with nothing beside it."""
        if self._mlx_is_lacking():
            self._twins("mlx", self.asked.mlx_seconds, "--jobs", 0, "--out", self.path("mlx.json"))

    def _twins(self, name: str, seconds: float, *more: object) -> None:
        command: list[object] = ["--site", self.asked.mlx_site.resolve(), "--gpus", self.asked.gpus, "--rank", 1]
        command += ["--topics", ",".join(self.topics), "--cache", self.path("mlx-cache")]
        command += ["--limit", seconds, "--first-limit", seconds, *more]
        self._module(name, ".twins", command, seconds + 3 * MARGIN_S)

    def rows(self) -> None:
        """Time all benches, each GPU some topics; what a GPU lacks then, once more."""
        with ThreadPoolExecutor(len(self.parts)) as pool:
            list(pool.map(self._part, range(len(self.parts))))

    def _part(self, number: int) -> None:
        topics = self.parts[number]
        wanted = [f"{one.op}/{one.name}" for _, one in chosen(topics, "", tiny=self.asked.tiny)]
        missing = lacking(self._kept(number), wanted)
        for name in (f"rows{number}", f"rows{number}-more"):
            seconds = self.steps.left() - self.asked.calls_seconds - MARGIN_S
            if not missing or seconds < 2 * MARGIN_S:
                break
            command: list[object] = ["--topics", ",".join(topics), "--gates", self.path("gates.json")]
            command += ["--out", self.path(f"rows{number}.part.json"), "--budget", self.asked.budget]
            command += ["--ops", ",".join(missing)] if len(missing) < len(wanted) else []
            command += ["--budget-total", seconds - MARGIN_S, "--topic-limit", 150]
            command += ["--no-ceilings", *self.small] if self.asked.tiny else []
            self._module(name, "", command, seconds, self.gpus[number])
            missing = lacking(self._kept(number), wanted)
        self.lacks = self.lacks or bool(missing)
        told = ", ".join(missing[:8]) or "none"
        self.steps.tell(f"rows{number}: {len(wanted) - len(missing)} of {len(wanted)}; lacking: {told}")

    def _kept(self, number: int) -> dict[str, Any] | None:
        """Return what a GPU has measured, that of a run which was ended early too."""
        path, part = self.path(f"rows{number}.json"), self.path(f"rows{number}.part.json")
        before, now = read(path), read(part)
        if now is not None:
            before = filled(before, now) if before else now
            written(path, before)
            part.unlink()
        return before

    def calls(self) -> None:
        """Time calls."""
        if not (self.asked.tiny or self.path("calls.json").exists()):
            self._module("calls", ".calls", [self.path("calls.json")], self.asked.calls_seconds, self.gpus[0])

    def join(self) -> int:
        """Put the parts together, and write the page; return 1 where a bench has no time, or was wrong."""
        parts = [one for number in range(len(self.parts)) if (one := self.path(f"rows{number}.json")).exists()]
        if not parts:
            return 1
        command: list[object] = [parts[0], self.path("page.md"), "--joined", self.path("result.json")]
        command += [part for one in parts[1:] for part in ("--beside", one)]
        command += ["--mlx", self.path("mlx.json")] if self.path("mlx.json").exists() else []
        return self._module("page", ".table", command, 60) or int(self.lacks)

    def _module(self, name: str, module: str, options: Sequence[object], seconds: float, gpu: str | None = None) -> int:
        command = [sys.executable, "-m", f"benchmarks.kernels{module}", *options]
        return self.steps.run(name, command, seconds, None if self.asked.tiny else gpu)


def read(path: Path | None) -> dict[str, Any] | None:
    """Return a JSON object, or None where there is none."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path else {}
    except (OSError, ValueError):
        return None
    return found or None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns 1 where a bench has no time, or was wrong."""
    asked = parser().parse_args(arguments)
    asked.folder.mkdir(parents=True, exist_ok=True)
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *(one for one in sys.path if one)]),
    }
    env |= {"TRITON_INTERPRET": "1"} if asked.tiny else {}
    with running(asked.folder / "logs", ROOT, env, asked.seconds) as steps:
        whole = Whole(asked, steps)
        for gpu, topics in zip(whole.gpus, whole.parts, strict=False):
            steps.tell(f"GPU {gpu}: {', '.join(topics)}")
        whole.first()
        whole.mlx()
        whole.rows()
        whole.calls()
        if steps.left() > 5 * MARGIN_S:
            whole.suites("suites-rest", steps.left() - 3 * MARGIN_S)
        steps.end += 60
        return whole.join()


if __name__ == "__main__":
    sys.exit(main())
