"""Measure benches: gate, then time, then peers."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from typing import Any

import torch
from benchmarks.kernels import bench as benching
from benchmarks.kernels.bench import Bench
from benchmarks.kernels.ceilings import floor_us

from rocmend.core.errors import RocmendError
from rocmend.core.supervise import run_command
from rocmend.kernels import executor
from rocmend.kernels.suite import Call
from rocmend.kernels.timing import Timing, call_us, set_count, timed

SCHEMA = 1
_MLX_LIMIT_S = 120.0


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked for.

    Args:
        device: Where it runs.
        peers: Peers wanted, by name or its beginning; ``mlx`` among them; empty for all but MLX.
        mlx_site: Folder that has MLX, for the child; empty for none.
        budget_s: Seconds for each timing.
    """

    device: torch.device
    peers: tuple[str, ...] = ()
    mlx_site: str = ""
    budget_s: float = 1.0

    def wants(self, peer: str) -> bool:
        """Return whether a peer is wanted."""
        if peer == "mlx":
            return bool(self.mlx_site) and (not self.peers or "mlx" in self.peers)
        short = {"compile": "torch.compile", "flash": "sdpa-flash"}
        return not self.peers or any(
            peer.startswith(short.get(one, one)) for one in self.peers if not (one == "torch" and "compile" in peer)
        )


def machine(device: torch.device) -> dict[str, Any]:
    """Return what the figures hold for."""
    versions = {"python": platform.python_version(), "torch": torch.__version__}
    for name in ("triton", "rocmend", "mlx"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "cpu"
    return {
        "schema": SCHEMA,
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "device": name,
        "target": executor.target_for(device).name,
        "versions": {**versions, "hip": torch.version.hip or "", "cuda": torch.version.cuda or ""},
    }


def measure(bench: Bench, options: Options, ceilings: dict[str, float]) -> dict[str, Any]:
    """Gate and time one bench and its peers; a bench whose output is wrong gets no time."""
    row: dict[str, Any] = {"op": bench.op, "name": bench.name, "dtype": bench.dtype}
    row |= {"bytes": bench.bytes, "flops": bench.flops}
    device = options.device
    count = set_count(device, bench.bytes)
    calls = [bench.make(benching.maker(device, number)) for number in range(count)]
    row["sets"] = count
    ours = bench.ours()
    try:
        out = ours(*calls[0].args, **calls[0].kwargs)
        wrong, worst = benching.verdict(bench, calls[0], out)
    except (RocmendError, RuntimeError, torch.OutOfMemoryError) as error:
        wrong, worst, out = f"{type(error).__name__}: {error}"[:500], None, None
    row["gate"] = {"ok": wrong is None, "worst": worst, "detail": wrong or ""}
    if wrong is not None:
        return row
    if ceilings:
        row["floor_us"] = floor_us(ceilings, bench.bytes, bench.flops, bench.rate)
    row["ours"] = _figures(timed(_thunks(ours, calls), device, budget_s=options.budget_s), row)
    row["ours"]["call_us"] = call_us(_thunks(ours, calls[:1])[0], device)
    row["peers"] = dict(_peers(bench, calls, out, options, row))
    return row


def _thunks(function: Callable[..., Any], calls: Sequence[Call]) -> list[Callable[[], Any]]:
    return [lambda call=call: function(*call.args, **call.kwargs) for call in calls]  # type: ignore[misc]


def _figures(timing: Timing, row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {**timing._asdict(), "spread": timing.spread}
    found["gb_s"] = row["bytes"] / timing.us / 1e3
    if row["flops"]:
        found["tflops"] = row["flops"] / timing.us / 1e6
    if "floor_us" in row:
        found["of_floor"] = row["floor_us"] / timing.us
    return found


def _peers(
    bench: Bench, calls: Sequence[Call], out: Any, options: Options, row: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, function in bench.peers.items():
        if not options.wants(name):
            continue
        try:
            differs = benching.distance(out, function(*calls[0].args, **calls[0].kwargs))
            timing = timed(_thunks(function, calls), options.device, budget_s=options.budget_s)
            found = {**_figures(timing, row), "differs": differs}
            found["call_us"] = call_us(_thunks(function, calls[:1])[0], options.device)
            yield name, found
        except (RuntimeError, TypeError, ValueError, NotImplementedError) as error:  # a peer that cannot do it
            yield name, {"error": f"{type(error).__name__}: {error}"[:300]}
    if bench.mlx is not None and options.wants("mlx"):
        yield "mlx", _mlx(bench.mlx, options.mlx_site, row)


def _mlx(twin: tuple[str, Any], site: str, row: dict[str, Any]) -> dict[str, Any]:
    request = json.dumps({"target": twin[0], "arguments": dict(twin[1]), "sets": row["sets"]})
    paths = os.pathsep.join([site, *(entry for entry in sys.path if entry), os.getcwd()])  # noqa: PTH109  a child's path
    env = {**os.environ, "PYTHONPATH": paths}
    torch.cuda.empty_cache()  # two processes share the card's memory
    done = run_command(
        (sys.executable, "-m", "benchmarks.kernels.mlx_child", request), time_limit_s=_MLX_LIMIT_S, env=env
    )
    try:
        found = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {"error": f"{done.ending.value}: {done.stderr.strip()[-300:]}"}
    timing = Timing(found["us"], found["low_us"], found["high_us"], found["method"], found["samples"])
    return {**_figures(timing, row), "version": found["version"], "on": found["device"]}
