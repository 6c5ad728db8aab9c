"""Watching what a run does while it is silent, and deciding how long it may be."""

from __future__ import annotations

import msgspec

from rocmend.core.evidence import PhaseSpan, Silence
from rocmend.runner.events import Sample
from rocmend.runner.phases import START, Phase, SlowFirstRun, slow_first_runs
from rocmend.runner.result import SampleSummary
from rocmend.runner.spec import AttemptSpec
from rocmend.runner.verdict import BLOCKED_RATE, classify_silence

WORKING_RATE = 0.05
"""Processor seconds a second above which a silent process counts as working on a slow first run."""

_MAX_SPANS = 2000


class Timeline:
    """The phases of a run as they come."""

    def __init__(self) -> None:
        self.spans: list[PhaseSpan] = []
        self.name = START
        self._begin_ms = 0.0
        self._mark = ""
        self._slow = False

    def begin(self, name: str, time_ms: float, mark: str = "", *, slow: bool = False) -> None:
        """A phase begins, and the one before it ends."""
        self._close(time_ms)
        self.name, self._begin_ms, self._mark, self._slow = name, time_ms, mark, slow

    def _close(self, time_ms: float) -> None:
        if len(self.spans) < _MAX_SPANS:
            self.spans.append(PhaseSpan(self.name, self._begin_ms, time_ms, self._mark, self._slow))

    def finish(self, time_ms: float) -> tuple[PhaseSpan, ...]:
        """Return all phases, the last one ending now."""
        self._close(time_ms)
        return tuple(self.spans)


class SampleLog:
    """Sums up samples; keeps apart those of the silence that lasts.

    Args:
        begin: When the run began, by the supervisor's clock, as all times here.
    """

    def __init__(self, begin: float) -> None:
        self.last: Sample | None = None
        self._count = 0
        self._cpu_s = self._cpu_over_s = 0.0
        self._rss = self._threads = 0
        self._gpu_busy: float | None = None
        self._gpu_power: float | None = None
        self._time = begin
        self._windows: list[tuple[float, float, float, float, float | None]] = []

    def add(self, sample: Sample, now: float) -> None:
        """Take in a sample; its rates are those since the last one."""
        begin, self._time = self._time, now
        self.last = sample
        self._count += 1
        self._rss = max(self._rss, sample.rss_bytes or 0)
        self._threads = max(self._threads, sample.threads or 0)
        self._gpu_busy = _most(self._gpu_busy, sample.gpu_busy_percent)
        self._gpu_power = _most(self._gpu_power, sample.gpu_power_w)
        if sample.cpu_rate is None:
            return
        self._cpu_s += sample.cpu_rate * (now - begin)
        self._cpu_over_s += now - begin
        self._windows.append((begin, now, sample.cpu_rate, sample.cpu_wait_rate or 0.0, sample.gpu_busy_percent))
        del self._windows[:-64]

    def since(self, begin: float) -> tuple[float | None, float | None, float | None]:
        """Return mean processor rate, wait rate and GPU load of the later half of the time since ``begin``.

        Args:
            begin: Time of the last output.
        """
        windows = [item for item in self._windows if item[1] - max(item[0], begin) >= 0.5 * (item[1] - item[0])]
        middle = begin + (self._time - begin) / 2
        windows = [item for item in windows if item[0] >= middle] or windows[-1:]
        total = sum(end - start for start, end, *_ in windows)
        if total <= 0:
            return None, None, None
        rate = sum((end - start) * rate for start, end, rate, *_ in windows) / total
        wait = sum((end - start) * wait for start, end, _, wait, _ in windows) / total
        busy = [item[4] for item in windows if item[4] is not None]
        return rate, wait, min(busy) if busy else None

    def last_rate(self) -> float | None:
        """Return what was used and wanted of processors in the last window; None where it is not known."""
        return self._windows[-1][2] + self._windows[-1][3] if self._windows else None

    def summary(self, silent_rate: float | None) -> SampleSummary:
        """Return the samples in short."""
        return SampleSummary(
            self._count,
            round(self._cpu_s / self._cpu_over_s, 3) if self._cpu_over_s > 0 else None,
            None if silent_rate is None else round(silent_rate, 3),
            self._rss or None,
            self._threads or None,
            self._gpu_busy,
            self._gpu_power,
            self.last,
        )


def _most(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


class Patience(msgspec.Struct):
    """How long a run may be silent, in the phase that it is in.

    Attributes:
        spec: Its limits.
        limit_s: Silence allowed now.
        slow: The slow first run that may be going on.
        last_output: When the last output or phase came, by the supervisor's clock.
        last_work: The last time that it was seen to work.
        announced: When slow progress was last told.
    """

    spec: AttemptSpec
    limit_s: float
    last_output: float
    last_work: float
    slow: SlowFirstRun | None = None
    announced: float = 0.0

    def enter(self, name: str, phase: Phase | None = None, slow: str = "") -> None:
        """Take the limits of a phase that begins."""
        limits = self.spec.limits
        self.limit_s = limits.phase_silence.get(name) or (phase.silence_s if phase else 0) or limits.silence_s
        slow = slow or (phase.slow if phase else "")
        self.slow = slow_first_runs().get(slow) if self.spec.allow_slow_first_run else None
        if self.slow is not None and self.slow.allowance_s <= self.limit_s:
            self.slow = None

    def heard(self, now: float) -> None:
        """It said something."""
        self.last_output = self.last_work = now

    def sampled(self, now: float, rate: float | None) -> None:
        """It was seen at work, or could not be seen at all."""
        if rate is None or rate >= WORKING_RATE:
            self.last_work = now

    def deadline(self) -> float:
        """Return when the silence has lasted too long, as things are."""
        if self.slow is None:
            return self.last_output + self.limit_s
        begin = max(self.last_output, self.last_work)  # idle for as long as any phase may be: no compiler
        return min(begin + self.limit_s, self.last_output + self.slow.allowance_s)

    def in_slow_progress(self, now: float) -> bool:
        """Whether it is past its usual silence, at work on a first run known to be slow."""
        return self.slow is not None and now > self.last_output + self.limit_s and now < self.deadline()


def silence_of(samples: SampleLog, begin: float, *, uses_gpu: bool) -> Silence:
    """Say what the run has done since its last output at ``begin``."""
    rate, wait, busy = samples.since(begin)
    if rate is None and samples.last is not None and samples.last.state in {"T", "D"}:
        return Silence.BLOCKED
    silence = classify_silence(rate, wait, busy if uses_gpu else None)
    if silence is Silence.WORKING and rate is not None and rate < BLOCKED_RATE:
        return Silence.BLOCKED  # it only waited for a processor, in the moment that it woke
    return silence
