"""Running probes one after the other, each of them supervised."""

from __future__ import annotations

import datetime as dt
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

import msgspec

from rocmend.core.errors import UsageError
from rocmend.core.evidence import Evidence
from rocmend.core.verdict import Verdict
from rocmend.core.version import version_text
from rocmend.probe.evidence import artifacts_of, evidence_of
from rocmend.probe.knowledge import ids_for
from rocmend.probe.launch import START, Launcher
from rocmend.probe.records import KIND, PLAN, QUIET, ProbeRun, Subject, subject_of
from rocmend.probe.registry import Probe, problems, select
from rocmend.runner.interpreter import importable, interpreter_of
from rocmend.store import runs

if TYPE_CHECKING:
    from rocmend.kb.load import Knowledge
    from rocmend.machine.facts import Machine
    from rocmend.store.store import Store

OnResult = Callable[[Evidence, int, int], None]
"""Told of each result: the record, how many are done, how many there are."""

OnStart = Callable[[str, int, int], None]
"""Told what begins: its name, how many are done, how many there are."""


def run_probes(  # noqa: PLR0913  each of them is an option of the command
    selection: Sequence[str] = (),
    *,
    device: str = "auto",
    dtypes: Sequence[str] = (),
    jobs: int = 1,
    python: str | None = None,
    store: Store | None = None,
    machine: Machine | None = None,
    knowledge: Knowledge | None = None,
    env: Mapping[str, str] | None = None,
    time_limit_s: float = 0.0,
    silence_s: float = 0.0,
    isolate: bool = False,
    on_start: OnStart | None = None,
    on_result: OnResult | None = None,
    resume: str | None = None,
    command: str = "",
) -> ProbeRun:
    """Run probes and return what came out of each.

    Args:
        selection: Ids, globs, families, tags or ``smoke``; none for all.
        device: ``auto``, ``cpu``, ``cuda`` or a device such as ``cuda:1``.
        dtypes: Only these; none for all that each probe has.
        jobs: Probes that run at the same time.
        python: The interpreter whose torch is probed; None for that of the machine's environment, else our own.
        store: Where the records are kept; None keeps none.
        machine: Snapshot of this machine, kept with the records; its facts pick the knowledge entries too.
        knowledge: Entries, to be attached to what fails.
        env: Variables set for the children.
        time_limit_s: Wall seconds for each probe; 0 for those of its allowance class.
        silence_s: Seconds that each phase but the import of torch may be silent; 0 for those of its allowance class.
        isolate: Each probe gets a process of its own, torch's import included.
        on_start: Told of each probe as it begins, and of the start-up before them.
        on_result: Told of each result as it comes.
        resume: Id of a run to go on with, or ``last``; what it has finished is not run again, and nothing is run that
            it was not begun for: the catalogue may have changed.
        command: The command line, kept with the records.

    Raises:
        UsageError: Nothing fits the selection; there is no such run.
        ProbeError: There is no torch in the interpreter, or no such device.
    """
    if jobs < 1:
        raise UsageError("probe", f"--jobs must be at least 1, got {jobs}.")
    pairs = select(selection, dtypes)
    group, finished, plan = _finished(store, resume)
    tell = on_start or (lambda _name, _done, _total: None)
    with importable() as home:
        launcher = Launcher(
            str(home),
            interpreter_of(python, machine),
            dict(env or {}),
            jobs=jobs,
            time_limit_s=time_limit_s,
            silence_s=silence_s,
            isolate=isolate,
        )
        try:
            tell(START, 0, len(pairs))
            subject = launcher.start(device, lambda: False)
            run = _Run(launcher, subject, group, store, machine, knowledge, tell, on_result, command)
            return run.all(pairs, finished, plan)
        finally:
            launcher.close()


def new_group() -> str:
    """Return the id of a new run of probes; ids sort by time."""
    return f"probe-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _finished(store: Store | None, group: str | None) -> tuple[str, dict[str, Evidence], frozenset[str]]:
    """Return a run's id, what it has finished, by subject, and what it was begun for.

    What the harness failed at is run again.
    """
    if group is None:
        return new_group(), {}, frozenset()
    if store is None:
        raise UsageError("--resume", "a run can only be resumed from a store.")
    group = find_run(store, group)
    found: dict[str, Evidence] = {}
    plan: frozenset[str] = frozenset()
    for row in store.query(kind=KIND, group=group):
        found.setdefault(row.evidence.subject, row.evidence)
        plan = frozenset(map(str, row.evidence.detail.get(PLAN, ()))) or plan
    return group, {name: one for name, one in found.items() if one.verdict is not Verdict.INFRA}, plan


