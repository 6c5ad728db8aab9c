"""Clocks, power, temperature and what holds them down, read while blocks run.

Sources: https://docs.nvidia.com/deploy/nvidia-smi/index.html (the fields and the bits of clocks_event_reasons),
https://docs.kernel.org/admin-guide/pm/cpufreq.html (scaling_cur_freq)
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from rocmend.core.units import share_text
from rocmend.runner.gpu import GpuSampler

EVERY_S = 0.1
"""Between two readings; one of sysfs takes less than a millisecond."""
FELL = 0.1
"""A clock that fell by more than this between blocks is flagged."""
WAITED = 0.02
"""Share of the time that a process on the CPU may wait for a processor before that is flagged."""
_MOST_KEPT = 20_000
_MOST_CLOCKS = 32
_SMI = ("utilization.gpu", "clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "clocks_throttle_reasons.active")
_SMI_REASONS = {
    0x4: "power limit",
    0x8: "hardware slowdown",
    0x20: "temperature",
    0x40: "temperature",
    0x80: "power brake",
}


class Reading(msgspec.Struct, frozen=True, omit_defaults=True):
    """Sensors at a time; None where nothing says.

    Attributes:
        at: By the monotonic clock, seconds.
        clock_mhz: Of the GPU's engine.
        memory_clock_mhz: Of its memory.
        power_w: Of the GPU; of the whole package on an APU.
        temperature_c: The highest of the GPU.
        cpu_clock_mhz: The highest of the processor's cores.
        throttle: What holds the GPU's clocks down, in words.
    """

    at: float
    clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    cpu_clock_mhz: float | None = None
    throttle: tuple[str, ...] = ()


FIELDS = ("clock_mhz", "memory_clock_mhz", "power_w", "temperature_c", "cpu_clock_mhz")
Source = Callable[[], dict[str, Any]]
"""Reads some fields of a ``Reading`` now."""


class Telemetry:
    """Reads sensors in a thread, from ``with`` on to its end.

    Args:
        sources: What is read.
        every_s: How often.
        close: Called at the end.
    """

    def __init__(
        self, sources: Sequence[Source], every_s: float = EVERY_S, close: Callable[[], None] | None = None
    ) -> None:
        self._sources, self._every_s, self._close = sources, every_s, close
        self._readings: list[Reading] = []
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def __enter__(self) -> Self:
        if self._sources:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(timeout=2.0)  # a driver that hangs must not keep the result back
        if self._close is not None:
            self._close()

    def read(self) -> None:
        """Read all sources once."""
        found: dict[str, Any] = {}
        for source in self._sources:
            with contextlib.suppress(OSError, ValueError):
                found |= source()
        if not found:
            return
        with self._lock:
            self._readings.append(Reading(time.monotonic(), **found))
            del self._readings[:-_MOST_KEPT]

    def between(self, begin: float, end: float) -> list[Reading]:
        """Return the readings between two times of the monotonic clock; where none is, the last one before the end."""
        with self._lock:
            found = [one for one in self._readings if begin <= one.at <= end]
            if not found:
                found = [one for one in self._readings if one.at <= end][-1:]
            return [one for one in found if one.at >= begin - 2 * self._every_s]

    def _loop(self) -> None:
        self.read()
        while not self._end.wait(self._every_s):
            self.read()


def telemetry(*, gpu: bool) -> Telemetry:
    """Return what reads this machine's sensors.

    Args:
        gpu: Read those of a GPU, too.
    """
    sources: list[Source] = [_cpu_clock()]
    close = None
    if gpu:
        sampler = GpuSampler()
        if sampler.present:
            sources.append(lambda: _amd(sampler))
        elif program := shutil.which("nvidia-smi"):
            smi = Smi(program)
            sources.append(smi.read)
            close = smi.close
    return Telemetry(sources, close=close)


def _amd(sampler: GpuSampler) -> dict[str, Any]:
    sample = sampler.sample(closely=True)
    if sample is None:
        return {}
    names = ("clock_mhz", "memory_clock_mhz", "power_w", "temperature_c", "throttle")
    return {name: getattr(sample, name) for name in names}


def _cpu_clock(folder: Path = Path("/sys/devices/system/cpu/cpufreq")) -> Source:
    files = sorted(folder.glob("policy*/scaling_cur_freq"))[:_MOST_CLOCKS]

    def read() -> dict[str, Any]:
        clocks = [float(path.read_text(encoding="ascii")) / 1e3 for path in files]  # kHz
        return {"cpu_clock_mhz": round(max(clocks))} if clocks else {}

    return read


class Smi:
    """``nvidia-smi`` in a loop; its last line of the busiest GPU is what is read."""

    def __init__(self, program: str) -> None:
        query = [program, f"--query-gpu={','.join(_SMI)}", "--format=csv,noheader,nounits", f"-lms={EVERY_S * 1e3:.0f}"]
        self._last: dict[str, Any] = {}
        self._process: subprocess.Popen[str] | None = None
        self.thread = threading.Thread(target=self._follow, daemon=True)
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(  # noqa: S603  the program is the one on PATH, its words are ours
                query, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            self.thread.start()

    def _follow(self) -> None:
        assert self._process is not None  # noqa: S101  it is started by then
        assert self._process.stdout is not None  # noqa: S101  as above
        best = -1.0
        seen = 0.0
        for line in self._process.stdout:
            now = time.monotonic()
            busy, found = parse_smi(line)
            if now - seen > EVERY_S / 2:  # the first line of the next round
                best = -1.0
            seen = now
            if busy >= best:
                best, self._last = busy, found

    def read(self) -> dict[str, Any]:
        """Return the last line."""
        return self._last

    def close(self) -> None:
        """End the program."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=2.0)
            self.thread.join(timeout=2.0)
            if self._process.stdout is not None:
                self._process.stdout.close()


