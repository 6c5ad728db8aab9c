"""``python -m benchmarks.kernels``: measure kernels beside their peers and write one JSON file."""

from __future__ import annotations

import argparse
import fnmatch
import json
import logging
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from benchmarks.kernels import bench as benching
from benchmarks.kernels.ceilings import measured
from benchmarks.kernels.run import Options, machine, measure


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    made.add_argument("--topics", default="", help="comma-separated; all by default")
    made.add_argument("--ops", default="", help="comma-separated names or globs of OP or OP/BENCH")
    made.add_argument(
        "--peer", action="append", default=[], help="torch, compile, mlx, flash, or a peer's name; repeatable"
    )
    made.add_argument("--mlx-site", default="", help="folder that has mlx installed, for a child process")
    made.add_argument("--budget", type=float, default=1.0, metavar="SECONDS", help="for each timing")
    made.add_argument("--time-limit", type=float, default=0.0, metavar="SECONDS", help="start nothing after this")
    made.add_argument("--device", default="cuda")
    made.add_argument("--no-ceilings", action="store_true", help="measure no ceilings: no fractions either")
    made.add_argument("--out", type=Path, default=None, help="where the JSON goes")
    made.add_argument("--list", action="store_true", help="list what would be measured")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns 1 where a gate was red."""
    logging.basicConfig(level=logging.WARNING)
    asked = parser().parse_args(arguments)
    patterns = [one for one in asked.ops.split(",") if one]
    chosen: list[tuple[str, benching.Bench]] = []
    for topic in [one for one in asked.topics.split(",") if one] or benching.topics():
        for bench in benching.benches(topic):
            full = f"{bench.op}/{bench.name}"
            if not patterns or any(fnmatch.fnmatch(full, one) or fnmatch.fnmatch(bench.op, one) for one in patterns):
                chosen.append((topic, bench))
    if asked.list:
        for topic, bench in chosen:
            print(f"{topic}: {bench.op}/{bench.name}")
        return 0
    device = torch.device(asked.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("There is no GPU that torch can use: nothing was measured.", file=sys.stderr)
        return 2
    options = Options(device, tuple(asked.peer), asked.mlx_site, asked.budget)
    result: dict[str, Any] = machine(device)
    result["ceilings"] = {} if asked.no_ceilings or device.type != "cuda" else measured(device)
    print(json.dumps({name: round(value, 1) for name, value in result["ceilings"].items()}), flush=True)
    result["results"], result["not_measured"] = [], []
    start = time.monotonic()
    for topic, bench in chosen:
        if asked.time_limit and time.monotonic() - start > asked.time_limit:
            result["not_measured"].append(f"{bench.op}/{bench.name}")
            continue
        row = {"topic": topic, **measure(bench, options, result["ceilings"])}
        result["results"].append(row)
        print(line(row), flush=True)
        if asked.out:
            asked.out.parent.mkdir(parents=True, exist_ok=True)
            asked.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        if device.type == "cuda":
            torch.cuda.empty_cache()
    return 1 if any(not row["gate"]["ok"] for row in result["results"]) else 0


def line(row: dict[str, Any]) -> str:
    """Return one line about a bench."""
    head = f"{row['op']}/{row['name']}:"
    if not row["gate"]["ok"]:
        return f"{head} WRONG, not timed: {row['gate']['detail']}"
    return " | ".join(
        [f"{head} {_cell(row['ours'])}", *(f"{name} {_cell(cell)}" for name, cell in row["peers"].items())]
    )


def _cell(found: dict[str, Any]) -> str:
    if "error" in found:
        return str(found["error"])[:80]
    rate = f"{found['tflops']:.1f} TFLOPS" if "tflops" in found else f"{found['gb_s']:.0f} GB/s"
    part = f" {found['of_floor']:.0%}" if "of_floor" in found else ""
    call = f" call {found['call_us']:.1f} µs" if "call_us" in found else ""
    return f"{found['us']:.1f} µs ±{found['spread']:.0%} {rate}{part}{call}"


if __name__ == "__main__":
    sys.exit(main())
