"""Measure each topic in a child process: one that crashes, hangs or spoils its GPU context takes nothing along."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kernels import bench as benching

log = logging.getLogger(__name__)
MOST_CHILDREN = 5
"""Children that a topic may use up: each bench that crashes or hangs costs one."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Plan:
    """How children are run.

    Args:
        options: The options of the command line that every child gets.
        topic_s: Seconds for a topic.
        bench_s: Seconds for a bench.
        end: When all must be over, by the monotonic clock.
        env: More variables for the children.
    """

    options: tuple[str, ...]
    topic_s: float
    bench_s: float
    end: float
    env: Mapping[str, str]

    def left(self) -> float:
        """Return the seconds that are left."""
        return self.end - time.monotonic()


def topic(name: str, rank: int, plan: Plan) -> tuple[list[Row], list[str]]:
    """Run the benches of a topic and rank; return their rows, and what was not begun."""
    rows: list[Row] = []
    wanted = [f"{bench.op}/{bench.name}" for bench in benching.benches(name, tiny="--tiny" in plan.options)
              if not rank or bench.rank == rank]  # fmt: skip
    limit = min(plan.topic_s, plan.left())
    end = time.monotonic() + limit
    for _ in range(MOST_CHILDREN):
        left = end - time.monotonic()
        done = {f"{row['op']}/{row['name']}" for row in rows}
        if left < 1 or not [one for one in wanted if one not in done]:
            break
        new, open_one, why = _child(name, rank, plan, left, sorted(done))
        rows += new
        if open_one:
            op, _, bench = open_one.partition("/")
            rows.append({"topic": name, **_failed(op, bench, why)})
        elif why:
            log.warning("%s: %s", name, why)
            if not new:
                rows.append({"topic": name, **_failed(name, "start", why)})
                break
        else:
            break
    done = {f"{row['op']}/{row['name']}" for row in rows}
    return rows, [one for one in wanted if one not in done]


def _failed(op: str, name: str, why: str) -> Row:
    return {"op": op, "name": name, "gate": {"ok": False, "worst": None, "detail": why}, "rank": 1, "goals": []}


def _child(name: str, rank: int, plan: Plan, left: float, done: Sequence[str]) -> tuple[list[Row], str, str]:
    """Return the rows of a child, the bench that was open when it ended, and why it ended early."""
    with tempfile.TemporaryDirectory() as folder:
        skip = Path(folder) / "done.json"
        skip.write_text(json.dumps(list(done)), encoding="utf-8")
        command = [
            sys.executable, "-m", "benchmarks.kernels", "--child", "--topics", name, "--rank", str(rank),
            "--skip", str(skip), "--bench-limit", str(plan.bench_s), "--time-limit", str(left * 0.95), *plan.options,
        ]  # fmt: skip
        text, errors, why = run(command, left, plan.env)
    rows, open_one, ended = [], "", False
    for event in events(text):
        if "begin" in event:
            open_one = event["begin"]
        elif "row" in event:
            rows.append(event["row"])
            open_one = ""
        ended = ended or "end" in event
    tail = errors.strip()[-300:]
    return rows, open_one, "" if ended else f"{why or 'the process ended'}: {tail}"


def run(command: Sequence[str], limit_s: float, env: Mapping[str, str]) -> tuple[str, str, str]:
    """Run a command with a time limit; return what it printed, in both streams, and what went wrong."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env={**os.environ, **env}, start_new_session=True)
        why = ""
        try:
            code = process.wait(limit_s)
            why = f"exit {code}" if code else ""
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            why = f"no end within {limit_s:.0f} s"
        out.seek(0)
        err.seek(0)
        return out.read(), err.read(), why


def events(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects among lines."""
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except ValueError:
                continue  # cut where it was ended


def gates(names: Sequence[str], rank: int, jobs: int, plan: Plan) -> tuple[list[Row], list[str]]:
    """Gate topics side by side, and compile what they and their peers need."""
    rows: list[Row] = []
    missed: list[str] = []
    with ThreadPoolExecutor(jobs) as pool:
        for found, left in pool.map(lambda name: topic(name, rank, plan), names):
            rows += found
            missed += left
    return rows, missed


def mlx(rows: Sequence[Row], site: str, plan: Plan, limit_s: float) -> dict[str, dict[str, Any]]:
    """Time the twins of rows in MLX; return what its children said by ``OP/NAME``."""
    return mlx_told(requests(rows), site, plan, limit_s)


def requests(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return what MLX's child is asked of the rows that have a twin."""
    return [
        {
            "key": f"{row['op']}/{row['name']}",
            "target": row["twin"][0],
            "arguments": row["twin"][1],
            "sets": row["sets"],
        }
        for row in rows
        if row["gate"]["ok"] and "twin" in row
    ]


def mlx_told(
    asked: Sequence[Mapping[str, Any]], site: str, plan: Plan, limit_s: float, options: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """Send requests to MLX's child, and to another where one ends early; return what they said by key.

    Args:
        asked: See ``mlx_child``.
        site: Folder that has MLX.
        plan: Its end and its environment are used.
        limit_s: Seconds for all.
        options: Of the child.
    """
    waiting = list(asked)
    found: dict[str, dict[str, Any]] = {}
    paths = os.pathsep.join([site, *(entry for entry in sys.path if entry), str(Path.cwd())])
    end = time.monotonic() + min(limit_s, plan.left())
    for _ in range(MOST_CHILDREN):
        left = end - time.monotonic()
        if not waiting or left < 1:
            break
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(waiting, file)
            file.flush()
            command = (sys.executable, "-m", "benchmarks.kernels.mlx_child", file.name, *options)
            text, errors, why = run(command, left, {**plan.env, "PYTHONPATH": paths})
        open_one, told = "", 0
        for event in events(text):
            if "begin" in event:
                open_one = event["begin"]
            elif "key" in event:
                found[event["key"]] = event["found"]
                open_one, told = "", told + 1
        if open_one:
            found[open_one] = {"error": f"{why or 'the process ended'}: {errors.strip()[-300:]}"}
        elif not told:
            found |= {one["key"]: {"error": f"{why}: {errors.strip()[-300:]}"} for one in waiting}
        waiting = [one for one in waiting if one["key"] not in found]
    return found
