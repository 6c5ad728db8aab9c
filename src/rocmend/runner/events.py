"""What is seen of an attempt while it runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class EventKind(StrEnum):
    """What an event tells."""

    START = "start"
    OUTPUT = "output"
    PHASE = "phase"
    SAMPLE = "sample"
    STACK = "stack"
    DMESG = "dmesg"
    NOTE = "note"
    SLOW_PROGRESS = "slow-progress"
    END = "end"


class Sample(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the processes of an attempt, and the GPU, were doing. None and "" where it could not be read.

    Attributes:
        cpu_rate: Processor seconds a second over all its processes since the last sample; 1.0 is one core.
        cpu_wait_rate: Seconds a second that its threads were ready to run while others ran.
        state: Letter of the busiest process's state: R runs, S waits, D waits in the kernel, T is stopped, Z ended.
        wchan: Kernel function that it waits in.
        rss_bytes: Resident memory of all processes.
        threads: Threads of all processes.
        processes: Number of processes.
        gpu_busy_percent: As the driver says; the busiest GPU's.
        gpu_power_w: Power of that GPU.
        gpu_clock_mhz: Its shader clock.
    """

    cpu_rate: float | None = None
    cpu_wait_rate: float | None = None
    state: str = ""
    wchan: str = ""
    rss_bytes: int | None = None
    threads: int | None = None
    processes: int | None = None
    gpu_busy_percent: float | None = None
    gpu_power_w: float | None = None
    gpu_clock_mhz: float | None = None


class Stack(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a silent process stood.

    Attributes:
        kind: ``python`` or ``kernel``.
        text: The stack as it was printed.
        pid: The process, or thread for a kernel stack.
    """

    kind: str
    text: str
    pid: int = 0


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that happened.

    Attributes:
        time_ms: Since the attempt's start.
        kind: What it is.
        text: The output line, the note, the kernel line, or the mark that began a phase.
        stream: ``stdout`` or ``stderr`` of an output line.
        phase: The phase that began, or that it is in.
        sample: For ``sample``.
        stack: For ``stack``.
        data: What else belongs to it; of ``start`` the spec, of ``end`` the result.
    """

    time_ms: float
    kind: EventKind
    text: str = ""
    stream: str = ""
    phase: str = ""
    sample: Sample | None = None
    stack: Stack | None = None
    data: dict[str, Any] = {}
