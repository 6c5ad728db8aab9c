"""How probes are started: in a process that others ran in before, and alone where that is asked for or in doubt."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from rocmend.core.errors import RocmendError
from rocmend.core.optional import how_to_install
from rocmend.core.verdict import Verdict
from rocmend.probe.evidence import judged, returned_by
from rocmend.probe.records import QUIET, Subject, Tried, subject_of
from rocmend.probe.registry import SILENCE_S, Probe
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Limits, PythonCall
from rocmend.runner.warm import WarmExecutor

TOTAL_S = {"quick": 600.0, "library": 1200.0, "jit": 2700.0}
"""Wall seconds that a probe may take in all, by allowance class."""

START = "starting torch"
"""What the import of torch and the first use of the device are called, where they fail."""

NO_TORCH = "torch cannot be imported"
"""How the child's error begins where the interpreter has no torch; see ``rocmend.probe.child``."""

_START_S = 300.0
_START_LIMITS = Limits(total_s=_START_S, silence_s=SILENCE_S["quick"]["import"], phase_silence=SILENCE_S["quick"])

_STAYS = frozenset({Verdict.PASS, Verdict.SKIPPED, Verdict.WRONG_OUTPUT, Verdict.UNSUPPORTED})
"""Verdicts after which a process may run another probe, where it says that nothing in it was changed."""

_MOST_NAMED = 20

Stop = Callable[[], bool]


class ProbeError(RocmendError):
    """Nothing can be probed: no interpreter, no torch, no such device."""

    code = "probe"


