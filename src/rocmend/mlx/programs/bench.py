"""Time a model in a supervised child process, and say what came out: figures, how it was computed, a verdict."""

from __future__ import annotations

import datetime as dt
import json
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.evidence import Evidence, identity_of
from rocmend.core.supervise import CommandResult, Ending, run_command
from rocmend.core.verdict import Verdict

__all__ = ["SHAPES", "BenchRun", "Executed", "Request", "Speed", "bench", "evidence_of", "summed"]

CHILD = Path(__file__).parent / "speed.py"
KIND = "bench"
SHAPES = ("llama-3.1-8b", "qwen3-0.6b", "qwen3-30b-a3b", "tiny")
"""The built-in shapes of ``speed.py``, which cannot be imported without ``mlx.core``."""


class Request(msgspec.Struct, frozen=True):
    """What is timed.

    Attributes:
        model: A folder or a name of the hub; empty for a shape.
        shape: One of ``SHAPES``; empty for a model.
        device: ``auto``, ``cpu`` or ``gpu``.
        depths: Tokens in the cache before the prompt.
        prompt: Tokens of the prompt.
        generate: Tokens generated.
        reps: Repetitions at each depth; the first compiles and does not count where there are others.
        steps: Decode steps whose time on the CPU is taken.
        layers: Layers of a smaller model of the shape; 0 for all.
    """

    model: str = ""
    shape: str = ""
    device: str = "auto"
    depths: tuple[int, ...] = (0,)
    prompt: int = 512
    generate: int = 128
    reps: int = 4
    steps: int = 200
    layers: int = 0


class Speed(msgspec.Struct, frozen=True):
    """What was measured at one depth.

    Attributes:
        depth: Tokens in the cache before the prompt.
        reps: Repetitions that the medians are of.
        prompt_tok_s: Tokens of the prompt a second, median.
        generate_tok_s: Tokens generated a second, median.
        floor_tok_s: Tokens a second if nothing but reading took time; None where it is not known.
        of_floor: ``generate_tok_s`` over it.
        peak_gb: Most memory in use, 10^9 bytes.
        finite: No logarithm of a probability was NaN.
    """

    depth: int
    reps: int
    prompt_tok_s: float
    generate_tok_s: float
    floor_tok_s: float | None
    of_floor: float | None
    peak_gb: float
    finite: bool


class Executed(msgspec.Struct, frozen=True):
    """How steps were computed.

    Attributes:
        executor: The executor in force.
        accelerated: Nodes were recorded in C.
        why_not_accelerated: Why they were not.
        plans: Plans made.
        planned_runs: Steps that a plan computed.
        captures: Steps captured as graphs.
        replays: Steps that a captured graph computed.
        why_not_captured: Why some or all were not.
    """

    executor: str
    accelerated: bool
    why_not_accelerated: str
    plans: int
    planned_runs: int
    captures: int
    replays: int
    why_not_captured: tuple[str, ...]


class BenchRun(msgspec.Struct, frozen=True):
    """A timed model.

    Attributes:
        request: What was asked for.
        verdict: ``pass`` where all was measured.
        reason: Why, in a sentence.
        target: gfx target, ``sm90`` or ``cpu``; empty where the child did not come so far.
        device_name: The device's name.
        versions: Of what the figures depend on.
        weight_bytes: Bytes of weights read for a token; None where not known.
        copy_gb_s: Measured bandwidth of a copy, 10^9 bytes a second, read and write counted.
        speeds: By depth.
        record_ms: Milliseconds of the CPU to record a decode step, median; None where not measured.
        hand_over_ms: Milliseconds of the CPU to hand it over; on the CPU this computes it.
        executed: How it was computed; None where the child did not come so far.
        started_at: ISO time (UTC).
        time_ms: Wall time.
    """

    request: Request
    verdict: Verdict
    reason: str
    target: str
    device_name: str
    versions: dict[str, str]
    weight_bytes: int | None
    copy_gb_s: float | None
    speeds: tuple[Speed, ...]
    record_ms: float | None
    hand_over_ms: float | None
    executed: Executed | None
    started_at: str
    time_ms: float


