"""Running trials durably: what was finished is kept, whatever is killed."""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from rocmend.core.errors import RocmendError
from rocmend.core.evidence import Evidence
from rocmend.core.files import make_private
from rocmend.core.verdict import Verdict
from rocmend.lab.boot import Boot, problem_text, problems, read_boot
from rocmend.lab.experiment import Experiment
from rocmend.lab.filling import OUT, placeholders
from rocmend.lab.oracle import detail_of, judge, read_output, tail_of
from rocmend.lab.state import Begun, Bench, Standstill, State
from rocmend.lab.trial import Trial, identity, spec_of
from rocmend.runner.events import Event
from rocmend.runner.executor import NotStartedError, executor_for
from rocmend.runner.journal import Journal, read_results
from rocmend.runner.result import AttemptResult
from rocmend.runner.run import run_attempt
from rocmend.runner.spec import AttemptSpec, Container, Local

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine
    from rocmend.store.store import Store

KIND = "trial"
VOID = frozenset({Verdict.INFRA, Verdict.SKIPPED})
"""Verdicts that say nothing of the trial: it is to be run again."""


class QuarantinedError(RocmendError):
    """Nothing may be started on this host until it is rebooted, or a person says otherwise."""

    code = "quarantined"


class Progress(msgspec.Struct, frozen=True):
    """What is told while trials run.

    Attributes:
        trial: The trial.
        number: Which run of it, from 1.
        event: An event of the attempt; None where it has ended,
        evidence: with this record.
    """

    trial: str
    number: int
    event: Event | None = None
    evidence: Evidence | None = None


class RunReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call to run did.

    Attributes:
        ran: Trials run, by id, with how often each.
        kept: Runs that had been made before, likewise.
        recovered: Runs that had finished and not been recorded when rocmend was killed.
        waiting: Trials that need another boot, each with what it lacks.
        quarantine: Why nothing more may be started.
        void: Runs that failed for the harness's sake and do not count, each with the reason.
        stopped: It was stopped before its end.
    """

    ran: dict[str, int] = {}
    kept: dict[str, int] = {}
    recovered: int = 0
    waiting: dict[str, str] = {}
    quarantine: str = ""
    void: dict[str, str] = {}
    stopped: bool = False


class Laboratory:
    """Runs an experiment's trials and keeps what came out.

    Args:
        experiment: The experiment.
        store: Where evidence is kept; what else is to be kept lies in ``lab/ID`` beside it.
        machine: Snapshot of this machine; kept with trials that run on it.
        root: Root of this machine's files, for the boot's checks.
        tell: Called with what happens.
        stop: Asked often; trials end when it says True.
    """

    def __init__(  # noqa: PLR0913  each is a tool of its own
        self,
        experiment: Experiment,
        store: Store,
        *,
        machine: Machine | None = None,
        root: Path = Path("/"),
        tell: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> None:
        self.experiment = experiment
        self.store = store
        self.bench = Bench(store.path.parent / "lab" / experiment.id)
        self.machine = machine
        self._root = root
        self._tell = tell or (lambda _: None)
        self._stop = stop or (lambda: False)
        self._boot: Boot | None = None

    def records(self, trial: Trial) -> list[Evidence]:
        """Return the runs of a trial that say something of it, the oldest first."""
        found = self.store.query(kind=KIND, group=self.experiment.id)
        mine = [item.evidence for item in found if item.evidence.detail.get("definition") == trial.definition]
        return [item for item in reversed(mine) if item.verdict not in VOID]

    def boot(self, trial: Trial) -> Boot:
        """Return the boot of the host that trials run on, read once."""
        if self._boot is None:
            spec = self._spec(trial, "boot")
            self._boot = read_boot(self.experiment, spec.where, proc=self._root)
        return self._boot

    def _spec(self, trial: Trial, attempt: str) -> AttemptSpec:
        out = str(self.bench.out(attempt))
        return spec_of(self.experiment, trial.settings, name=attempt, here=self.experiment.folder, out=out)

    def recover(self) -> int:
        """Record what had finished when rocmend was killed, forget what had not; return how many were recorded."""
        begun = list(self.bench.begun())
        if not begun:
            return 0
        finished = {result.attempt_id: result for result in read_results(self.bench.journal)}
        known = {item.evidence.detail.get("attempt") for item in self.store.query(kind=KIND, group=self.experiment.id)}
        count = 0
        for item in begun:
            result = finished.get(item.attempt)
            if result is not None and item.attempt not in known:
                self._record(item, result)
                count += 1
            self.bench.forget(item.attempt)
        return count

    def run(self, trials: Iterable[Trial], *, repeats: int | None = None, release: bool = False) -> RunReport:
        """Run trials until each has as many runs as asked for.

        Args:
            trials: In order.
            repeats: Runs of each; None for what the experiment says. Runs made before count.
            release: Lift a quarantine.

        Raises:
            QuarantinedError: The host is quarantined, and has not been rebooted since.
            UsageError: Another process runs this experiment.
        """
        wanted = self.experiment.experiment.repeats if repeats is None else repeats
        with Journal(self.bench.journal) as journal:
            recovered = self.recover()
            self._check_quarantine(release=release)
            report = RunReport(recovered=recovered)
            waiting: list[Standstill] = []
            for trial in trials:
                report = self._run_trial(journal, trial, wanted, report, waiting)
                if report.quarantine or report.stopped:
                    break
            self._keep_waiting(waiting, complete=not (report.quarantine or report.stopped))
            self.bench.empty_journal()  # all that it holds is in the store
        return report

    def _run_trial(
        self, journal: Journal, trial: Trial, wanted: int, report: RunReport, waiting: list[Standstill]
    ) -> RunReport:
        before = len(self.records(trial))
        report = _with(report, kept={**report.kept, trial.id: before}) if before else report
        if before >= wanted:
            return report
        lacking = self._boot_lacks(trial)
        if lacking:
            waiting.append(Standstill(self.boot(trial).id, lacking, trial.id, trial.definition))
            return _with(report, waiting={**report.waiting, trial.id: lacking})
        for number in range(before + 1, wanted + 1):
            if self._stop():
                return _with(report, stopped=True)
            evidence, quarantine = self._attempt(journal, trial, number)
            if evidence.verdict in VOID:  # the next run would fail as this one did
                stopped = evidence.verdict is Verdict.SKIPPED
                report = _with(report, void={**report.void, trial.id: evidence.reason}, stopped=stopped)
            else:
                report = _with(report, ran={**report.ran, trial.id: report.ran.get(trial.id, 0) + 1})
            if quarantine or evidence.verdict in VOID:
                return _with(report, quarantine=quarantine)
        return report

    def _boot_lacks(self, trial: Trial) -> str:
        """Say what the running boot lacks for a trial; record it where that boot was made for the trial."""
        if not any(factor.kind.needs_boot for factor in self.experiment.factor):
            return ""
        boot = self.boot(trial)
        found = problems(self.experiment, trial, boot)
        if not found:
            return ""
        lacking = problem_text(found)
        for item in self.bench.state().waiting:
            if item.definition == trial.definition and item.boot and boot.id and item.boot != boot.id:
                self._record_infra(trial, boot, f"the host was rebooted without it: {lacking}")
        return lacking

    def _attempt(self, journal: Journal, trial: Trial, number: int) -> tuple[Evidence, str]:
        """Run a trial once; return its record, and why nothing more may run."""
        stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S")
        attempt = f"{trial.id}-{stamp}-{secrets.token_hex(3)}"
        spec = self._spec(trial, attempt)
        executor = executor_for(spec.where)
        boot = self.boot(trial).id if isinstance(spec.where, (Local, Container)) else ""
        machine, gfx = self._machine(spec)
        begun = Begun(attempt, trial.id, trial.settings, trial.definition, trial.definition, boot, machine, gfx)
        try:
            spec = executor.resolve(spec)
        except NotStartedError as error:
            now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
            reason = " ".join(part for part in (error.message, error.next_step) if part)
            result = AttemptResult(attempt, attempt, spec.identity(), Verdict.INFRA, reason, now, 0.0)
            return self._told(trial, number, self._record(begun, result)), ""
        begun = msgspec.structs.replace(begun, identity=identity(trial, spec))
        if isinstance(spec.where, Local) and OUT in placeholders(list(self.experiment.experiment.command)):
            make_private(self.bench.out(attempt))
        self.bench.begin(begun)
        result = run_attempt(
            spec,
            on_event=lambda event: self._tell(Progress(trial.id, number, event)),
            journal=journal,
            attempt_id=attempt,
            stop=self._stop,
            executor=executor,
        )
        evidence = self._record(begun, result)
        if result.quarantine:
            state = msgspec.structs.replace(
                self.bench.state(), quarantine=Standstill(self.boot(trial).id, result.quarantine)
            )
            self.bench.keep(state)
        self.bench.forget(attempt)
        return self._told(trial, number, evidence), result.quarantine

    def _told(self, trial: Trial, number: int, evidence: Evidence) -> Evidence:
        self._tell(Progress(trial.id, number, None, evidence))
        return evidence

    def _machine(self, spec: AttemptSpec) -> tuple[str, str]:
        """Return the hash and gfx target of this machine, where trials run on it."""
        if self.machine is None or spec.where.__struct_config__.tag not in {"local", "container"}:
            return "", self.experiment.experiment.gfx
        from rocmend.store.encoding import machine_hash

        target = self.machine.value("gpu.0.gfx_target")
        return machine_hash(self.machine), str(target or "cpu")

    def _record(self, begun: Begun, result: AttemptResult) -> Evidence:
        """Judge a result and keep it."""
        output = read_output(result)
        judgement = judge(self.experiment, result, output, self.bench.out(begun.attempt))
        detail: dict[str, Any] = {
            "attempt": begun.attempt,
            "definition": begun.definition,
            "difference": self.experiment.difference(begun.settings),
            "exit_code": result.exit_code,
            "signal": result.signal,
            "silent_s": result.silent_s,
            "boot": begun.boot,
            "place": result.place,
            "output_tail": tail_of(output),
            **({"notes": list(result.notes)} if result.notes else {}),
            **({"stalled_s": result.stalled_s} if result.stalled_s else {}),
            **detail_of(judgement),
        }
        evidence = Evidence(
            KIND,
            begun.trial,
            begun.identity,
            judgement.verdict,
            judgement.reason,
            result.started_at,
            result.time_ms,
            gfx_target=begun.gfx_target,
            settings=dict(begun.settings),
            timeline=result.timeline,
            last_phase=result.last_phase,
            silence=result.silence,
            detail=detail,
            group=self.experiment.id,
        )
        log = Path(result.output.log) if result.output.log else None
        artifacts = {"output.log": log} if log is not None and log.is_file() else None
        mine = self.machine if begun.machine else None
        self.store.add(evidence, machine=mine, artifacts=artifacts)
        return evidence

    def _record_infra(self, trial: Trial, boot: Boot, reason: str) -> None:
        """Keep that a boot made for a trial was not the right one."""
        now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        detail = {"definition": trial.definition, "boot": boot.id, "cmdline": boot.cmdline}
        evidence = Evidence(
            KIND,
            trial.id,
            trial.definition,
            Verdict.INFRA,
            reason,
            now,
            0.0,
            settings=dict(trial.settings),
            detail=detail,
            group=self.experiment.id,
        )
        self.store.add(evidence)
        self._tell(Progress(trial.id, 1, None, evidence))

    def _check_quarantine(self, *, release: bool) -> None:
        state = self.bench.state()
        if state.quarantine is None:
            return
        now = read_boot(self.experiment, Local(), proc=self._root).id
        if release or (now and state.quarantine.boot and now != state.quarantine.boot):
            self.bench.keep(msgspec.structs.replace(state, quarantine=None))
            return
        raise QuarantinedError(
            "lab",
            f"this host is quarantined: {state.quarantine.reason}.",
            why="Later runs might fail because of it.",
            next_step="Reboot and call `rocmend lab resume`; --release lifts it if the host is known to be good.",
        )

    def _keep_waiting(self, waiting: list[Standstill], *, complete: bool) -> None:
        state = self.bench.state()
        others = (
            () if complete else tuple(item for item in state.waiting if item.trial not in {w.trial for w in waiting})
        )
        if state.waiting or waiting:
            self.bench.keep(State(state.quarantine, (*others, *waiting)))


def _with(report: RunReport, **changes: Any) -> RunReport:
    return msgspec.structs.replace(report, **changes)
