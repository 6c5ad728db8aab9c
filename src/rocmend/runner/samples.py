"""What a tree of processes does: processor time, states, memory, where it waits; read from ``/proc``.

Sources: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html,
https://docs.kernel.org/scheduler/sched-stats.html (schedstat: time run and time waited on a run queue, in ns)
"""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from pathlib import Path

import msgspec

from rocmend.runner.events import Sample, Stack

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MAX_THREADS = 512
_MAX_STACKS = 8
_GPU_NODES = ("/dev/kfd", "/dev/dri/", "/dev/nvidia")


class Process(msgspec.Struct, gc=False):
    """One line of ``/proc/PID/stat``: what is needed of it."""

    pid: int
    state: str
    parent: int
    cpu_s: float
    """Its own time and that of children that it has reaped."""
    threads: int
    rss_bytes: int
    began: int
    """When it was started, in clock ticks after the boot: tells it from another that was given its number later."""
    session: int = 0


def parse_stat(pid: int, data: bytes) -> Process | None:
    """Return a process from its stat line; None where the line is cut or odd.

    Args:
        pid: The process.
        data: Contents of ``/proc/PID/stat``.
    """
    fields = data.rpartition(b")")[2].split()
    try:
        ticks = sum(int(value) for value in fields[11:15])
        return Process(
            pid,
            fields[0].decode("ascii", "replace"),
            int(fields[1]),
            ticks / _TICKS,
            int(fields[17]),
            int(fields[21]) * _PAGE,
            int(fields[19]),
            int(fields[3]),
        )
    except (ValueError, IndexError):
        return None


def process_of(pid: int) -> Process | None:
    """Return a process; None where there is none of that number."""
    return parse_stat(pid, _read(f"/proc/{pid}/stat"))


def all_processes() -> dict[int, Process]:
    """Return every process that can be seen."""
    found = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  every second, for every process
        if name.isdigit():
            process = process_of(int(name))
            if process:
                found[process.pid] = process
    return found


def tree(root: int, processes: dict[int, Process]) -> list[Process]:
    """Return the living descendants of a process, parents first."""
    children: dict[int, list[Process]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        below = children.pop(waiting.pop(), [])
        found.extend(process for process in below if process.state not in "ZX")
        waiting.extend(process.pid for process in below)
    return found


def _read(path: str, size: int = 4096) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, size)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _threads(pid: int) -> list[str]:
    return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  as above


class TreeSampler:
    """Samples the descendants of a process.

    Args:
        root: The process whose descendants are meant; its own reaped children's time counts, itself does not.
        include_root: The root itself is one of them.

    Attributes:
        seen: Processes seen so far (at most 4096) with their start times, for telling whose death the kernel log speaks
            of, and for ending them where their warden cannot.
        sessions: Sessions of those that the last sample found.
    """

    def __init__(self, root: int, *, include_root: bool = False) -> None:
        self.root = root
        self.include_root = include_root
        self.seen: dict[int, int] = {}
        self.sessions: set[int] = set()
        self._last: tuple[float, float] | None = None
        self._last_wait: dict[int, int] = {}
        self._last_cpu: dict[int, float] = {}

    def members(self, processes: dict[int, Process] | None = None) -> list[Process]:
        """Return the living processes that are meant."""
        processes = all_processes() if processes is None else processes
        found = tree(self.root, processes)
        if self.include_root and self.root in processes and processes[self.root].state not in "ZX":
            found.insert(0, processes[self.root])
        return found

    def sample(self) -> Sample | None:
        """Return what they do; rates are since the last sample. None where none of them lives."""
        begin = time.monotonic()
        processes = all_processes()
        members = self.members(processes)
        root = processes.get(self.root)
        self.seen.update((process.pid, process.began) for process in members[: max(0, 4096 - len(self.seen))])
        self.sessions = {process.session for process in members}
        total = sum(process.cpu_s for process in members)
        if root is not None and not self.include_root:
            total += _reaped_s(self.root)
        waited = self._waited(members)
        rate = wait_rate = None
        if self._last is not None and begin > self._last[0]:
            elapsed = begin - self._last[0]
            rate = max(0.0, round((total - self._last[1]) / elapsed, 3))
            wait_rate = None if waited is None else round(waited / 1e9 / elapsed, 3)
        busiest = self._busiest(members)
        self._last = (begin, total)
        self._last_cpu = {process.pid: process.cpu_s for process in members}
        if not members:
            return None
        return Sample(
            cpu_rate=rate,
            cpu_wait_rate=wait_rate,
            state=busiest.state,
            wchan="" if busiest.state == "R" else wait_channel(busiest.pid),
            rss_bytes=sum(process.rss_bytes for process in members),
            threads=sum(process.threads for process in members),
            processes=len(members),
        )

    def _busiest(self, members: list[Process]) -> Process:
        """Return the process that used most time since the last sample; where none did, one in state D, T or S."""
        order = "RDTtSI"
        return max(
            members or [Process(0, "", 0, 0.0, 0, 0, 0)],
            key=lambda process: (
                round(process.cpu_s - self._last_cpu.get(process.pid, process.cpu_s), 2),
                -order.find(process.state),
                process.pid,
            ),
        )

    def _waited(self, members: list[Process]) -> int | None:
        """Return the ns that threads have waited on run queues since the last sample; None where it is not counted."""
        now: dict[int, int] = {}
        for process in members:
            with contextlib.suppress(OSError):
                for thread in _threads(process.pid)[: _MAX_THREADS - len(now)]:
                    fields = _read(f"/proc/{process.pid}/task/{thread}/schedstat").split()
                    if len(fields) == 3:
                        now[int(thread)] = int(fields[1])
        waited = sum(max(0, value - self._last_wait.get(thread, value)) for thread, value in now.items())
        self._last_wait = now
        return waited if now else None

    def kernel_stacks(self) -> tuple[Stack, ...]:
        """Return the kernel stacks that may be read (root only) of the first few threads, those in state D first."""
        threads: list[tuple[str, int, int]] = []
        for process in self.members():
            with contextlib.suppress(OSError):
                for thread in _threads(process.pid)[:_MAX_THREADS]:
                    task = parse_stat(int(thread), _read(f"/proc/{process.pid}/task/{thread}/stat"))
                    if task:
                        threads.append((task.state, process.pid, int(thread)))
        threads.sort(key=lambda item: item[0] != "D")
        stacks = []
        for _, pid, task_id in threads[:_MAX_STACKS]:
            text = _read(f"/proc/{pid}/task/{task_id}/stack", 1 << 14).decode(errors="replace").strip()
            if text:
                stacks.append(Stack("kernel", text, task_id))
        return tuple(stacks)

    def uses_gpu(self) -> bool:
        """Whether one of them holds a GPU's device node open."""
        for process in self.members():
            with contextlib.suppress(OSError):
                for link in itertools.islice(Path(f"/proc/{process.pid}/fd").iterdir(), 4096):
                    with contextlib.suppress(OSError):
                        if str(link.readlink()).startswith(_GPU_NODES):
                            return True
        return False


def _reaped_s(pid: int) -> float:
    """Return the processor seconds of children that a process has reaped."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    try:
        return (int(fields[13]) + int(fields[14])) / _TICKS
    except (ValueError, IndexError):
        return 0.0


def wait_channel(pid: int) -> str:
    """Return the kernel function that a process waits in; empty where it may not be read or it does not wait."""
    text = _read(f"/proc/{pid}/wchan").decode("ascii", "replace").strip()
    return "" if text == "0" else text
