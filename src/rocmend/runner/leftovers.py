"""Ending the processes of an attempt without its warden, by what was seen of them.

A process is known by its number and its start time together: a number alone may be another process by now.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection, Mapping

import msgspec

from rocmend.core.stall import StallClock
from rocmend.runner.samples import Process, all_processes, process_of, tree, wait_channel

KILL_S = 2.0
"""Seconds after which a killed process counts as stuck in the kernel."""

_PAUSE_S = 0.005


class Ended(msgspec.Struct, frozen=True):
    """What became of the processes that an attempt left.

    Attributes:
        count: How many there were.
        survivors: Number, state and place in the kernel of those that KILL did not end.
    """

    count: int
    survivors: tuple[tuple[int, str, str], ...]


def living(seen: Mapping[int, int], sessions: Collection[int], processes: Mapping[int, Process]) -> list[Process]:
    """Return the living processes that were seen, those of their sessions, and what descends from any of them.

    Args:
        seen: Numbers and start times.
        sessions: Sessions that they had when they were last looked at. One whose number now belongs to a leader that
            was not seen is another one, and left alone.
        processes: All processes.
    """
    known = {
        session for session in sessions if session not in processes or processes[session].began == seen.get(session)
    }
    roots = [
        process
        for process in processes.values()
        if seen.get(process.pid) == process.began
        or (process.session in known and process.session not in {0, os.getsid(0)})
    ]
    found = {process.pid: process for root in roots for process in (root, *tree(root.pid, dict(processes)))}
    return [process for process in found.values() if process.state not in "ZX" and process.pid != os.getpid()]


def kill(process: Process, sig: signal.Signals = signal.SIGKILL) -> None:
    """Signal a process, and no other that was given its number since."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):  # before Linux 5.3, or a sandbox forbids it
        descriptor = -1
    try:
        now = process_of(process.pid)
        if now is None or now.began != process.began:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if descriptor >= 0:
                signal.pidfd_send_signal(descriptor, sig)
            else:
                os.kill(process.pid, sig)
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def end(seen: Mapping[int, int], sessions: Collection[int]) -> Ended:
    """Kill what is left of an attempt, and wait until it is gone.

    Args:
        seen: Numbers and start times of its processes.
        sessions: Their sessions.
    """
    clock = StallClock()
    deadline = clock.now() + KILL_S
    found: dict[int, int] = {}
    while True:
        left = living({**seen, **found}, sessions, all_processes())
        found.update((process.pid, process.began) for process in left)
        if not left or clock.now() > deadline:
            break
        for sig in (signal.SIGSTOP, signal.SIGKILL):  # stopped first, so that none can fork while its turn has not come
            for process in left:
                kill(process, sig)
        clock.sleep(_PAUSE_S)
    return Ended(len(found), tuple((process.pid, process.state, wait_channel(process.pid)) for process in left))
