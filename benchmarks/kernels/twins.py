"""``python -m benchmarks.kernels.twins``: time MLX's twins of benches by themselves, and write one JSON file.

First each is called once, in several processes side by side: MLX compiles some of its kernels when they are first
called, each in up to a minute, and keeps them on disk. Then one process a GPU times them, those of the first rank
first. ``benchmarks.kernels.table --mlx FILE`` puts what they came to beside ours.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from benchmarks.kernels import bench as benching
from benchmarks.kernels import isolated
from benchmarks.kernels.__main__ import ORDER, chosen, written

from rocmend.kernels.timing import set_count

AT_ONCE = 12
"""Requests that a child is sent: what it was asked behind one that hangs goes to another."""
Found = dict[str, dict[str, Any]]


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.kernels.twins", description=__doc__)
    made.add_argument("--site", required=True, help="folder that has mlx installed")
    made.add_argument("--topics", default="", help="comma-separated; all by default")
    made.add_argument("--ops", default="", help="comma-separated names or globs of OP or OP/BENCH")
    made.add_argument("--rank", type=int, default=0, help="1 or 2 only; 0 for all")
    made.add_argument("--gpus", default="0", help="comma-separated numbers, as CUDA_VISIBLE_DEVICES takes them")
    made.add_argument("--jobs", type=int, default=8, help="processes that call each once; 0 for none")
    made.add_argument("--first-limit", type=float, default=90.0, metavar="SECONDS", help="for the first calls")
    made.add_argument("--limit", type=float, default=120.0, metavar="SECONDS", help="for timing")
    made.add_argument("--each", type=float, default=60.0, metavar="SECONDS", help="for a figure, or a first call")
    made.add_argument("--cache", default="", help="folder of compiled kernels; MLX's own by default")
    made.add_argument("--first-only", action="store_true", help="call each once; time nothing")
    made.add_argument("--out", type=Path, default=None, help="where the JSON goes")
    return made


def requests(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what MLX is asked, by rank and importance."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    names = [one for one in asked.topics.split(",") if one] or [one for one in ORDER if one in benching.topics()]
    found = [
        {
            "key": f"{one.op}/{one.name}", "target": one.mlx[0], "arguments": dict(one.mlx[1]),
            "sets": set_count(device, one.bytes), "rank": one.rank,
        }
        for _, one in chosen(names, asked.ops, rank=asked.rank)
        if one.mlx is not None
    ]  # fmt: skip
    return sorted(found, key=lambda one: int(str(one["rank"])))


def told(found: Mapping[str, Mapping[str, Any]], what: str) -> None:
    """Print a line for each."""
    for key, one in found.items():
        said = f"{one['us']:.1f} us" if "us" in one else str(one.get("error", "called")).replace("\n", " ")[:160]
        sys.stdout.write(f"{what} {key}: {said}, {one.get('seconds', 0)} s\n")
    sys.stdout.flush()


def first_calls(asked: argparse.Namespace, whole: Sequence[Mapping[str, Any]], plan: isolated.Plan) -> None:
    """Call each twin once, several processes side by side: it does not matter where one fails."""
    gpus = asked.gpus.split(",")

    def some(number: int) -> None:
        env = {**plan.env, "CUDA_VISIBLE_DEVICES": gpus[number % len(gpus)]}
        own = isolated.Plan((), 0.0, 0.0, plan.end, env)
        options = ("--once", "--each", str(asked.each))
        told(isolated.mlx_told(whole[number :: asked.jobs], asked.site, own, asked.first_limit, options), "first")

    with ThreadPoolExecutor(asked.jobs) as pool:
        list(pool.map(some, range(asked.jobs)))


def timed(asked: argparse.Namespace, whole: Sequence[Mapping[str, Any]], plan: isolated.Plan) -> Found:
    """Time the twins, one process a GPU, each of which takes the next few when it is done."""
    left, found, lock = list(whole), dict[str, dict[str, Any]](), Lock()
    end = time.monotonic() + asked.limit

    def some(gpu: str) -> None:
        own = isolated.Plan((), 0.0, 0.0, end, {**plan.env, "CUDA_VISIBLE_DEVICES": gpu})
        while end - time.monotonic() > 1:
            with lock:
                now = left[:AT_ONCE]
                del left[:AT_ONCE]
            if not now:
                return
            said = isolated.mlx_told(now, asked.site, own, asked.limit, ("--each", str(asked.each)))
            with lock:
                found.update(said)
                told(said, "timed")
                _keep(asked, found)

    with ThreadPoolExecutor(len(asked.gpus.split(","))) as pool:
        list(pool.map(some, asked.gpus.split(",")))
    return found


def _keep(asked: argparse.Namespace, found: Found) -> None:
    if asked.out is not None:
        written(asked.out, {"schema": 1, "found": found})


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns 1 where nothing was timed that was to be."""
    asked = parser().parse_args(arguments)
    whole = requests(asked)
    env = {"PYTHONPATH": os.pathsep.join(entry for entry in [str(Path.cwd()), *sys.path] if entry)}
    if asked.cache:
        Path(asked.cache).mkdir(parents=True, exist_ok=True)
        env["MLX_PTX_CACHE_DIR"] = asked.cache
    plan = isolated.Plan((), 0.0, 0.0, time.monotonic() + asked.first_limit, env)
    if asked.jobs:
        first_calls(asked, whole, plan)
    found = {} if asked.first_only else timed(asked, whole, plan)
    sys.stdout.write(f"{sum('us' in one for one in found.values())} of {len(whole)} timed\n")
    return 0 if found or asked.first_only or not whole else 1


if __name__ == "__main__":
    sys.exit(main())