def bench(request: Request, *, time_limit_s: float = 1800.0) -> BenchRun:
    """Time a model in a child process of its own; one that hangs or crashes keeps what it measured until then."""
    import rocmend

    started = dt.datetime.now(dt.UTC)
    environment = dict(os.environ)
    ours = str(Path(rocmend.__file__).parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join([ours, *(entry for entry in sys.path if entry and entry != ours)])
    environment.pop("TRITON_INTERPRET", None)  # it would be timed
    done = run_command(_command(request), time_limit_s=time_limit_s, env=environment)
    return summed(request, done, started, time_limit_s)


def _command(request: Request) -> list[str]:
    device = [] if request.device == "auto" else ["--device", request.device]
    which = ["--shape", request.shape] if request.shape else ["--model", request.model]
    return [
        sys.executable, "-P", "-m", "rocmend.mlx", *device, str(CHILD), *which,
        "--depths", ",".join(map(str, request.depths)), "--prompt", str(request.prompt),
        "--generate", str(request.generate), "--reps", str(request.reps), "--steps", str(request.steps),
        "--layers", str(request.layers),
    ]  # fmt: skip


def summed(request: Request, done: CommandResult, started: dt.datetime, time_limit_s: float) -> BenchRun:
    """Return what a child's lines and its end say.

    Args:
        request: What was asked for.
        done: The child.
        started: When it was started.
        time_limit_s: Its limit.
    """
    by_kind: dict[str, list[dict[str, Any]]] = {}
    for line in _lines(done.stdout):
        by_kind.setdefault(str(line.pop("what", "")), []).append(line)
    model = (by_kind.get("model") or [{}])[0]
    about = model.get("about") or {}
    weights, copy = model.get("weight_bytes"), model.get("copy_gb_s")
    speeds = tuple(_speeds(by_kind.get("speed", []), weights, copy))
    step = (by_kind.get("steps") or [{}])[0]
    executed = by_kind.get("executed")
    verdict, reason = _judged(request, done, speeds, time_limit_s)
    return BenchRun(
        request=request,
        verdict=verdict,
        reason=reason,
        target=str(about.get("target", "")),
        device_name=str(about.get("name", "")),
        versions=dict(about.get("versions", {})),
        weight_bytes=weights,
        copy_gb_s=copy,
        speeds=speeds,
        record_ms=step.get("record_ms"),
        hand_over_ms=step.get("hand_over_ms"),
        executed=msgspec.convert(executed[0], Executed) if executed else None,
        started_at=started.isoformat(timespec="milliseconds"),
        time_ms=done.time_ms,
    )


def _lines(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        if line.startswith('{"what"'):
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                continue  # cut where the child was ended


def _speeds(lines: Sequence[Mapping[str, Any]], weights: int | None, copy: float | None) -> Iterator[Speed]:
    for depth in dict.fromkeys(line["depth"] for line in lines):
        found = [line for line in lines if line["depth"] == depth]
        counted = found[1:] or found  # the first compiles
        rate = statistics.median(line["generate_tok_s"] for line in counted)
        floor = None
        if weights is not None and copy:
            floor = copy * 1e9 / (weights + counted[0]["cache_bytes"])
        yield Speed(
            depth=depth,
            reps=len(counted),
            prompt_tok_s=statistics.median(line["prompt_tok_s"] for line in counted),
            generate_tok_s=rate,
            floor_tok_s=floor,
            of_floor=rate / floor if floor else None,
            peak_gb=max(line["peak_gb"] for line in found),
            finite=all(line["finite"] for line in found),
        )


def _judged(request: Request, done: CommandResult, speeds: Sequence[Speed], time_limit_s: float) -> tuple[Verdict, str]:
    until = f"{len(speeds)} of {len(request.depths)} depths measured"
    tail = _told(done.stderr)
    if wrong := [one.depth for one in speeds if not one.finite]:
        return Verdict.WRONG_OUTPUT, f"NaN among the logarithms of probabilities at depth {wrong[0]}"
    if done.ok and len(speeds) == len(set(request.depths)):
        return Verdict.PASS, f"{until}"
    if done.ending is Ending.TIMEOUT:
        return Verdict.HANG, f"no end within {time_limit_s:g} s; {until}. --time-limit gives it more"
    if "out of memory" in done.stderr.lower() or "OutOfMemory" in done.stderr:
        return Verdict.OOM, f"out of memory; {until}. Try a smaller depth"
    if done.ending is Ending.SIGNALLED:
        return Verdict.CRASH, f"signal {done.signal}; {until}. {tail}"
    if done.ending is Ending.EXITED:
        return Verdict.CRASH, f"exit status {done.exit_code}; {until}. {tail}"
    return Verdict.INFRA, f"{done.ending.value}; {until}. {tail}"


def _told(text: str) -> str:
    """Return what a child said at its end: of a traceback the error alone, otherwise the last lines."""
    lines = text.strip().splitlines()
    begun = [at for at, line in enumerate(lines) if line.startswith("Traceback (")]
    kept = [line for line in lines[begun[-1] + 1 :] if line[:1].strip()] if begun else lines[-3:]
    return " ".join(kept)[-400:]


def evidence_of(run: BenchRun, group: str) -> Evidence:
    """Return the record of a run, for the store."""
    settings = msgspec.to_builtins(run.request)
    identity = {"kind": KIND, "settings": settings, "target": run.target, "device": run.device_name}
    return Evidence(
        kind=KIND,
        subject=f"mlx/{run.request.shape or run.request.model}",
        identity=identity_of({**identity, "versions": run.versions}),
        verdict=run.verdict,
        reason=run.reason,
        started_at=run.started_at,
        time_ms=run.time_ms,
        gfx_target=run.target,
        versions=run.versions,
        settings=settings,
        detail={
            "device_name": run.device_name,
            "weight_bytes": run.weight_bytes,
            "copy_gb_s": run.copy_gb_s,
            "speeds": [msgspec.to_builtins(one) for one in run.speeds],
            "record_ms": run.record_ms,
            "hand_over_ms": run.hand_over_ms,
            "executed": msgspec.to_builtins(run.executed),
        },
        group=group,
    )
