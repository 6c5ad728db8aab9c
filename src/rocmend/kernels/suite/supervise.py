"""Run the suites of ops, each in supervised child processes, and say what came out in the house's words."""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.errors import RocmendError
from rocmend.core.evidence import Evidence, identity_of
from rocmend.core.stall import TELL_S
from rocmend.core.supervise import CommandResult, run_command
from rocmend.core.verdict import Verdict

MARK = "rocmend-kernels "
KIND = "kernel-suite"
MOST_CHILDREN = 6
"""Children that one op may use up: each case that hangs or kills its process costs a child."""

RUNGS = {"cpu": "reference", "nvidia": "nvidia", "emulated": "emulated", "amd": "amd"}
_ORDER = (
    Verdict.WRONG_OUTPUT,
    Verdict.HANG,
    Verdict.CRASH,
    Verdict.OOM,
    Verdict.INFRA,
    Verdict.UNSUPPORTED,
    Verdict.PASS,
)


class NoDeviceError(RocmendError):
    """There is nothing here that the suites could run on."""

    code = "no-device"


class CaseOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came out of a case.

    Attributes:
        case: Its name.
        verdict: In the house's words.
        detail: What is wrong.
        worst: Largest error as a multiple of what is allowed.
        time_ms: Wall time, compilation included.
        implementation: What computed it; empty where that is not known.
    """

    case: str
    verdict: Verdict
    detail: str = ""
    worst: float = 0.0
    time_ms: float = 0.0
    implementation: str = ""


class OpRun(msgspec.Struct, frozen=True):
    """The suite of one op on one device.

    Attributes:
        op: Its name.
        rung: The level of proof: ``reference``, ``nvidia``, ``emulated`` or ``amd``.
        target: The target it ran on.
        device_name: The device's name.
        verdict: The gravest of its cases'.
        passed: Cases that passed.
        count: Cases that ran.
        not_passed: The others, with why.
        worst: Largest error of those that passed, as a multiple of what is allowed.
        time_ms: Wall time.
        versions: Of torch and Triton.
        started_at: ISO time (UTC).
        sizes: Which cases were run.
        implementations: How many of them each implementation computed, by name.
        known: Cases of these sizes, where not all of them were to be run; else 0.
    """

    op: str
    rung: str
    target: str
    device_name: str
    verdict: Verdict
    passed: int
    count: int
    not_passed: tuple[CaseOutcome, ...]
    worst: float
    time_ms: float
    versions: dict[str, str]
    started_at: str
    sizes: tuple[str, ...]
    implementations: dict[str, int] = {}
    known: int = 0


def check_op(  # noqa: PLR0913  each is an option of the command
    op: str, device: str, sizes: Sequence[str], *, case_s: float = 180.0, op_s: float = 3600.0, jobs: int = 1
) -> OpRun:
    """Run the suite of an op.

    Args:
        op: Its name.
        device: ``cuda`` (AMD's GPUs too), ``cuda:1``, or ``cpu`` for Triton's interpreter.
        sizes: ``tiny``, ``small``, ``large``.
        case_s: Seconds for a case.
        op_s: Seconds for all.
        jobs: Processes that share tiny and small cases, side by side: most of their time is the compiler's. Large ones
            follow in one process, as they may need all memory.

    Raises:
        NoDeviceError: torch, Triton or the device is not there.
    """
    started, begin = dt.datetime.now(dt.UTC), time.monotonic()
    few = tuple(size for size in sizes if size != "large") if jobs > 1 else ()
    rest = tuple(size for size in sizes if size not in few)
    wanted = {"ops": [op], "device": device, "case_s": case_s}
    found = []
    if few:
        small = {**wanted, "sizes": list(few)}
        with ThreadPoolExecutor(jobs) as pool:
            shares = [pool.submit(_share, small, begin + op_s, (share, jobs)) for share in range(jobs)]
            found = [share.result() for share in shares]
    if rest:
        found.append(_share({**wanted, "sizes": list(rest)}, begin + op_s, (0, 1)))
    outcomes = {name: outcome for some, _ in found for name, outcome in some.items()}
    about = next((about for _, about in found if about), {})
    return summed(op, outcomes, about, sizes, started, (time.monotonic() - begin) * 1e3)


def _share(
    wanted: Mapping[str, Any], end: float, share: tuple[int, int]
) -> tuple[dict[str, CaseOutcome], dict[str, Any]]:
    """Run every so many-th case in children, one after the other where one ends early.

    Args:
        wanted: What a child is asked for: the op, the device, sizes, seconds for a case.
        end: When it must be over, by the monotonic clock.
        share: Which of how many.

    Returns:
        What came out of each case, and what the device is.

    Raises:
        NoDeviceError: torch, Triton or the device is not there.
    """
    device, case_s = wanted["device"], wanted["case_s"]
    outcomes: dict[str, CaseOutcome] = {}
    about: dict[str, Any] = {}
    for _ in range(MOST_CHILDREN):
        left = end - time.monotonic()
        if left <= 0:
            break
        request = {**wanted, "done": list(outcomes), "share": share}
        done = run_child("rocmend.kernels.suite.child", request, left, device)
        end += done.stalled_s
        ended, open_case = False, ""
        for event in events(done.stdout):
            if event["event"] == "infra":
                raise NoDeviceError(
                    "kernels",
                    f"the suites cannot run on {device}: {event['reason']}.",
                    next_step="Install rocmend beside torch and Triton, or name a device with --device (cpu, cuda).",
                )
            if event["event"] == "device":
                about = event
            elif event["event"] == "begin":
                open_case = event["case"]
            elif event["event"] == "case":
                open_case = ""
                outcome = CaseOutcome(
                    event["case"],
                    Verdict(event["verdict"]),
                    event["detail"],
                    event["worst"],
                    event["ms"],
                    event.get("implementation", ""),
                )
                outcomes[event["case"]] = outcome
            ended = ended or event["event"] == "end"
        if ended:
            break
        name = open_case or ("start" if share[1] == 1 else f"start of share {share[0] + 1} of {share[1]}")
        outcomes[name] = CaseOutcome(name, *_how_it_ended(done, case_s))
        if not open_case:
            break
    return outcomes, about


def run_child(module: str, request: Mapping[str, Any], time_limit_s: float, device: str) -> CommandResult:
    """Run one of our modules in a child that sees the packages that we see."""
    import rocmend

    env = dict(os.environ)
    ours = str(Path(rocmend.__file__).parent.parent)
    env["PYTHONPATH"] = os.pathsep.join([ours, *(entry for entry in sys.path if entry and entry != ours)])
    if device == "cpu":
        env["TRITON_INTERPRET"] = "1"
        env.setdefault("OMP_NUM_THREADS", "2")
    else:
        env.pop("TRITON_INTERPRET", None)
    for name in ("ROCMEND_KERNELS",):
        env.pop(name, None)
    return run_command((sys.executable, "-P", "-m", module, json.dumps(request)), time_limit_s=time_limit_s, env=env)


def events(text: str) -> Iterator[dict[str, Any]]:
    """Yield the events among what a child printed."""
    for line in text.splitlines():
        if line.startswith(MARK):
            try:
                event = json.loads(line[len(MARK) :])
            except (ValueError, RecursionError):
                continue  # cut where it was ended
            if isinstance(event, dict) and "event" in event:
                yield event


def stalled(done: CommandResult, limit_s: float) -> bool:
    """Whether we were paused for so long that a child which watches its own time limit may have met it for that.

    Args:
        done: How the child ended. Its own clock goes on while it is paused with us.
        limit_s: The limit.
    """
    return done.stalled_s >= max(TELL_S, limit_s / 20)


def _how_it_ended(done: CommandResult, case_s: float) -> tuple[Verdict, str]:
    tail = done.stderr.strip()[-400:]
    if "Timeout (" in done.stderr:  # what faulthandler prints before it ends the process
        if stalled(done, case_s):
            return Verdict.INFRA, f"rocmend itself was stopped for {done.stalled_s:.1f} s: run it again"
        return Verdict.HANG, f"no end within {case_s:.0f} s"
    if done.ending.value == "timeout":
        return Verdict.HANG, "no end within the op's time"
    if done.ending.value == "signalled":
        return Verdict.CRASH, f"signal {done.signal}: {tail}"
    return Verdict.CRASH if done.ending.value == "exited" else Verdict.INFRA, f"{done.ending.value}: {tail}"


def summed(  # noqa: PLR0913, PLR0917  each is another thing
    op: str,
    outcomes: Mapping[str, CaseOutcome],
    about: Mapping[str, Any],
    sizes: Sequence[str],
    started: dt.datetime,
    time_ms: float,
) -> OpRun:
    """Return what the outcomes of an op's cases come to.

    Args:
        op: Its name.
        outcomes: By case.
        about: The device: ``vendor``, ``target``, ``name`` and ``versions``.
        sizes: Which cases were run.
        started: When.
        time_ms: How long it took.
    """
    found = list(outcomes.values())
    passed = [outcome for outcome in found if outcome.verdict is Verdict.PASS]
    verdict = min((outcome.verdict for outcome in found), key=_ORDER.index, default=Verdict.SKIPPED)
    return OpRun(
        op=op,
        rung=RUNGS.get(str(about.get("vendor")), "reference"),
        target=str(about.get("target", "")),
        device_name=str(about.get("name", "")),
        verdict=verdict,
        passed=len(passed),
        count=len(found),
        not_passed=tuple(outcome for outcome in found if outcome.verdict is not Verdict.PASS),
        worst=max((outcome.worst for outcome in passed), default=0.0),
        time_ms=round(time_ms, 1),
        versions=dict(about.get("versions", {})),
        started_at=started.isoformat(timespec="milliseconds"),
        sizes=tuple(sizes),
        implementations=dict(
            sorted(Counter(outcome.implementation for outcome in found if outcome.implementation).items())
        ),
    )


def evidence_of(run: OpRun, group: str) -> Evidence:
    """Return the record of a run, for the store."""
    first = run.not_passed[0] if run.not_passed else None
    reason = f"{first.case}: {first.detail or first.verdict.value}" if first else f"{run.count} cases passed"
    identity = {"kind": KIND, "op": run.op, "target": run.target, "device": run.device_name, "sizes": run.sizes}
    return Evidence(
        kind=KIND,
        subject=run.op,
        identity=identity_of({**identity, "versions": run.versions}),
        verdict=run.verdict,
        reason=reason,
        started_at=run.started_at,
        time_ms=run.time_ms,
        gfx_target=run.target,
        versions=run.versions,
        settings={"sizes": list(run.sizes)},
        detail={
            "rung": run.rung,
            "device_name": run.device_name,
            "passed": run.passed,
            "count": run.count,
            "known": run.known,
            "worst": run.worst,
            "implementations": run.implementations,
            "not_passed": [msgspec.to_builtins(outcome) for outcome in run.not_passed],
        },
        group=group,
    )
