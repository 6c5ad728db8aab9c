"""Running probes, each in its own supervised child."""

from __future__ import annotations

import datetime as dt
import os
import secrets
import shlex
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.core.errors import RocmendError, UsageError
from rocmend.core.evidence import Evidence
from rocmend.core.scratch import ScratchFolder
from rocmend.core.verdict import Verdict
from rocmend.machine.software.python_env import IN_FOLDER
from rocmend.probe.evidence import artifacts_of, evidence_of
from rocmend.probe.knowledge import ids_for
from rocmend.probe.records import KIND, QUIET, ProbeRun, Subject, subject_of
from rocmend.probe.registry import Probe, problems, select
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Limits, PythonCall

if TYPE_CHECKING:
    from rocmend.kb.load import Knowledge
    from rocmend.machine.facts import Machine
    from rocmend.store.store import Store

TOTAL_S = {"quick": 600.0, "library": 1200.0, "jit": 2700.0}
"""Wall seconds that a probe may take in all, by allowance class."""

_DESCRIBE_S = 300.0

OnResult = Callable[[Evidence, int, int], None]
"""Told of each result: the record, how many are done, how many there are."""


class ProbeError(RocmendError):
    """Nothing can be probed: no interpreter, no torch, no such device."""

    code = "probe"


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
    on_result: OnResult | None = None,
    resume: str | None = None,
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
        on_result: Told of each result as it comes.
        resume: Id of a run to go on with; what it has finished is not run again.

    Raises:
        UsageError: Nothing fits the selection; there is no such run.
        ProbeError: There is no torch in the interpreter, or no such device.
    """
    if jobs < 1:
        raise UsageError("probe", f"--jobs must be at least 1, got {jobs}.")
    pairs = select(selection, dtypes)
    finished = _finished(store, resume)
    with _home() as home:
        launcher = _Launcher(str(home), _interpreter(python, machine), dict(env or {}), jobs, time_limit_s, silence_s)
        subject = launcher.describe(device)
        run = _Run(launcher, subject, resume or new_group(), store, machine, knowledge, on_result)
        return run.all(pairs, finished)


def new_group() -> str:
    """Return the id of a new run of probes; ids sort by time."""
    return f"probe-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def _interpreter(asked: str | None, machine: Machine | None) -> str:
    """Return the path of the interpreter: the one asked for, that of the environment the facts are about, or our own.

    Raises:
        UsageError: There is none.
        ProbeError: It came with the working folder, and nobody asked for it.
    """
    chosen = asked or (str(machine.value("python.executable", "")) if machine is not None else "") or sys.executable
    found = shutil.which(chosen)
    if found is None:
        raise UsageError(
            "--python", f"there is no program {chosen}.", next_step="Give the path of a Python interpreter."
        )
    if not asked and machine is not None and machine.value("python.found_by") == IN_FOLDER:
        folder = str(machine.value("python.prefix"))
        if folder != sys.prefix:
            raise ProbeError(
                folder,
                "this environment was found in the working folder, and nothing in that is run unasked.",
                why="The folder may be somebody else's project.",
                next_step=f"If it is yours, activate it, or say --python {shlex.quote(folder)}.",
            )
    return str(Path(found).absolute())


def _finished(store: Store | None, group: str | None) -> dict[str, Evidence]:
    """Return what a run has finished, by subject; what failed for the harness's own reasons is run again."""
    if group is None:
        return {}
    if store is None:
        raise UsageError("--resume", "a run can only be resumed from a store.")
    found = {row.evidence.subject: row.evidence for row in store.query(kind=KIND, group=group)}
    if not found:
        raise UsageError(
            "--resume", f"the store has no run {group!r}.", next_step="`rocmend store ls` lists what it has."
        )
    return {name: evidence for name, evidence in found.items() if evidence.verdict is not Verdict.INFRA}


@contextmanager
def _home() -> Iterator[Path]:
    """Yield a working folder from which any interpreter finds rocmend, and nothing of rocmend's environment."""
    with ScratchFolder("probe") as home:
        (home / "rocmend").symlink_to(Path(__file__).resolve().parents[1])
        yield home


