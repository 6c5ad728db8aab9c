"""``python -m benchmarks.kernels``: measure kernels beside their peers and write one JSON file."""

from __future__ import annotations

import argparse
import dataclasses
import faulthandler
import fnmatch
import json
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from benchmarks.kernels import bench as benching
from benchmarks.kernels import isolated
from benchmarks.kernels.ceilings import measured
from benchmarks.kernels.run import Options, machine, measure, with_mlx

from rocmend.kernels.timing import set_count

ORDER = ("quantized", "attention_decode", "attention", "moe", "norms", "order", "conv", "linear_attention")
"""Topics by importance: where time runs short, the last are cut."""


def parser() -> argparse.ArgumentParser:
    """Return the command line's parser."""
    made = argparse.ArgumentParser(prog="python -m benchmarks.kernels", description=__doc__)
    made.add_argument("--topics", default="", help="comma-separated; all by default")
    made.add_argument("--ops", default="", help="comma-separated names or globs of OP or OP/BENCH")
    made.add_argument("--rank", type=int, default=0, help="1 or 2 only; 0 for all")
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
    made.add_argument("--gates", type=Path, default=None, metavar="FILE", help="of gates, from --prepare")
    made.add_argument(
        "--prepare", type=int, default=0, metavar="JOBS", help="gate and compile only, so many topics at once"
    )
    made.add_argument("--dry", action="store_true", help="gate only, in tiny sizes, in Triton's interpreter on the CPU")
    made.add_argument("--tiny", action="store_true", help="tiny sizes")
    made.add_argument("--topic-limit", type=float, default=90.0, metavar="SECONDS")
    made.add_argument("--mlx-limit", type=float, default=120.0, metavar="SECONDS", help="for all that MLX is timed on")
    made.add_argument(
        "--mlx-gpu", type=int, default=None, metavar="N", help="another GPU of the kind: MLX is timed there meanwhile"
    )
    made.add_argument("--bench-limit", type=float, default=40.0, metavar="SECONDS")
    made.add_argument("--budget-total", type=float, default=3600.0, metavar="SECONDS", help="for all topics")
    made.add_argument("--in-process", action="store_true", help="no child processes: for a profiler")
    for hidden in ("--child", "--gate-only"):
        made.add_argument(hidden, action="store_true", help=argparse.SUPPRESS)
    for hidden in ("--skip", "--ceilings"):
        made.add_argument(hidden, type=Path, default=None, help=argparse.SUPPRESS)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run; returns 1 where a gate was red."""
    logging.basicConfig(level=logging.WARNING)
    asked = parser().parse_args(arguments)
    if asked.dry:
        asked.device, asked.tiny, asked.no_ceilings, asked.prepare = "cpu", True, True, asked.prepare or 1
        asked.peer = asked.peer or ["torch", "sdpa", "cudnn"]
    names = [one for one in asked.topics.split(",") if one] or sorted(benching.topics(), key=_importance)
    if asked.list:
        for name, bench in chosen(names, asked.ops, rank=asked.rank, tiny=asked.tiny):
            print(f"{name}: {bench.op}/{bench.name}")
        return 0
    device = torch.device(asked.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        print("There is no GPU that torch can use: nothing was measured.", file=sys.stderr)
        return 2
    if asked.child:
        return _child(names, asked, device)
    result: dict[str, Any] = {**machine(device), "ceilings": {}, "results": [], "not_measured": []}
    if not (asked.no_ceilings or asked.prepare or device.type != "cuda"):
        result["ceilings"] = measured(device)
        torch.cuda.empty_cache()
        print(json.dumps({name: round(value, 1) for name, value in result["ceilings"].items()}), flush=True)
    if asked.in_process:
        for row in _rows(names, asked, device, result["ceilings"]):
            _keep(result, [row], asked)
    else:
        _isolated(names, asked, result)
    written(asked.out, result)
    if asked.out:
        Path(f"{asked.out}.ceilings").unlink(missing_ok=True)
    if asked.prepare and asked.gates:
        kept = {f"{row['op']}/{row['name']}": row["gate"] for row in result["results"]}
        written(asked.gates, kept)
    return 1 if any(not row["gate"]["ok"] for row in result["results"]) else 0


def _importance(name: str) -> int:
    return ORDER.index(name) if name in ORDER else len(ORDER)


def chosen(
    names: Sequence[str], ops: str, *, rank: int = 0, tiny: bool = False
) -> Iterator[tuple[str, benching.Bench]]:
    """Yield the benches of topics, with their topic.

    Args:
        names: Of topics.
        ops: Comma-separated names or globs of ``OP`` or ``OP/BENCH``; empty for all.
        rank: 1 or 2 only; 0 for all.
        tiny: In sizes for the interpreter.
    """
    patterns = [one for one in ops.split(",") if one]
    for name in names:
        for bench in benching.benches(name, tiny=tiny):
            full = f"{bench.op}/{bench.name}"
            if rank and bench.rank != rank:
                continue
            if not patterns or any(fnmatch.fnmatch(full, one) or fnmatch.fnmatch(bench.op, one) for one in patterns):
                yield name, bench


def _rows(
    names: Sequence[str], asked: argparse.Namespace, device: torch.device, ceilings: dict[str, float]
) -> Iterator[dict[str, Any]]:
    """Measure in this process."""
    gates = json.loads(asked.gates.read_text(encoding="utf-8")) if asked.gates and asked.gates.exists() else {}
    skip = set(json.loads(asked.skip.read_text(encoding="utf-8"))) if asked.skip else set()
    options = Options(
        device, tuple(asked.peer), asked.mlx_site, asked.budget, gate_only=asked.gate_only or asked.dry, gates=gates
    )
    start = time.monotonic()
    for name, bench in chosen(names, asked.ops, rank=asked.rank, tiny=asked.tiny):
        full = f"{bench.op}/{bench.name}"
        if full in skip or (asked.time_limit and time.monotonic() - start > asked.time_limit):
            continue
        if asked.child:
            print(json.dumps({"begin": full}), flush=True)
            faulthandler.dump_traceback_later(asked.bench_limit, exit=True)
        begun = time.monotonic()
        row = {"topic": name, **measure(bench, options, ceilings)}
        yield {**row, "seconds": round(time.monotonic() - begun, 2)}
        faulthandler.cancel_dump_traceback_later()
        if device.type == "cuda":
            torch.cuda.empty_cache()


def _child(names: Sequence[str], asked: argparse.Namespace, device: torch.device) -> int:
    """Print a row a line; ends early where the GPU's context is spoiled."""
    ceilings = json.loads(asked.ceilings.read_text(encoding="utf-8")) if asked.ceilings else {}
    for row in _rows(names, asked, device, ceilings):
        print(json.dumps({"row": row}), flush=True)
        if _spoiled(row):
            return 3
    print(json.dumps({"end": True}), flush=True)
    return 0


