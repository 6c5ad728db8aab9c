"""Watching child processes: their pipes, their time limits and how they end.

A watched child leads its own process group. When its time is up the whole group gets TERM, a grace period, then KILL. A
child that survives KILL (state D: waiting in a driver) is left behind and named, because nothing can end it. All of it
is driven by events, so a child that takes its time to die holds up no other. Time in which we were paused ourselves
counts towards no limit.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
from collections.abc import Sequence
from enum import StrEnum
from typing import Self

from rocmend.core.stall import StallClock

GRACE_S = 0.5
"""Time between TERM and KILL, in seconds, for short-lived collectors and tools."""

ABANDON_S = 1.0
"""Time after KILL, in seconds, after which a child counts as stuck in the kernel."""

PROGRESS_SHARE = 0.01
"""CPU time over wall time below which a session stands still; a machine that is loaded or swaps leaves it little."""

_CHUNK_BYTES = 1 << 16
_DRAIN_CHUNKS = 16  # as much as the largest pipe that anybody may make holds
_POLL_S = 0.005  # only where the kernel has no pidfd (before Linux 5.3) or a sandbox forbids it


class Ending(StrEnum):
    """How a child ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMEOUT = "timeout"
    NOT_FOUND = "not-found"
    NOT_EXECUTABLE = "not-executable"
    NOT_STARTED = "not-started"
    FLOODED = "flooded"


def signal_group(pid: int, sig: signal.Signals) -> None:
    """Signal the process group led by ``pid``, if it is still there and ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, sig)


def has_exited(pid: int) -> bool:
    """Whether our child has ended; leaves it unreaped, so that its process group id cannot be given to another."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True  # reaped elsewhere, or SIGCHLD is ignored


def reap(pid: int) -> int | None:
    """Reap a child that has ended; None where its status is lost (reaped elsewhere)."""
    try:
        return os.waitpid(pid, os.WNOHANG)[1]
    except ChildProcessError:
        return None


def _wait(pid: int, seconds: float) -> bool:
    clock = StallClock()
    deadline = clock.now() + seconds
    pause = 0.0005
    while not has_exited(pid):
        if clock.now() >= deadline:
            return False
        clock.sleep(pause)
        pause = min(pause * 2, 0.02)
    return True


def end_group(pid: int, grace_s: float = GRACE_S) -> int | None:
    """End the process group led by our child ``pid``: TERM, grace, KILL; blocks until it is over.

    Args:
        pid: The child, leader of its group.
        grace_s: Seconds between TERM and KILL.

    Returns:
        The child's wait status, or None where even KILL did not end it or its status was taken by another.
    """
    signal_group(pid, signal.SIGTERM)
    _wait(pid, grace_s)
    signal_group(pid, signal.SIGKILL)  # also for grandchildren that ignored TERM; the unreaped leader keeps the id ours
    return reap(pid) if _wait(pid, ABANDON_S) else None


class Watched:
    """A child that leads its own process group, with the read ends of the pipes it writes to.

    Args:
        pid: The child.
        streams: File descriptors to read until the child ends; they become non-blocking and are closed at the end.
        clock: The clock of its watcher.
        limit_s: Seconds from now after which it is ended.
        max_bytes: Bytes kept of each stream; a child that writes more is ended as ``flooded``.

    Attributes:
        deadline: When it is ended, by the clock.
        ending: Why we ended it, or None where it ended by itself.
        status: Its wait status once it is over; None where it is not known.
        over: It has ended, or cannot be ended.
        unkillable: It survived KILL.
    """

    def __init__(self, pid: int, streams: Sequence[int], *, clock: StallClock, limit_s: float, max_bytes: int) -> None:
        self.pid = pid
        self.clock = clock
        self.buffers = {stream: bytearray() for stream in streams}
        self.deadline = clock.now() + limit_s
        self.max_bytes = max_bytes
        self.ending: Ending | None = None
        self.status: int | None = None
        self.over = False
        self.unkillable = False
        self._killed = False
        for stream in streams:
            os.set_blocking(stream, False)
        try:
            self.pidfd: int | None = os.pidfd_open(pid)
        except (OSError, AttributeError):
            self.pidfd = None

    def received(self, stream: int) -> None:
        """Look at what came in; called after each read. A subclass that consumes its buffer overrides this."""
        if len(self.buffers[stream]) > self.max_bytes:
            self.stop(Ending.FLOODED)

    def read(self, stream: int) -> int:
        """Read once from a stream; return the number of bytes, 0 at its end, -1 where there is nothing now."""
        try:
            data = os.read(stream, _CHUNK_BYTES)
        except BlockingIOError:
            return -1
        if data:
            self.buffers[stream] += data
            self.received(stream)
        return len(data)

    def stop(self, ending: Ending) -> None:
        """Begin to end the child's group, for this reason."""
        if self.ending is None:
            self.ending = ending
            signal_group(self.pid, signal.SIGTERM)
            self.deadline = self.clock.now() + GRACE_S

    def expire(self) -> None:
        """Take the next step towards the end, the time for the last one being up."""
        if self.ending is None:
            self.stop(Ending.TIMEOUT)
        elif not self._killed:
            self._killed = True
            signal_group(self.pid, signal.SIGKILL)
            self.deadline = self.clock.now() + ABANDON_S
        else:
            self.unkillable = True
            self.over = True

    def drain(self) -> None:
        """Read what lies in its pipes, up to a bound."""
        for stream in self.buffers:
            for _ in range(_DRAIN_CHUNKS):
                if self.ending is not None or self.read(stream) <= 0:
                    break

    def settle(self) -> None:
        """Collect the rest of a child that has ended: what is left in its pipes, its grandchildren, its status."""
        signal_group(self.pid, signal.SIGKILL)  # what a tool leaves behind goes with it, and stops holding the pipe
        for stream in self.buffers:
            while self.ending is None and self.read(stream) > 0:
                pass
        self.status = reap(self.pid)
        self.over = True

    def close(self) -> None:
        """Let go of the pipes."""
        for descriptor in (*self.buffers, self.pidfd):
            if descriptor is not None:
                os.close(descriptor)