class _Launcher:
    """Starts the children, all of them with the same interpreter, environment and limits."""

    def __init__(  # noqa: PLR0913, PLR0917  it is made in one place
        self, home: str, python: str, env: dict[str, str], jobs: int, time_limit_s: float, silence_s: float
    ) -> None:
        self.home, self.python, self.env, self.jobs = home, python, env, jobs
        self.time_limit_s, self.silence_s = time_limit_s, silence_s
        threads = max(1, (os.cpu_count() or 1) // jobs)
        self._defaults = {"OMP_NUM_THREADS": str(threads)} if jobs > 1 and "OMP_NUM_THREADS" not in os.environ else {}

    def _spec(self, name: str, function: str, arguments: dict[str, Any], limits: Limits) -> AttemptSpec:
        call = PythonCall(f"rocmend.probe.child:{function}", arguments, cwd=self.home, python=self.python)
        return AttemptSpec(name, call, env={**self._defaults, **self.env}, limits=limits)

    def describe(self, device: str) -> Subject:
        """Return what is going to be probed.

        Raises:
            ProbeError: It cannot be.
        """
        limits = Limits(total_s=_DESCRIBE_S, silence_s=_DESCRIBE_S)
        result = run_attempt(self._spec("describe", "describe", {"device": device}, limits))
        found = result.python_result if isinstance(result.python_result, dict) else None
        if found is None:
            error = result.python_error
            text = f"{error.type}: {error.message}" if error else result.reason
            raise ProbeError(
                self.python,
                f"this interpreter cannot run probes: {text}",
                why="The probes run in the environment that holds your torch; it needs Python 3.11 or newer.",
                next_step="Activate that environment, or name its interpreter with --python.",
            )
        if found["error"]:
            raise ProbeError(
                self.python,
                f"{found['error']}.",
                why="The probes use the torch of this interpreter.",
                next_step="Name another interpreter with --python, or another device with --device, such as cpu.",
            )
        return Subject(self.python, found["device"], found["device_name"], found["gfx_target"], found["versions"])

    def probe(self, probe: Probe, dtype: str, subject: Subject, stop: Callable[[], bool]) -> AttemptResult:
        """Run one probe and return how it ended; it is ended where ``stop`` says so."""
        silence = probe.silence_s()
        if self.silence_s:
            silence = {phase: allowed if phase == "import" else self.silence_s for phase, allowed in silence.items()}
        limits = Limits(
            total_s=self.time_limit_s or TOTAL_S[probe.allowance],
            silence_s=silence["import"],
            phase_silence=silence,
        )
        arguments = {"probe": probe.id, "dtype": dtype, "device": subject.device}
        spec = self._spec(subject_of(probe.id, dtype), "run", arguments, limits)
        # limits that a person set are meant: an allowance for slow first runs must not stretch them
        return run_attempt(msgspec.structs.replace(spec, allow_slow_first_run=not self.silence_s), stop=stop)


class _Run:
    """One run of probes: hands out work, keeps what comes back, stops where the host is no longer to be trusted."""

    def __init__(  # noqa: PLR0913, PLR0917  it is made in one place, from that function's arguments
        self,
        launcher: _Launcher,
        subject: Subject,
        group: str,
        store: Store | None,
        machine: Machine | None,
        knowledge: Knowledge | None,
        on_result: OnResult | None,
    ) -> None:
        self.launcher, self.subject, self.group = launcher, subject, group
        self.store, self.machine, self.knowledge, self.on_result = store, machine, knowledge, on_result
        self.quarantine = ""
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._done = 0

    def all(self, pairs: list[tuple[Probe, str]], finished: Mapping[str, Evidence]) -> ProbeRun:
        """Run all that is not finished."""
        names = [subject_of(probe.id, dtype) for probe, dtype in pairs]
        results = {name: finished[name] for name in names if name in finished}
        resumed = len(results)
        self._done = resumed
        waiting = [pair for pair, name in zip(pairs, names, strict=True) if name not in finished][::-1]
        total = len(pairs)
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
        )

    def _one(self, probe: Probe, dtype: str, total: int) -> Evidence:
        result = self.launcher.probe(probe, dtype, self.subject, self._stop.is_set)
        evidence = evidence_of(result, probe, dtype, self.subject, {"env": self.launcher.env}, self.group)
        if self.knowledge is not None and evidence.verdict not in QUIET:
            entries = ids_for(probe, self.subject.gfx_target, self.knowledge, self.machine)
            evidence = msgspec.structs.replace(evidence, detail={**evidence.detail, "knowledge": entries})
        if self.store is not None and not self._stop.is_set():
            artifacts = artifacts_of(result) if evidence.verdict not in QUIET else {}
            self.store.add(evidence, machine=self.machine, artifacts=artifacts)
        with self._lock:
            self._done += 1
            self.quarantine = self.quarantine or result.quarantine
            if self.on_result is not None:
                self.on_result(evidence, self._done, total)
        return evidence