def find_run(store: Store, name: str) -> str:
    """Return the id of a run that can be gone on with.

    Args:
        store: Where it is.
        name: The run's id, a beginning of it, or ``last`` for the newest one.

    Raises:
        UsageError: There is no such run.
    """
    newest = store.last_group(f"{KIND}-")
    if name == "last" and newest is None:
        raise UsageError("--resume", "the store has no run of probes.", next_step="Leave out --resume to begin one.")
    if name == "last" and newest is not None:
        return newest
    return runs.find_run(store, name, kinds=[f"{KIND}-"], subject="--resume", what="run of probes")


def begun_with(store: Store, group: str) -> str:
    """Return the command line that a run was begun with; empty where its records do not say."""
    row = next(store.query(kind=KIND, group=group, limit=1), None)
    return "" if row is None else str((row.evidence.detail.get("origin") or {}).get("command", ""))


class _Run:
    """One run of probes: hands out work, keeps what comes back, stops where the host is no longer to be trusted."""

    def __init__(  # noqa: PLR0913, PLR0917  it is made in one place, from that function's arguments
        self,
        launcher: Launcher,
        subject: Subject,
        group: str,
        store: Store | None,
        machine: Machine | None,
        knowledge: Knowledge | None,
        on_start: OnStart,
        on_result: OnResult | None,
        command: str,
    ) -> None:
        self.launcher, self.subject, self.group = launcher, subject, group
        self.store, self.machine, self.knowledge = store, machine, knowledge
        self.on_start, self.on_result = on_start, on_result
        self.origin = {**({"command": command} if command else {}), "rocmend": version_text()}
        self.quarantine = ""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._done = 0
        self._names: list[str] = []
        self._planned = False

    def all(
        self, pairs: list[tuple[Probe, str]], finished: Mapping[str, Evidence], plan: frozenset[str] = frozenset()
    ) -> ProbeRun:
        """Run all that is not finished; of a run that is gone on with, nothing that it was not begun for."""
        pairs = [(probe, dtype) for probe, dtype in pairs if not plan or subject_of(probe.id, dtype) in plan]
        there = [subject_of(probe.id, dtype) for probe, dtype in pairs]
        names = self._names = [
            *there,
            *sorted(plan.difference(there)),
        ]  # those that the catalogue lacks by now come last
        results = {name: finished[name] for name in names if name in finished}
        resumed = len(results)
        self._done = resumed
        waiting = [pair for pair, name in zip(pairs, there, strict=True) if name not in finished][::-1]
        total = len(names)
        with ThreadPoolExecutor(self.launcher.jobs) as pool:
            running: set[Future[Evidence]] = set()
            try:
                while (waiting and not self.quarantine) or running:
                    while waiting and not self.quarantine and len(running) < self.launcher.jobs:
                        running.add(pool.submit(self._one, *waiting.pop(), total))
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    results.update((future.result().subject, future.result()) for future in done)
            except BaseException:  # interrupted, or the store failed: leave no child behind, and wait for none
                self._stop.set()
                raise
        return ProbeRun(
            group=self.group,
            subject=self.subject,
            results=tuple(results[name] for name in names if name in results),
            resumed=resumed,
            not_run=tuple(name for name in names if name not in results),
            quarantine=self.quarantine,
            problems=tuple(f"{problem.module}: {problem.reason}" for problem in problems()),
            notes=tuple(self.launcher.notes),
        )

    def _one(self, probe: Probe, dtype: str, total: int) -> Evidence:
        name = subject_of(probe.id, dtype)

        def tell(text: str = name) -> None:
            with self._lock:
                self.on_start(text, self._done, total)

        tell()
        again = f"{name} once more, in a process of its own"
        tried = self.launcher.probe(probe, dtype, self.subject, self._stop.is_set, lambda: tell(again))
        result = tried.result
        evidence = evidence_of(tried, probe, dtype, self.subject, {"env": self.launcher.env}, self.group)
        evidence = msgspec.structs.replace(evidence, detail={**evidence.detail, "origin": self.origin})
        if self.knowledge is not None and evidence.verdict not in QUIET:
            entries = ids_for(probe, self.subject.gfx_target, self.knowledge, self.machine)
            evidence = msgspec.structs.replace(evidence, detail={**evidence.detail, "knowledge": entries})
        if self._stop.is_set():
            return evidence  # it was cut short, and is run again when the run goes on
        if self.store is not None:
            artifacts = artifacts_of(result) if evidence.verdict not in QUIET else {}
            with self._lock:
                if not self._planned:  # one record of each part has it
                    evidence = msgspec.structs.replace(evidence, detail={**evidence.detail, PLAN: self._names})
                    self._planned = True
            self.store.add(evidence, machine=self.machine, artifacts=artifacts)
        with self._lock:
            self._done += 1
            self.quarantine = self.quarantine or result.quarantine
            if self.on_result is not None:
                self.on_result(evidence, self._done, total)
        return evidence
