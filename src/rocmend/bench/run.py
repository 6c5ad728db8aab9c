"""Running a suite: each case under each setting; what comes out is kept at once, and a run can be resumed."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from rocmend.bench.calibration import Beginning, Calibration, calibrations_of
from rocmend.bench.calibration import evidence_of as calibration_evidence
from rocmend.bench.case import Case, Setting
from rocmend.bench.conditions import machine_facts, variables
from rocmend.bench.measure import STANDARD, Effort, measure
from rocmend.bench.records import BEFORE, KIND, BenchRun, Measured, evidence_of, measured_of, subject_of
from rocmend.bench.session import NotStartedError, Prepared, Session
from rocmend.bench.suite import Suite
from rocmend.bench.telemetry import Telemetry
from rocmend.core.errors import UsageError
from rocmend.core.verdict import Verdict
from rocmend.core.version import version_text
from rocmend.store import runs

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine
    from rocmend.store.store import Store

PLAN = "plan"
"""Part of a record's detail: the cases and settings of its run, by the subjects of their records."""
_MOST_NAMED = 5

OnStart = Callable[[str, int, int], None]
"""Told what is done now: a text, how many cases are done, how many there are."""
OnKept = Callable[[str], None]
"""Told that something was kept before the first result: the run's id."""
OnResult = Callable[[Measured, str, int, int], None]
"""Told of a result: the run's id, how many cases and settings are done, of how many."""


def run_suite(  # noqa: PLR0913  each of them is an option of the command
    suite: Suite,
    *,
    store: Store | None = None,
    machine: Machine | None = None,
    effort: Effort = STANDARD,
    resume: str | None = None,
    on_start: OnStart = lambda _text, _done, _total: None,
    on_result: OnResult = lambda _measured, _group, _done, _total: None,
    on_kept: OnKept = lambda _group: None,
    stop: Callable[[], bool] = lambda: False,
    watch: Telemetry | None = None,
    notes: Sequence[str] = (),
    command: str = "",
    named: bool = False,
) -> BenchRun:
    """Run a suite.

    Args:
        suite: Its cases and settings.
        store: Where each result is kept as soon as it is there; None keeps none.
        machine: Snapshot of this machine, kept with the records.
        effort: How much is done for a figure.
        resume: Id of a run to go on with, or ``last``; what it has measured is not measured again.
        on_start: Told what is done now.
        on_result: Told of each result.
        on_kept: Told of what was found before the first one.
        stop: Asked often; the run ends where it says True.
        watch: Reads sensors while blocks run.
        notes: What is to be known about the run.
        command: The command line, kept with the records.
        named: Its cases or settings were asked for by name.

    Raises:
        UsageError: There is no such run to go on with.
        NotStartedError: Nothing can be measured: no torch, no such device.
    """
    group, finished, calibrations, plan = _finished(store, suite, resume)
    run = _Run(suite, group, store, machine, effort, on_start, on_result, on_kept, stop, watch, notes, command)
    found = run.all(finished, calibrations, plan)
    return msgspec.structs.replace(found, notes=(*found.notes, *notes), named=named)


def new_group(suite: str) -> str:
    """Return the id of a new run; ids sort by time."""
    return f"{KIND}-{suite}-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _finished(
    store: Store | None, suite: Suite, group: str | None
) -> tuple[str, dict[str, Measured], tuple[Calibration, ...], frozenset[str]]:
    """Return the id of the run to go on with, what it has measured, what it has found before, and what it was to do."""
    if group is None:
        return new_group(suite.name) if store is not None else "", {}, (), frozenset()
    if store is None:
        raise UsageError("--resume", "a run can only be resumed from a store.")
    group = find_run(store, suite.name, group)
    found: dict[str, Measured] = {}
    plan: frozenset[str] = frozenset()
    for row in store.query(kind=KIND, group=group):
        plan = frozenset(map(str, row.evidence.detail.get(PLAN, ()))) or plan
        if row.evidence.verdict not in {Verdict.INFRA, Verdict.SKIPPED}:
            found.setdefault(row.evidence.subject, measured_of(row.evidence))
    return group, found, calibrations_of(store, group), plan