def parse_smi(line: str) -> tuple[float, dict[str, Any]]:
    """Read a line of ``nvidia-smi``: how busy the GPU is, and the fields of a reading.

    Args:
        line: Values of ``_SMI``, comma-separated, without units; ``[N/A]`` where there is none.
    """
    values = [part.strip() for part in line.split(",")]
    if len(values) != len(_SMI):
        return -1.0, {}
    busy, clock, memory, power, temperature = (_value(text) for text in values[:-1])
    reasons: tuple[str, ...] = ()
    with contextlib.suppress(ValueError):
        mask = int(values[-1], 16)
        reasons = tuple(dict.fromkeys(name for bit, name in _SMI_REASONS.items() if mask & bit))
    return busy or 0.0, {
        "clock_mhz": clock,
        "memory_clock_mhz": memory,
        "power_w": power,
        "temperature_c": temperature,
        "throttle": reasons,
    }


def _value(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def summarized(blocks: Sequence[Sequence[Reading]], *, gpu: bool, waited: Sequence[float] = ()) -> dict[str, Any]:
    """Return what sensors said during the blocks of a case, as JSON values.

    Args:
        blocks: The readings of each block, in order.
        gpu: It ran on a GPU.
        waited: By block, the share of its time that it waited for a processor.

    Returns:
        By field ``mean``, ``low``, ``high`` over blocks; ``throttle``, what held the clocks down and in which share of
        the readings; ``notes``, what is to be known. Empty where nothing was read.
    """
    found: dict[str, Any] = {}
    notes: list[str] = []
    for field in FIELDS if gpu else FIELDS[-1:]:
        means = [
            statistics.fmean(values)
            for block in blocks
            if (values := [value for one in block if (value := getattr(one, field)) is not None])
        ]
        if not means:
            continue
        low, high = min(means), max(means)
        found[field] = {"mean": round(statistics.fmean(means), 1), "low": round(low, 1), "high": round(high, 1)}
        fell = _largest_fall(means)
        if field == ("clock_mhz" if gpu else "cpu_clock_mhz") and fell[0] > FELL:
            notes.append(
                f"the clock fell by {share_text(fell[0])} between blocks: {fell[1]:,.0f} to {fell[2]:,.0f} MHz"
            )
    readings = [one for block in blocks for one in block]
    reasons: dict[str, int] = {}
    for one in readings if gpu else ():
        for reason in one.throttle:
            reasons[reason] = reasons.get(reason, 0) + 1
    if reasons:
        found["throttle"] = {reason: round(count / len(readings), 2) for reason, count in reasons.items()}
        notes += [
            f"throttled by {reason} in {share_text(share)} of the readings"
            for reason, share in found["throttle"].items()
        ]
    if waited and (share := statistics.fmean(waited)) > WAITED:
        found["waited"] = round(share, 2)
        notes.append(f"waited for the processor in {share_text(share)} of the time: this machine is busy")
    return {**found, "notes": notes} if notes else found


def _largest_fall(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the largest fall in a series as a share, and its two ends."""
    most = (0.0, values[0], values[0])
    highest = values[0]
    for value in values:
        highest = max(highest, value)
        if highest > 0 and 1 - value / highest > most[0]:
            most = 1 - value / highest, highest, value
    return most
