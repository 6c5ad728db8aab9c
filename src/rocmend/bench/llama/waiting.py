"""How long a program waited for a processor that others had: its threads are read while it runs.

Source: https://docs.kernel.org/scheduler/sched-stats.html (schedstat of a task: ns run, ns waited on a run queue)
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from rocmend.runner.samples import all_processes, tree

_EVERY_S = 0.1
_MOST_THREADS = 512
_BUSY = 0.5
"""Of what the busiest thread was ready to run, how much another one was that counts."""


class Waiting:
    """What the programs that this process starts have waited until now."""

    def __init__(self) -> None:
        self._threads: dict[int, tuple[int, int]] = {}

    @property
    def share(self) -> float:
        """Of the time that a thread was ready to run, the share that it waited: of the one that waited longest."""
        ready = {thread: run + waited for thread, (run, waited) in self._threads.items()}
        most = max(ready.values(), default=0)
        shares = [self._threads[thread][1] / time for thread, time in ready.items() if time and time >= _BUSY * most]
        return round(max(shares, default=0.0), 4)

    def read(self, pids: list[int]) -> bool:
        """Read the threads of processes; say whether one of them lives."""
        found = False
        for pid in pids:
            with contextlib.suppress(OSError, ValueError, IndexError):
                for thread in sorted(os.listdir(f"/proc/{pid}/task"))[:_MOST_THREADS]:  # noqa: PTH208  often
                    run, waited = Path(f"/proc/{pid}/task/{thread}/schedstat").read_text("ascii").split()[:2]
                    self._threads[int(thread)] = int(run), int(waited)
                    found = True
        return found


@contextlib.contextmanager
def waiting() -> Iterator[Waiting]:
    """Watch what is started meanwhile; the share is known at the end. It takes under 1 % of a processor."""
    found, ended = Waiting(), threading.Event()

    def watch() -> None:
        pids: list[int] = []
        while not ended.wait(_EVERY_S):
            if not pids or not found.read(pids):
                pids = [process.pid for process in tree(os.getpid(), all_processes())]
                found.read(pids)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()