def find_run(store: Store, suite: str, name: str) -> str:
    """Return the id of a run of a suite that can be gone on with.

    Args:
        store: Where it is.
        suite: The suite's name.
        name: The run's id, a beginning of it, or ``last`` for the newest one.

    Raises:
        UsageError: There is no such run, or it is one of another benchmark.
    """
    if name == "last":
        newest = store.last_group(f"{KIND}-{suite}-")
        if newest is None:
            raise UsageError(
                "--resume",
                f"the store has no run of `rocmend bench {suite}`.",
                next_step="Leave out --resume to begin one.",
            )
        return newest
    group = runs.find_run(store, name, kinds=[f"{KIND}-"], subject="--resume", what="run of a benchmark")
    if not group.startswith(f"{KIND}-{suite}-"):
        other = group.split("-")[1]
        raise UsageError(
            "--resume",
            f"{group} is a run of bench {other}, not of bench {suite}.",
            next_step=f"`rocmend bench {other} --resume {group}` goes on with it.",
        )
    return group


def begun_with(store: Store, group: str) -> str:
    """Return the command line that a run was begun with; empty where its records do not say."""
    for row in store.query(group=group):
        detail = row.evidence.detail
        told = detail.get("origin") or (detail.get("measured") or {}).get("origin") or {}
        if told.get("command"):
            return str(told["command"])
    return ""