def _spoiled(row: dict[str, Any]) -> bool:
    """Return whether an error was seen after which nothing more can be computed in a process."""
    texts = [row["gate"]["detail"], *(cell.get("error", "") for cell in row.get("peers", {}).values())]
    signs = ("CUDA error", "device-side assert", "illegal memory access", "HIP error")
    return any(sign in text for sign in signs for text in texts)


def _isolated(names: Sequence[str], asked: argparse.Namespace, result: dict[str, Any]) -> None:
    """Measure in a child a topic: the first rank of all, then MLX, then the second rank."""
    options = ["--device", asked.device, "--budget", str(asked.budget)]
    options += ["--ops", asked.ops] if asked.ops else []
    options += [part for one in asked.peer for part in ("--peer", one)]
    options += ["--tiny"] if asked.tiny else []
    options += ["--gate-only"] if asked.prepare else []
    options += ["--gates", str(asked.gates)] if asked.gates and not asked.prepare else []
    env = {"TRITON_INTERPRET": "1"} if asked.dry else {}
    env["PYTHONPATH"] = os.pathsep.join(entry for entry in [str(Path.cwd()), *sys.path] if entry)
    env["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "4")
    scratch = Path(f"{asked.out}.ceilings") if asked.out else None
    if result["ceilings"] and scratch:
        written(scratch, result["ceilings"])
        options += ["--ceilings", str(scratch)]
    plan = isolated.Plan(
        tuple(options), asked.topic_limit, asked.bench_limit, time.monotonic() + asked.budget_total, env
    )
    if asked.prepare:
        for rank in [asked.rank] if asked.rank else (1, 2):
            rows, missed = isolated.gates(names, rank, asked.prepare, plan)
            result["not_measured"] += missed
            _keep(result, rows, asked)
        return
    meanwhile: Future[dict[str, dict[str, Any]]] | None = None
    with ThreadPoolExecutor(1) as pool:
        if asked.mlx_site and asked.mlx_gpu is not None:
            beside = dataclasses.replace(plan, env={**env, "CUDA_VISIBLE_DEVICES": str(asked.mlx_gpu)})
            twins = _twins(names, asked)
            meanwhile = pool.submit(isolated.mlx, twins, asked.mlx_site, beside, asked.mlx_limit)
        for rank in [asked.rank] if asked.rank else (1, 2):
            for name in names:
                rows, missed = isolated.topic(name, rank, plan)
                result["not_measured"] += missed
                _keep(result, rows, asked)
            if rank == 1 and asked.mlx_site and meanwhile is None:
                _with_mlx(result, isolated.mlx(result["results"], asked.mlx_site, plan, asked.mlx_limit), asked)
    if meanwhile is not None:
        _with_mlx(result, meanwhile.result(), asked)


def _twins(names: Sequence[str], asked: argparse.Namespace) -> list[dict[str, Any]]:
    """Return what MLX is timed on, where ours was not yet."""
    device = torch.device(asked.device)
    return [
        {
            "op": one.op, "name": one.name, "twin": [one.mlx[0], dict(one.mlx[1])], "gate": {"ok": True},
            "sets": set_count(device, one.bytes),
        }
        for _, one in chosen(names, asked.ops, rank=asked.rank, tiny=asked.tiny)
        if one.mlx is not None and one.rank == 1
    ]  # fmt: skip


def _with_mlx(result: dict[str, Any], found: dict[str, dict[str, Any]], asked: argparse.Namespace) -> None:
    """Put what MLX was timed at beside ours."""
    for row in result["results"]:
        said = found.get(f"{row['op']}/{row['name']}")
        if said is not None and row["gate"]["ok"]:
            row["peers"]["mlx"] = with_mlx(row, said)
            print(f"{row['op']}/{row['name']}: mlx {_cell(row['peers']['mlx'])}", flush=True)
    written(asked.out, result)


def _keep(result: dict[str, Any], rows: Sequence[dict[str, Any]], asked: argparse.Namespace) -> None:
    result["results"] += rows
    for row in rows:
        print(line(row), flush=True)
    written(asked.out, result)


def written(path: Path | None, value: Any) -> None:
    """Write JSON, whole or not at all."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def line(row: dict[str, Any]) -> str:
    """Return one line about a bench."""
    head = f"{row['op']}/{row['name']}:"
    if not row["gate"]["ok"]:
        return f"{head} WRONG, not timed: {row['gate']['detail']}"
    ours = _cell(row["ours"]) if "ours" in row else f"right, {row.get('seconds', 0)} s"
    return " | ".join([f"{head} {ours}", *(f"{name} {_cell(cell)}" for name, cell in row["peers"].items())])


def _cell(found: dict[str, Any]) -> str:
    if "error" in found:
        return str(found["error"])[:80]
    if "us" not in found:
        return f"differs {found['differs']:.1e}" if found.get("differs") is not None else "ran"
    rate = f"{found['tflops']:.1f} TFLOPS" if "tflops" in found else f"{found['gb_s']:.0f} GB/s"
    part = f" {found['of_floor']:.0%}" if "of_floor" in found else ""
    call = f" call {found['call_us']:.1f} µs" if "call_us" in found else ""
    pair = found.get("pair")
    turn = f" in turn {pair['ratio']:.2%} ({pair['low']:.2%} to {pair['high']:.2%}) of ours" if pair else ""
    return f"{found['us']:.1f} µs ±{found['spread']:.0%} {rate}{part}{call}{turn}"


if __name__ == "__main__":
    sys.exit(main())
