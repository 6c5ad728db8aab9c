"""Choosing among paths by trying each in a supervised child, because one that does not work may never return."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import torch

import rocmend
from rocmend.core.errors import RocmendError
from rocmend.core.verdict import Verdict
from rocmend.fallbacks.machine import describe
from rocmend.fallbacks.outcomes import Outcome, OutcomeCache

if TYPE_CHECKING:
    from rocmend.core.supervise import CommandResult

log = logging.getLogger("rocmend.fallbacks")

MARK = "rocmend-probe "
"""What begins a child's own lines; libraries print to the same output."""

TIME_LIMIT_S = 300.0
"""The first kernels of a convolution or attention library are compiled for minutes; after this it counts as a hang."""


class NoWorkingPathError(RocmendError):
    """No path of an operation gives right results on this device."""

    code = "no-working-path"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which path was taken, and why.

    Attributes:
        subject: What it is for, e.g. ``conv2d float16 on cuda:0``.
        path: The path taken.
        reason: Why, in a sentence.
        outcomes: What came of each path that was tried.
    """

    subject: str
    path: str
    reason: str
    outcomes: tuple[Outcome, ...] = ()

    def __str__(self) -> str:
        tried = "".join(f"\n  {one.path}: {one.verdict}, {one.reason}" for one in self.outcomes)
        return f"{self.subject}: {self.path}: {self.reason}{tried}"


Trial = Callable[[str], Outcome]
"""Tries a path."""


def choose(subject: str, paths: Sequence[str], attempt: Trial, *, fastest: bool) -> Choice:
    """Take the first path where it works, else another that does.

    Args:
        subject: What it is for, in words.
        paths: In order of preference; the first is taken without trying the others where it works.
        attempt: Tries a path.
        fastest: Among the others take the fastest that works; else the first that works.

    Raises:
        NoWorkingPathError: None works.
    """
    outcomes: list[Outcome] = []
    for path in paths:
        outcome = attempt(path)
        outcomes.append(outcome)
        if outcome.verdict == Verdict.INFRA and path == paths[0]:
            return Choice(subject, path, f"taken untried: {outcome.reason}", tuple(outcomes))
        if outcome.passed and (path == paths[0] or not fastest):
            break
    working = [outcome for outcome in outcomes if outcome.passed]
    if not working:
        raise NoWorkingPathError(
            subject,
            "no path works on this device.",
            why="; ".join(f"{one.path}: {one.verdict}, {one.reason}" for one in outcomes),
            next_step="Run `rocmend doctor`, or name a path with the mode argument.",
        )
    best = min(working, key=lambda one: one.time_ms) if fastest else working[0]
    if best.path == paths[0]:
        return Choice(subject, best.path, "it works here", tuple(outcomes))
    first = outcomes[0]
    reason = f"{first.path} does not work here ({first.verdict}: {first.reason})"
    return Choice(subject, best.path, reason, tuple(outcomes))


def announce(choice: Choice, preferred: str) -> None:
    """Log a choice: as a warning where it is not the preferred path."""
    level = logging.INFO if choice.path == preferred and choice.reason == "it works here" else logging.WARNING
    log.log(level, "rocmend: %s", choice)


def try_path(device: torch.device, subject: Sequence[str], path: str, cache: OutcomeCache | None = None) -> Outcome:
    """Try a path on a device in a supervised child, or take what an earlier run found.

    Args:
        device: The device.
        subject: The probe's arguments, e.g. ``("conv", "float16", "2")``.
        path: The path to try.
        cache: Where outcomes are kept; None for the user's.
    """
    cache = cache or OutcomeCache()
    machine = describe(device)
    key = "/".join(subject)
    known = cache.find(machine, key, path)
    if known is not None:
        return known
    with cache.locked("probe"):
        known = cache.find(machine, key, path)  # another process of the same job may have tried meanwhile
        if known is not None:
            return known
        outcome = _run_child(device, subject, path)
        cache.keep(machine, key, outcome)
    return outcome


def time_limit_s(environment: Mapping[str, str] = os.environ) -> float:
    """Return the time a path may take to prove itself: ``ROCMEND_PROBE_TIME_LIMIT_S`` or five minutes."""
    text = environment.get("ROCMEND_PROBE_TIME_LIMIT_S", "")
    try:
        return float(text) if text else TIME_LIMIT_S
    except ValueError:
        log.warning("rocmend: ROCMEND_PROBE_TIME_LIMIT_S is %r, which is not a number of seconds", text)
        return TIME_LIMIT_S


def _run_child(device: torch.device, subject: Sequence[str], path: str) -> Outcome:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        from rocmend.core.supervise import run_command
    except ImportError as error:
        reason = f"no child could be supervised: {error}"
        return Outcome(path, Verdict.INFRA, reason, tried_at=now)
    limit = time_limit_s()
    log.warning("rocmend: trying the %s path of %s on %s, for up to %.0f s", path, " ".join(subject), device, limit)
    arguments = ("--path", path, "--device", str(device), *subject)
    environment = dict(os.environ)
    environment.pop("ROCMEND_SAFE_CONV", None)
    environment.pop("ROCMEND_SAFE_ATTENTION", None)
    environment["PYTHONPATH"] = os.pathsep.join(_import_folders())
    result = run_command(
        (sys.executable or "python3", "-P", "-m", "rocmend.fallbacks.probe", *arguments),
        time_limit_s=limit,
        env=environment,
    )
    verdict, reason, time_ms = read_result(result, limit)
    return Outcome(path, verdict, reason, time_ms, now)


def _import_folders() -> list[str]:
    """Return the folders that a child must import from to see the packages that we see."""
    ours = [str(Path(rocmend.__file__).parent.parent), str(Path(torch.__file__).parent.parent)]
    return [*ours, *(entry for entry in sys.path if entry and entry not in ours)]


def read_result(result: CommandResult, limit_s: float) -> tuple[Verdict, str, float]:
    """Return verdict, reason and time of a child that tried a path, from how it ended and what it printed."""
    events = []
    for line in result.stdout.splitlines():
        if line.startswith(MARK):
            try:
                events.append(json.loads(line[len(MARK) :]))
            except (ValueError, RecursionError):
                continue  # cut where it was killed
    last = events[-1] if events and isinstance(events[-1], dict) else {}
    case = str(last.get("case") or "the start of PyTorch")
    ending = result.ending.value
    if last.get("event") == "end":  # what comes after its last word, while libraries are taken down, is no matter
        return Verdict(last["verdict"]), str(last["reason"]), float(last.get("time_ms", 0.0))
    if ending == "timeout":
        left = " and the driver does not let go of the process" if result.unkillable else ""
        return Verdict.HANG, f"no end of {case} within {limit_s:.0f} s{left}", 0.0
    if ending == "signalled":
        return Verdict.CRASH, f"signal {result.signal} in {case}", 0.0
    if ending != "exited":
        return Verdict.INFRA, f"the child ended as {ending}: {result.stderr[-300:].strip()}", 0.0
    if not events:
        return Verdict.INFRA, f"the child said nothing (exit {result.exit_code}): {result.stderr[-300:].strip()}", 0.0
    return Verdict.CRASH, f"exit {result.exit_code} in {case}: {result.stderr[-300:].strip()}", 0.0
