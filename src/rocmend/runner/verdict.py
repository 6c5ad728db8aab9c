"""From what was seen of a run to its verdict."""

from __future__ import annotations

import signal as signals
from collections.abc import Mapping

import msgspec

from rocmend.core.evidence import Silence
from rocmend.core.verdict import Verdict
from rocmend.runner.events import Sample
from rocmend.runner.executor import Exit
from rocmend.runner.failures import FailureSeen, failure_of
from rocmend.runner.kernel import RESET_CLASSES
from rocmend.runner.result import PythonError

BLOCKED_RATE = 0.02
"""Processor seconds a second below which a process counts as waiting."""

SPIN_LEAST, SPIN_MOST = 0.85, 1.15
"""Between these, one thread uses a processor all the time."""

GPU_BUSY_PERCENT = 90.0

_SILENT = {
    Silence.BLOCKED: "it used no CPU time",
    Silence.SPINNING: "it used one CPU core fully",
    Silence.WORKING: "it used CPU time and may have been computing",
    Silence.GPU_STALLED: "the GPU reported to be busy without progress",
    Silence.UNKNOWN: "its activity could not be observed",
}
_MEMORY_ERRORS = frozenset({"MemoryError", "OutOfMemoryError"})


class Outcome(msgspec.Struct, frozen=True):
    """All that the verdict depends on.

    Attributes:
        exit: How the main process ended; None where it could not be ended.
        ended_for: ``silence``, ``total`` or ``stop`` where we ended it; empty where it ended by itself.
        phase: The phase that it was in.
        silent_s: Seconds since its last output when it was ended, or ended.
        limit_s: The limit that it was ended for.
        silence: What it did while silent.
        sample: The last sample.
        failures: Lines that speak of failure, the weightiest first.
        dmesg: Classes of new kernel lines.
        oom_killed: The kernel's log or its counters say that a process of it was killed for memory.
        python_call: It was a Python call,
        python_error: which raised this,
        returned: or returned something.
        slow: Title of the first run known to be slow that it was in; empty for none.
    """

    exit: Exit | None = None
    ended_for: str = ""
    phase: str = "start"
    silent_s: float = 0.0
    limit_s: float = 0.0
    silence: Silence | None = None
    sample: Sample | None = None
    failures: tuple[FailureSeen, ...] = ()
    dmesg: Mapping[str, int] = {}
    oom_killed: bool = False
    python_call: bool = False
    python_error: PythonError | None = None
    returned: bool = False
    slow: str = ""


def classify_silence(cpu_rate: float | None, wait_rate: float | None, gpu_busy: float | None) -> Silence:
    """Say what a silent process does.

    Args:
        cpu_rate: Processor seconds a second that it used.
        wait_rate: Seconds a second that it was ready while others ran; counts as wanted time on a loaded machine.
        gpu_busy: Percent that its GPU says it is busy; None where it uses none or it does not say.
    """
    if cpu_rate is None:
        return Silence.UNKNOWN
    wanted = cpu_rate + (wait_rate or 0.0)
    idle = wanted < BLOCKED_RATE
    # with time waited for a processor counted in, several threads can look like one: then its own rate must say so too
    spins = SPIN_LEAST <= wanted <= SPIN_MOST
    if gpu_busy is not None and gpu_busy >= GPU_BUSY_PERCENT and (idle or spins):
        return Silence.GPU_STALLED
    if idle:
        return Silence.BLOCKED
    return Silence.SPINNING if spins else Silence.WORKING


def decide(outcome: Outcome) -> tuple[Verdict, str]:
    """Return the verdict and its reason."""
    for rule in (_infra, _reset, _stopped, _memory, _raised, _ended):
        found = rule(outcome)
        if found is not None:
            return found
    return Verdict.PASS, "it exited with status 0"


_Found = tuple[Verdict, str] | None


def _infra(outcome: Outcome) -> _Found:
    if outcome.exit is not None and outcome.exit.infra and not outcome.ended_for:
        return Verdict.INFRA, outcome.exit.infra
    return None


def _reset(outcome: Outcome) -> _Found:
    classes = sorted(RESET_CLASSES & set(outcome.dmesg))
    if classes:
        return Verdict.GPU_RESET, f"the kernel reset the GPU during the run ({', '.join(classes)})"
    if outcome.failures and outcome.failures[0].verdict is Verdict.GPU_RESET:
        return Verdict.GPU_RESET, _said(outcome.failures[0])
    return None