class _Worker(WarmExecutor):
    """A process that torch has been imported in, and the probes that have run in it."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[str] = []

    def retire(self) -> None:
        """End the process; the next one has run nothing."""
        super().retire()
        self.ran = []


class Launcher:
    """Starts probes, all of them with the same interpreter, environment and limits; for several threads at once.

    Args:
        home: Folder from which the interpreter finds rocmend.
        python: The interpreter.
        env: Variables set for it.
        jobs: Probes that run at the same time.
        time_limit_s: Wall seconds for each probe; 0 for those of its allowance class.
        silence_s: Silence of each phase but the import; 0 for those of its allowance class.
        isolate: Each probe gets a process of its own.

    Attributes:
        notes: What is to be said about the run as a whole.
    """

    def __init__(  # noqa: PLR0913  it is made in one place
        self,
        home: str,
        python: str,
        env: dict[str, str],
        *,
        jobs: int,
        time_limit_s: float,
        silence_s: float,
        isolate: bool,
    ) -> None:
        self.home, self.python, self.env, self.jobs = home, python, env, jobs
        self.time_limit_s, self.silence_s, self.isolate = time_limit_s, silence_s, isolate
        self.notes: list[str] = []
        threads = max(1, (os.cpu_count() or 1) // jobs)
        self._defaults = {"OMP_NUM_THREADS": str(threads)} if jobs > 1 and "OMP_NUM_THREADS" not in os.environ else {}
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []
        self._idle: list[_Worker] = []

    def close(self) -> None:
        """End all processes that are kept."""
        for worker in self._workers:
            worker.retire()

    def start(self, device: str, stop: Stop) -> Subject:
        """Import torch, use the device for the first time, and return what is going to be probed.

        Raises:
            ProbeError: It cannot be.
        """
        worker = self._take()
        result = self._begin(worker, device, stop)
        found = returned_by(result)
        if found.get("error") or not found:
            worker.retire()
        if self.isolate:
            worker.retire()
        self._give_back(worker)
        if not found:
            raise self._not_started(result)
        if found["error"].startswith(NO_TORCH):
            raise ProbeError(
                self.python,
                f"{found['error']}.",
                why="The probes use the torch of this interpreter.",
                next_step=f"{how_to_install('torch')} Or name the interpreter of another environment with --python.",
            )
        if found["error"]:
            raise ProbeError(
                self.python,
                f"{found['error']}.",
                why="The probes use the torch of this interpreter.",
                next_step="Name another interpreter with --python, or try the CPU: `rocmend probe --device cpu`.",
            )
        return Subject(self.python, found["device"], found["device_name"], found["gfx_target"], found["versions"])

    def _not_started(self, result: AttemptResult) -> ProbeError:
        """Say why torch did not start: because of this interpreter, or because of the device."""
        error = result.python_error
        if error is not None or result.last_phase not in {"import", "context"}:
            text = f"{error.type}: {error.message}" if error else result.reason
            return ProbeError(
                self.python,
                f"this interpreter cannot run probes: {text}",
                why="The probes run in the environment that holds your torch; it needs Python 3.11 or newer.",
                next_step="Activate that environment, or name its interpreter with --python.",
            )
        what = "torch's import" if result.last_phase == "import" else "the first use of the device"
        return ProbeError(
            self.python,
            f"{what} failed ({result.verdict.value}): {result.reason}.",
            why="No operation can be tried before that works.",
            next_step="`rocmend doctor` says what is wrong; `rocmend probe --device cpu` tries torch alone.",
        )

    def probe(
        self, probe: Probe, dtype: str, subject: Subject, stop: Stop, again: Callable[[], None] = lambda: None
    ) -> Tried:
        """Run one probe; what does not pass in a shared process is repeated alone, and that counts.

        Args:
            probe: The probe.
            dtype: Its dtype.
            subject: Where it runs.
            stop: It is ended where this says so.
            again: Told that it is repeated.
        """
        spec = self._spec_of(probe, dtype, subject)
        if self.isolate or probe.alone:
            return Tried(run_attempt(spec, stop=stop))
        worker = self._take()
        try:
            result = self._shared(worker, spec, subject, stop)
            ran = tuple(worker.ran)
            verdict = judged(result, returned_by(result))[0] if result is not None else Verdict.INFRA
            if result is not None and verdict in _STAYS and not returned_by(result).get("changed") and not result.dmesg:
                worker.ran.append(spec.name)
            else:
                worker.retire()
        except BaseException:
            worker.retire()
            raise
        finally:
            self._give_back(worker)
        if result is None:
            return Tried(run_attempt(spec, stop=stop))
        if verdict in QUIET or result.quarantine or stop():
            return Tried(result, shared=True, after=ran[-_MOST_NAMED:])
        again()
        return Tried(run_attempt(spec, stop=stop), after=ran[-_MOST_NAMED:], earlier=result)

    def _shared(self, worker: _Worker, spec: AttemptSpec, subject: Subject, stop: Stop) -> AttemptResult | None:
        """Run a probe in a process that stays; None where there can be none any more."""
        if not worker.alive:
            started = self._begin(worker, subject.device, stop)
            if returned_by(started).get("error", "none") and not stop():
                self.isolate = True
                self.notes.append(
                    f"torch could not be started again in a process for several probes ({started.verdict.value}: "
                    f"{started.reason}): each one after that ran in a process of its own"
                )
                return None
        arguments = {**spec.command.arguments, "stays": True} if isinstance(spec.command, PythonCall) else {}
        command = msgspec.structs.replace(spec.command, arguments=arguments)
        return run_attempt(msgspec.structs.replace(spec, command=command), stop=stop, executor=worker)

    def _begin(self, worker: _Worker, device: str, stop: Stop) -> AttemptResult:
        return run_attempt(self._spec(START, "begun", {"device": device}, _START_LIMITS), stop=stop, executor=worker)

    def _take(self) -> _Worker:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            self._workers.append(_Worker())
            return self._workers[-1]

    def _give_back(self, worker: _Worker) -> None:
        with self._lock:
            self._idle.append(worker)

    def _spec(self, name: str, function: str, arguments: dict[str, Any], limits: Limits) -> AttemptSpec:
        call = PythonCall(f"rocmend.probe.child:{function}", arguments, cwd=self.home, python=self.python)
        return AttemptSpec(name, call, env={**self._defaults, **self.env}, limits=limits)

    def _spec_of(self, probe: Probe, dtype: str, subject: Subject) -> AttemptSpec:
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
        return msgspec.structs.replace(spec, allow_slow_first_run=not self.silence_s)