class WatchedWork(Watched):
    """A child that works for as long as it has to: it is ended when its session has stood still.

    Args:
        pid: The child, leader of its session.
        streams: As for ``Watched``.
        clock: As for ``Watched``.
        limit_s: Seconds from now after which it is ended whatever it does.
        stall_limit_s: Seconds without progress after which it is ended. Progress is ``PROGRESS_SHARE`` of a processor.
        max_bytes: As for ``Watched``.
    """

    def __init__(  # noqa: PLR0913  as Watched
        self,
        pid: int,
        streams: Sequence[int],
        *,
        clock: StallClock,
        limit_s: float,
        stall_limit_s: float,
        max_bytes: int,
    ) -> None:
        super().__init__(pid, streams, clock=clock, limit_s=min(limit_s, stall_limit_s), max_bytes=max_bytes)
        self._end = clock.now() + limit_s
        self._stall_limit_s = stall_limit_s
        self._cpu_s = 0.0

    def expire(self) -> None:
        """Begin another period where there was progress in this one."""
        now = self.clock.now()
        if self.ending is None and now < self._end:
            used = session_cpu_s(self.pid)
            if used is None or abs(used - self._cpu_s) >= PROGRESS_SHARE * self._stall_limit_s:
                self._cpu_s = used or 0.0
                self.deadline = min(self._end, now + self._stall_limit_s)
                return
        super().expire()


def session_cpu_s(leader: int) -> float | None:
    """Return the CPU time of a session's processes and of those they have reaped; None where it cannot be read.

    Args:
        leader: The session's id.
    """
    ticks, seen = 0, False
    try:
        names = os.listdir("/proc")  # noqa: PTH208  names are all that is wanted
    except OSError:
        return None
    for name in names:
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
            if int(fields[3]) == leader:
                ticks += sum(int(one) for one in fields[11:15])
                seen = True
    return ticks / os.sysconf("SC_CLK_TCK") if seen else None


class Watcher:
    """Watches children side by side; a context manager that leaves none of them behind.

    Attributes:
        clock: Time without our own pauses: the children's deadlines are by it.
    """

    def __init__(self) -> None:
        self.clock = StallClock()
        self._selector = selectors.DefaultSelector()
        self.alive: list[Watched] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End whatever is still alive (an interrupt came) and let go of everything."""
        for child in self.alive:
            child.stop(Ending.TIMEOUT)
            child.deadline = min(child.deadline, self.clock.now() + GRACE_S / 2)  # before our own parent's KILL
        while self.alive:
            self.wait()
        self._selector.close()

    def add(self, child: Watched) -> None:
        """Watch a child."""
        self.alive.append(child)
        for stream in child.buffers:
            self._selector.register(stream, selectors.EVENT_READ, child)
        if child.pidfd is not None:
            self._selector.register(child.pidfd, selectors.EVENT_READ, child)

    def wait(self) -> list[Watched]:
        """Wait until something happens; return the children that are over."""
        pause = min((child.deadline for child in self.alive), default=0.0) - self.clock.now()
        if any(child.pidfd is None for child in self.alive):
            pause = min(pause, _POLL_S)
        for key, _ in self.clock.wait(self._selector.select, pause):
            child: Watched = key.data
            if key.fd != child.pidfd and (child.read(key.fd) == 0 or child.ending is not None):
                self._selector.unregister(key.fd)
        over = [child for child in self.alive if self._look(child)]
        self.alive = [child for child in self.alive if not child.over]
        return over

    def _look(self, child: Watched) -> bool:
        """Take a child's next step, if there is one; return whether it is over."""
        if has_exited(child.pid):
            child.settle()
        elif child.deadline <= self.clock.now():
            child.drain()  # what it has said in time may grant it more
            if child.deadline <= self.clock.now():
                child.expire()
        if child.over:
            for descriptor in (*child.buffers, child.pidfd):
                if descriptor is not None and descriptor in self._selector.get_map():
                    self._selector.unregister(descriptor)
            child.close()
        return child.over
