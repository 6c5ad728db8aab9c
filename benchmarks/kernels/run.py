"""Measure benches: gate, then time, then peers."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime as dt
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any

import torch
from benchmarks.kernels import bench as benching
from benchmarks.kernels.bench import Bench, Peer
from benchmarks.kernels.ceilings import floor_us
from benchmarks.kernels.pairs import Pair, measured_in_turn
from benchmarks.kernels.ratios import near

from rocmend.core.errors import RocmendError
from rocmend.kernels import allocate, executor, select
from rocmend.kernels.suite import Call
from rocmend.kernels.timing import Timing, call_us, set_count, timed

SCHEMA = 1
MOST_CALL_US = 1000.0
"""Calls are timed on the CPU where the GPU takes no longer: else 140 calls take long and tell nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What a run is asked for.

    Args:
        device: Where it runs.
        peers: Peers wanted, by name or its beginning; ``mlx`` among them; empty for all but MLX.
        mlx_site: Folder that has MLX, for the child; empty for none.
        budget_s: Seconds for each timing.
        gate_only: Gate, and call each peer once, so that all is compiled; time nothing.
        gates: What gates of an earlier run came to, by ``OP/NAME``.
    """

    device: torch.device
    peers: tuple[str, ...] = ()
    mlx_site: str = ""
    budget_s: float = 1.0
    gate_only: bool = False
    gates: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)

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
    row: dict[str, Any] = {"op": bench.op, "name": bench.name, "dtype": bench.dtype, "rank": bench.rank}
    row |= {"bytes": bench.bytes, "flops": bench.flops, "goals": [list(goal) for goal in bench.goals]}
    device = options.device
    count = 1 if options.gate_only else set_count(device, bench.bytes)
    row["sets"] = count
    ours = bench.ours()
    chosen = select.prefer(bench.prefer) if bench.prefer else contextlib.nullcontext()
    out = None
    try:
        with chosen:
            calls = [bench.make(benching.maker(device, number)) for number in range(count)]
            with allocate.poisoned():  # what an earlier kernel left in memory is not to pass for this one's output
                out = ours(*calls[0].args, **calls[0].kwargs)
            row["gate"] = _gate(bench, calls[0], out, options)
            if row["gate"]["ok"] and not options.gate_only:
                if ceilings:
                    row["floor_us"] = floor_us(ceilings, bench.bytes, bench.flops, bench.rate)
                row["ours"] = _figures(timed(_thunks(ours, calls), device, budget_s=options.budget_s), row)
                if row["ours"]["us"] < MOST_CALL_US:
                    row["ours"]["call_us"] = call_us(_thunks(ours, calls[:1])[0], device)
    except (RocmendError, RuntimeError, torch.OutOfMemoryError) as error:
        row["gate"] = {"ok": False, "worst": None, "detail": f"{type(error).__name__}: {error}"[:500]}
    if row["gate"]["ok"]:
        row["peers"] = dict(_peers(bench, calls, out, options, row))
        del out
        _pair_up(bench, calls, options, row)
        if bench.mlx is not None:
            row["twin"] = [bench.mlx[0], dict(bench.mlx[1])]
    return row


def _gate(bench: Bench, call: Call, out: Any, options: Options) -> dict[str, Any]:
    before = options.gates.get(f"{bench.op}/{bench.name}")
    if before is not None and before["ok"]:
        return {**before, "before": True}
    wrong, worst = benching.verdict(bench, call, out)
    return {"ok": wrong is None, "worst": worst, "detail": wrong or ""}


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
    for name, peer in bench.peers.items():
        if options.wants(name):
            yield name, _peer(peer, calls, out, options, row)


def _pair_up(bench: Bench, calls: Sequence[Call], options: Options, row: dict[str, Any]) -> None:
    """Measure ours and a peer in turn where a target lies near; these figures replace those of each alone."""
    if "ours" not in row:
        return
    alone, paired = row["ours"]["us"], False
    for goal, least in bench.goals:
        kind, _, wanted = goal.partition(":")
        for name, cell in row["peers"].items():
            if kind != "of_peer" or not name.startswith(wanted) or "us" not in cell:
                continue
            if not near(least, alone, cell["us"]):
                continue
            try:
                pair = _pair(bench, bench.peers[name], len(calls), options)
            except RuntimeError as error:
                cell["not_paired"] = f"{type(error).__name__}: {error}"[:300]
                continue
            if pair is None:
                cell["not_paired"] = "one of both cannot be captured, or memory does not hold enough of their outputs"
                continue
            cell |= {**_figures(pair.peer, row), "pair": pair.told()}
            if not paired:
                row["ours"] |= _figures(pair.ours, row)
            paired = True


def _pair(bench: Bench, peer: Callable[..., Any] | Peer, sets: int, options: Options) -> Pair | None:
    ours, device = bench.ours(), options.device

    def place() -> tuple[list[Callable[[], Any]], list[Callable[[], Any]]]:
        calls = [bench.make(benching.maker(device, number)) for number in range(sets)]
        function, theirs = _taken(peer, calls)
        return _thunks(ours, calls), _thunks(function, theirs)

    with select.prefer(bench.prefer) if bench.prefer else contextlib.nullcontext():
        return measured_in_turn(place, device, budget_s=options.budget_s)


def _taken(peer: Callable[..., Any] | Peer, calls: Sequence[Call]) -> tuple[Callable[..., Any], Sequence[Call]]:
    """Return a peer's function, and its arguments for our calls."""
    if isinstance(peer, Peer):
        return peer.function, [peer.arguments(call) for call in calls]
    return peer, calls


def _peer(
    peer: Callable[..., Any] | Peer, calls: Sequence[Call], out: Any, options: Options, row: dict[str, Any]
) -> dict[str, Any]:
    same = not isinstance(peer, Peer) or peer.same
    try:
        function, calls = _taken(peer, calls)
        theirs = function(*calls[0].args, **calls[0].kwargs)
        found: dict[str, Any] = {"differs": benching.distance(out, theirs) if same else None}
        if not options.gate_only:
            del theirs
            timing = timed(_thunks(function, calls), options.device, budget_s=options.budget_s)
            found |= _figures(timing, row)
            if timing.us < MOST_CALL_US:
                found["call_us"] = call_us(_thunks(function, calls[:1])[0], options.device)
    except Exception as error:  # noqa: BLE001  whatever a peer or its compiler raises is what it came to
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return found


def with_mlx(row: dict[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what MLX's child said of a row's twin, as a peer's figures."""
    if "error" in found:
        return {"error": str(found["error"])[:300]}
    timing = Timing(found["us"], found["low_us"], found["high_us"], found["method"], found["samples"])
    return {**_figures(timing, row), "version": found["version"], "on": found["device"]}