class _Run:
    """One run: opens sessions, hands out cases, keeps what comes back."""

    def __init__(  # noqa: PLR0913, PLR0917  it is made in one place, from that function's arguments
        self,
        suite: Suite,
        group: str,
        store: Store | None,
        machine: Machine | None,
        effort: Effort,
        on_start: OnStart,
        on_result: OnResult,
        on_kept: OnKept,
        stop: Callable[[], bool],
        watch: Telemetry | None,
        notes: Sequence[str],
        command: str,
    ) -> None:
        self.suite, self.group, self.store, self.machine = suite, group, store, machine
        self.effort, self.on_start, self.on_result, self.on_kept = effort, on_start, on_result, on_kept
        self.stop = stop
        self.watch, self.notes = watch, notes
        self.origin = {**({"command": command} if command else {}), "rocmend": version_text()}
        self.settings: dict[str, Setting] = {}
        self.calibrations: dict[str, Calibration] = {}
        self.results: dict[str, Measured] = {}
        self.quarantine = ""
        self.names: list[str] = []
        self._planned = False
        self._done = 0

    def all(self, finished: dict[str, Measured], calibrations: Sequence[Calibration], plan: frozenset[str]) -> BenchRun:
        """Measure all that is not finished; of a run that is gone on with, nothing that it was not begun with."""
        cases = self.suite.cases()
        self._begin(calibrations, cases, finished.values())
        wanted = [(case, setting) for case in cases for setting in self.settings.values()]
        names = [subject_of(case, setting) for case, setting in wanted]
        gone = sorted(plan.difference(names, finished))
        names = self.names = [name for name in names if not plan or name in plan]
        self.results = {name: finished[name] for name in names if name in finished}
        others = tuple(found for name, found in finished.items() if name in plan and name not in names)
        resumed, self._done = len(self.results) + len(others), len(self.results)
        with contextlib.ExitStack() as stack:
            sessions: dict[str, Session] = {}
            for case in cases:
                if self.quarantine or self.stop():
                    break
                try:
                    self._case(case, sessions, stack, len(names))
                except NotStartedError as error:
                    if not self.results:
                        raise
                    self.quarantine = str(error)
        results = (*(self.results[name] for name in names if name in self.results), *others)
        return BenchRun(
            group=self.group,
            suite=self.suite.name,
            title=self.suite.title,
            settings=tuple(self.settings.values()),
            results=results,
            resumed=resumed,
            not_run=(*(name for name in names if name not in self.results), *gone),
            quarantine=self.quarantine,
            notes=(*_without(self.suite.left_out()), *_gone(gone)),
            conclusions=tuple(self.suite.conclusions(results)),
            machine=machine_facts(self.machine) if self.machine is not None else {},
            calibrations=tuple(self.calibrations.values()),
        )

    def _begin(self, before: Sequence[Calibration], cases: Sequence[Case], finished: Iterable[Measured]) -> None:
        """Have the suite find what its settings leave to be found; what an earlier part has found stands."""
        names = [setting.id for setting in self.suite.settings()]
        usable = [one for one in before if one.setting in names and not one.quarantine]
        self.calibrations = {one.setting: one for one in usable}

        def keep(found: Calibration) -> None:
            self.calibrations[found.setting] = found
            self.quarantine = self.quarantine or found.quarantine
            if self.store is not None:
                kept = calibration_evidence(found, self.group, self.suite.name, self.origin)
                self.store.add(kept, machine=self.machine)
                self.on_kept(self.group)

        def step(what: str) -> None:
            self.on_start(what, 0, len(cases) * len(names))

        measured = {item.setting.id for item in finished if item.summary}
        self.suite.begin(Beginning(names, self.effort, usable, keep, step, self.stop, cases, measured))
        self.settings = {setting.id: setting for setting in self.suite.settings()}

    def _case(self, case: Case, sessions: dict[str, Session], stack: contextlib.ExitStack, total: int) -> None:
        waiting: dict[str, Session] = {}
        for name, setting in self.settings.items():
            subject = subject_of(case, setting)
            if subject in self.results or subject not in self.names:
                continue
            if reason := self.suite.applies(case, setting):
                self._keep(_skipped(case, setting, reason), total)
                continue
            if name not in sessions:
                sessions[name] = stack.enter_context(self.suite.open(setting, self.stop))
            waiting[name] = sessions[name]

        def step(setting: str, what: str) -> None:
            self.on_start(f"{case.title or case.id}, {setting}: {what}", self._done, total)

        for name, measured in measure(case, waiting, self.effort, step, self.watch).items():
            if measured.verdict is Verdict.SKIPPED and self.stop():
                continue  # it was cut short, and is measured again when the run goes on
            bounds = self.suite.bounds(case, measured.subject, self.machine) if measured.summary else ()
            setting = self.settings[name]
            self._keep(msgspec.structs.replace(measured, setting=setting, bounds=bounds), total)
            self.quarantine = self.quarantine or measured.prepared.quarantine

    def _keep(self, measured: Measured, total: int) -> None:
        noted = {BEFORE: "; ".join(self.notes)} if self.notes else {}
        found = {**variables(os.environ, measured.setting.env), **noted}
        measured = msgspec.structs.replace(measured, conditions=found, origin=self.origin)
        self.results[subject_of(measured.case, measured.setting)] = measured
        self._done += 1
        if self.store is not None:
            log = {"output.log": measured.prepared.log.encode()} if measured.prepared.log else None
            kept = evidence_of(measured, self.group)
            if not self._planned:  # one record of each part has it
                kept = msgspec.structs.replace(kept, detail={**kept.detail, PLAN: self.names})
                self._planned = True
            self.store.add(kept, machine=self.machine, artifacts=log)
        self.on_result(measured, self.group, self._done, total)


def _gone(names: Sequence[str]) -> list[str]:
    """Return a sentence about what the run was begun with and cannot be measured any more."""
    if not names:
        return []
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return [f"Begun with, and not there any more: {', '.join(names[:_MOST_NAMED])}{more}"]


def _without(left_out: dict[str, str]) -> list[str]:
    """Return sentences about what was left out, what has the same reason together."""
    reasons: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name)
    return [f"Not measured: {', '.join(names)} ({reason})" for reason, names in reasons.items()]


def _skipped(case: Case, setting: Setting, reason: str) -> Measured:
    now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
    prepared = Prepared(Verdict.UNSUPPORTED, reason)
    return Measured(case, Verdict.UNSUPPORTED, reason, prepared, (), None, now, 0.0, setting)
