"""What came out of an attempt."""

from __future__ import annotations

from typing import Any

import msgspec

from rocmend.core.evidence import PhaseSpan, Silence
from rocmend.core.verdict import Verdict
from rocmend.runner.events import Sample, Stack
from rocmend.runner.failures import FailureSeen
from rocmend.runner.output import OutputSummary


class SampleSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """Samples of a run in short. None where nothing could be read.

    Attributes:
        count: How many samples there were.
        cpu_rate_mean: Processor seconds a second over the run.
        cpu_rate_silent: The same over the last silence.
        rss_max_bytes: Most resident memory.
        threads_max: Most threads.
        gpu_busy_max_percent: Most that the GPU was busy.
        gpu_power_max_w: Most that it drew.
        last: The last sample.
    """

    count: int = 0
    cpu_rate_mean: float | None = None
    cpu_rate_silent: float | None = None
    rss_max_bytes: int | None = None
    threads_max: int | None = None
    gpu_busy_max_percent: float | None = None
    gpu_power_max_w: float | None = None
    last: Sample | None = None


class PythonError(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a Python call raised.

    Attributes:
        stage: ``import``, ``call`` or ``result`` (which was no JSON value).
        type: Name of the exception's class.
        message: Its text.
        traceback: As Python prints it.
        bases: Names of its base classes.
    """

    stage: str
    type: str
    message: str
    traceback: str = ""
    bases: tuple[str, ...] = ()


class AttemptResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an attempt ended, and what was seen of it.

    Attributes:
        attempt_id: Its id in the journal.
        name: The spec's name.
        identity: The spec's identity.
        verdict: pass, hang, crash, gpu-reset, oom, slow, unsupported, infra, or skipped where it was stopped.
        reason: Why, in a sentence.
        started_at: ISO time (UTC).
        time_ms: Wall time.
        exit_code: Exit status, where it exited.
        signal: Signal that ended it.
        timeline: Its phases.
        last_phase: The last of them.
        silence: What it did while silent, where it was ended for silence.
        silent_s: Seconds between its last output and its end.
        samples: Samples in short.
        stacks: Stacks taken while it was silent.
        output: What it printed.
        failures: Lines of its output that speak of failure.
        dmesg: Kernel lines of known classes that came during the run, by class.
        dmesg_lines: The first of them.
        quarantine: Why nothing more may be started on this host; empty where it may.
        python_result: What a Python call returned.
        python_error: What it raised.
        notes: What the executor and the run had to say.
        place: Where it ran: pid, image digest, node.
        stalled_s: Seconds for which rocmend itself was stopped; part of ``time_ms``, and of no limit.
    """

    attempt_id: str
    name: str
    identity: str
    verdict: Verdict
    reason: str
    started_at: str
    time_ms: float
    exit_code: int | None = None
    signal: int | None = None
    timeline: tuple[PhaseSpan, ...] = ()
    last_phase: str = ""
    silence: Silence | None = None
    silent_s: float = 0.0
    samples: SampleSummary = SampleSummary()
    stacks: tuple[Stack, ...] = ()
    output: OutputSummary = OutputSummary()
    failures: tuple[FailureSeen, ...] = ()
    dmesg: dict[str, int] = {}
    dmesg_lines: tuple[str, ...] = ()
    quarantine: str = ""
    python_result: Any = None
    python_error: PythonError | None = None
    notes: tuple[str, ...] = ()
    place: dict[str, Any] = {}
    stalled_s: float = 0.0