def _stopped(outcome: Outcome) -> _Found:
    """Judge what we ended ourselves."""
    said = f"; it had printed: {outcome.failures[0].line}" if outcome.failures else ""
    silent = f"silent after phase {outcome.phase} for {outcome.silent_s:.0f} s" + _doing(outcome)
    if outcome.ended_for == "silence":
        return Verdict.HANG, f"{silent}{said}"
    if outcome.ended_for == "total":
        limit = f"the limit of {outcome.limit_s:g} s"
        working = outcome.slow and outcome.silence in {Silence.WORKING, Silence.SPINNING}
        if working:
            return Verdict.SLOW, f"still in the first run of {outcome.slow}, which is known to be slow, at {limit}"
        if outcome.silent_s >= 0.5 * outcome.limit_s:
            return Verdict.HANG, f"{silent}, of {limit} in all{said}"
        return Verdict.SLOW, f"still printing in phase {outcome.phase} at {limit}{said}"
    if outcome.ended_for == "stop":
        return Verdict.SKIPPED, f"stopped on request in phase {outcome.phase}"
    return None


def _doing(outcome: Outcome) -> str:
    if outcome.silence is None:
        return ""
    text = f": {outcome.silence.value}, {_SILENT[outcome.silence]}"
    sample = outcome.sample
    if sample is None:
        return text
    if sample.state in {"T", "t"}:
        text += "; it was stopped by a signal (state T)"
    elif sample.state == "D":
        text += f"; it waited inside the kernel (state D{', ' + sample.wchan if sample.wchan else ''})"
    elif sample.wchan and outcome.silence is Silence.BLOCKED:
        text += f"; it waited in {sample.wchan}"
    if outcome.silence is Silence.GPU_STALLED and sample.gpu_power_w is not None:
        text += f"; the GPU drew {sample.gpu_power_w:g} W"
    return text


def _memory(outcome: Outcome) -> _Found:
    if outcome.oom_killed or (outcome.exit is not None and outcome.exit.oom_killed):
        return Verdict.OOM, "the kernel killed it because memory ran out"
    return None


def _raised(outcome: Outcome) -> _Found:
    error = outcome.python_error
    if error is None:
        return None
    text = f"{error.type}: {error.message.strip().partition(chr(10))[0][:300]}"
    if error.stage == "import":
        if {error.type, *error.bases} & {"ImportError", "AttributeError", "SyntaxError"}:
            return Verdict.INFRA, f"the function to call could not be imported: {text}"
        text = f"raised while it was imported: {text}"
    if {error.type, *error.bases} & _MEMORY_ERRORS:
        return Verdict.OOM, text
    known = failure_of(f"{error.type}: {error.message}")
    signature = None if known is None else known.signature
    if signature is not None and signature.verdict not in {None, Verdict.INFRA}:
        return signature.verdict, f"{text} ({signature.meaning})"
    return Verdict.CRASH, text


def _ended(outcome: Outcome) -> _Found:
    """Judge a run that ended by itself, by its status and by what it said."""
    code, number = _status(outcome.exit)
    if number is not None:
        return _signalled(outcome, number)
    if code:
        return _failed(outcome, code)
    decisive = next((item for item in outcome.failures if item.always), None)
    if decisive is not None:
        return decisive.verdict, f"exit status 0, but the output reports a failure: {_said(decisive)}"
    if outcome.python_call and not outcome.returned:
        return Verdict.CRASH, "it exited with status 0 before the function returned"
    return (Verdict.HANG, "it could not be killed") if outcome.exit is None else None


def _weightiest(outcome: Outcome) -> FailureSeen | None:
    return next((item for item in outcome.failures if item.verdict is not Verdict.INFRA), None)


def _signalled(outcome: Outcome, number: int) -> _Found:
    name, weighty = signal_name(number), _weightiest(outcome)
    if weighty is not None:
        return weighty.verdict, f"ended by {name}: {_said(weighty)}"
    hint = ""
    if number == signals.SIGKILL:
        hint = "; there is no sign of running out of memory, so another process or a service manager may have killed it"
    return Verdict.CRASH, f"ended by {name} in phase {outcome.phase}{hint}"


def _failed(outcome: Outcome, code: int) -> _Found:
    weighty = _weightiest(outcome)
    infra = next((item for item in outcome.failures if item.verdict is Verdict.INFRA), None)
    if code in {126, 127} or (infra is not None and weighty is None):
        said = f": {infra.line}" if infra is not None else ": a program was not found or could not be run"
        return Verdict.INFRA, f"exit status {code}{said}"
    if weighty is not None:
        return weighty.verdict, f"exit status {code}: {_said(weighty)}"
    return Verdict.CRASH, f"exit status {code} in phase {outcome.phase}"


def _status(ended: Exit | None) -> tuple[int | None, int | None]:
    """Return exit status and signal; 128 + N, as shells and containers say it, is signal N."""
    if ended is None or ended.signal is not None:
        return None, None if ended is None else ended.signal
    if ended.code is not None and 128 < ended.code <= 128 + 64 and ended.code - 128 in signals.valid_signals():
        return None, ended.code - 128
    return ended.code, None


def _said(failure: FailureSeen) -> str:
    return f"{failure.meaning.rstrip('.')} ({failure.line})"


def signal_name(number: int) -> str:
    """Return ``SIGSEGV`` for 11; ``signal 99`` for one without a name."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
