"""Running one attempt."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from rocmend.core.verdict import Verdict
from rocmend.runner.events import Event, EventKind
from rocmend.runner.executor import Executor, Handle, NotStartedError, executor_for
from rocmend.runner.journal import Journal
from rocmend.runner.kernel import RESET_CLASSES
from rocmend.runner.output import OutputKeeper
from rocmend.runner.result import AttemptResult
from rocmend.runner.secret import Scrubber, secret_values, with_secrets
from rocmend.runner.spec import AttemptSpec, PythonCall
from rocmend.runner.supervisor import Supervisor
from rocmend.runner.verdict import Outcome, decide

_SAMPLE_EVERY_MS = 10_000.0


def run_attempt(  # noqa: PLR0913  each is an option of its own
    spec: AttemptSpec,
    *,
    on_event: Callable[[Event], None] | None = None,
    journal: Journal | None = None,
    attempt_id: str = "",
    log: Path | None = None,
    stop: Callable[[], bool] | None = None,
    executor: Executor | None = None,
) -> AttemptResult:
    """Run an attempt to its end, whatever end that is.

    Args:
        spec: What to run.
        on_event: Called with every event, output lines among them.
        journal: Where its events are kept, output lines left out (they go to a log file beside it).
        attempt_id: Its id in the journal; empty takes the spec's name.
        log: File for its output; None takes the journal's, or none.
        stop: Asked often; the attempt is ended when it says True, with the verdict ``skipped``.
        executor: Where not the one that the spec asks for.

    Returns:
        What came out. A program that does not start, or a host that is not there, is the verdict ``infra``.

    Raises:
        UsageError: The phase set is not known.
        KeyboardInterrupt: It was interrupted: the child has been ended, and the journal says so.
    """
    return _Attempt(spec, on_event, journal, attempt_id or spec.name, log).run(
        executor or executor_for(spec.where), stop
    )


class _Attempt:
    """One attempt's way from its spec to its result."""

    def __init__(
        self,
        spec: AttemptSpec,
        on_event: Callable[[Event], None] | None,
        journal: Journal | None,
        attempt_id: str,
        log: Path | None,
    ) -> None:
        self.spec = spec
        self.on_event = on_event
        self.journal = journal
        self.id = attempt_id
        self.log = journal.log_path(attempt_id) if log is None and journal is not None else log
        self.started_at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        self.begin = time.monotonic()
        self.secrets: tuple[str, ...] = ()
        self._sample_kept = -_SAMPLE_EVERY_MS

    def emit(self, event: Event) -> None:
        """Hand an event on and write it down; of samples one every ten seconds."""
        if self.on_event is not None:
            self.on_event(event)
        if self.journal is None:
            return
        if event.kind is EventKind.SAMPLE:
            if event.time_ms - self._sample_kept < _SAMPLE_EVERY_MS:
                return
            self._sample_kept = event.time_ms
        self.journal.append(self.id, event)

    def run(self, executor: Executor, stop: Callable[[], bool] | None) -> AttemptResult:
        """Start, watch, judge, write down."""
        identity = self.spec.identity()
        start = {"spec": msgspec.to_builtins(self.spec.kept()), "identity": identity, "started_at": self.started_at}
        self.emit(Event(0.0, EventKind.START, self.spec.name, data=start))
        keeper = OutputKeeper(self.spec.limits.max_output_bytes, self.log)
        try:
            spec = msgspec.structs.replace(self.spec, env=with_secrets(self.spec.env))
            self.secrets = secret_values(self.spec.env, spec.env)
            handle = executor.start(spec)
        except NotStartedError as error:
            reason = " ".join(part for part in (error.message, error.next_step) if part)
            result = AttemptResult(
                self.id,
                self.spec.name,
                identity,
                Verdict.INFRA,
                Scrubber(self.secrets).text(reason),
                self.started_at,
                self._time_ms(),
            )
            keeper.finish()
            return self._end(result)
        supervisor: Supervisor | None = None
        try:
            supervisor = Supervisor(
                self.spec, handle, keeper, emit=self.emit, emit_output=self.on_event, secrets=self.secrets
            )
            supervisor.watch(stop)
        except BaseException as error:
            keeper.finish()
            text = f"interrupted ({type(error).__name__}); it was killed and does not count"
            self.emit(Event(self._time_ms(), EventKind.NOTE, text))
            raise
        finally:
            if supervisor is not None:
                supervisor.close()
            handle.close()
        return self._end(self._result(supervisor, handle, keeper, identity))

    def _time_ms(self) -> float:
        return round((time.monotonic() - self.begin) * 1000, 1)

    def _end(self, result: AttemptResult) -> AttemptResult:
        data = msgspec.to_builtins(result)
        self.emit(Event(result.time_ms, EventKind.END, result.reason, phase=result.last_phase, data=data))
        return result

    def _result(self, supervisor: Supervisor, handle: Handle, keeper: OutputKeeper, identity: str) -> AttemptResult:
        seen = supervisor.failures.seen()
        outcome = Outcome(
            exit=supervisor.exit,
            ended_for=supervisor.ended_for,
            phase=supervisor.timeline.name,
            silent_s=supervisor.silent_s,
            limit_s=supervisor.limit_s,
            silence=supervisor.silence,
            sample=supervisor.samples.last,
            failures=seen,
            dmesg=supervisor.dmesg,
            oom_killed=supervisor.oom_killed,
            python_call=isinstance(self.spec.command, PythonCall),
            python_error=supervisor.python_error,
            returned=supervisor.returned,
            slow=supervisor.slow_title,
        )
        verdict, reason = decide(outcome)
        reason = Scrubber(self.secrets).text(reason)
        ended = supervisor.exit
        silent_rate = supervisor.samples.since(supervisor.patience.last_output)[0] if supervisor.ended_for else None
        return AttemptResult(
            self.id,
            self.spec.name,
            identity,
            verdict,
            reason,
            self.started_at,
            self._time_ms(),
            exit_code=ended.code if ended else None,
            signal=ended.signal if ended else None,
            timeline=supervisor.timeline.finish(supervisor.now_ms()),
            last_phase=supervisor.timeline.name,
            silence=supervisor.silence if verdict is Verdict.HANG else None,
            silent_s=round(supervisor.silent_s, 3),
            samples=supervisor.samples.summary(silent_rate),
            stacks=tuple(supervisor.stacks),
            output=keeper.finish(),
            failures=seen,
            dmesg=supervisor.dmesg,
            dmesg_lines=tuple(supervisor.dmesg_lines),
            quarantine=_quarantine(supervisor),
            python_result=supervisor.python_result,
            python_error=supervisor.python_error,
            notes=tuple(supervisor.notes),
            place=handle.describe(),
            stalled_s=round(supervisor.clock.lost_s, 3),
        )


def _quarantine(supervisor: Supervisor) -> str:
    """Say why nothing more may be started here; empty where it may."""
    if supervisor.survivors:
        return f"even KILL did not end {', '.join(supervisor.survivors)}: reboot before running anything else here"
    if supervisor.exit is None:
        return "the attempt could not be killed: check what still runs there before starting anything else"
    resets = sorted(RESET_CLASSES & set(supervisor.dmesg))
    if resets:
        return f"the GPU was reset during the attempt ({', '.join(resets)}): later runs may be affected"
    return ""
