"""Several processes that look at files: one that crashes, hangs or grows costs one file, not the run."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

import rocmend
from rocmend.core.errors import RocmendError
from rocmend.port.look import Look, Task, not_looked_at
from rocmend.port.settings import Settings
from rocmend.port.worker import Setup, read_frame, write_frame

__all__ = ["looks"]


# -P: the folder that the command is called in is somebody's project, not a place to import from
_COMMAND = [sys.executable, "-P", "-m", "rocmend.port.worker"]


class _Worker:
    """One process and the file that it is looking at."""

    def __init__(self, root: Path, settings: Settings, first: Task) -> None:
        own = str(Path(rocmend.__file__).parent.parent)
        inherited = os.environ.get("PYTHONPATH", "")
        self.process = subprocess.Popen(
            _COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,  # a frame that waits in a buffer of ours is not seen by select
            env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in (own, inherited) if part)},
            start_new_session=True,  # an interrupt is for the parent, which ends its children
        )
        self.task = first
        self.started = False
        setup = Setup(str(root), settings.max_file_bytes, settings.memory_limit_bytes)
        with contextlib.suppress(BrokenPipeError):  # seen when the first answer does not come
            write_frame(self.stdin, msgspec.msgpack.encode(setup))
        self.give(first, settings.time_limit_s)

    @property
    def stdin(self) -> BinaryIO:
        """Where tasks go."""
        return cast("BinaryIO", self.process.stdin)

    @property
    def stdout(self) -> BinaryIO:
        """Where answers come from."""
        return cast("BinaryIO", self.process.stdout)

    def give(self, task: Task, time_limit_s: float) -> None:
        self.task = task
        self.deadline = time.monotonic() + time_limit_s
        with contextlib.suppress(BrokenPipeError):
            write_frame(self.stdin, msgspec.msgpack.encode(task))

    def end(self) -> str:
        """End the process and say how it ended."""
        self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.stdin.close()
        self.stdout.close()
        code = self.process.wait()
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def looks(root: Path, tasks: Iterable[Task], jobs: int, settings: Settings) -> Iterator[Look]:
    """Look at files in ``jobs`` processes and yield what was found, in no particular order.

    Args:
        root: The project.
        tasks: The files.
        jobs: How many processes, at least one.
        settings: Its limits hold for each file.

    Raises:
        RocmendError: Such a process does not start.
    """
    waiting = deque(tasks)
    decoder = msgspec.msgpack.Decoder(tuple[Look, bool])
    workers: set[_Worker] = set()
    with selectors.DefaultSelector() as selector:

        def start() -> None:
            worker = _Worker(root, settings, waiting.popleft())
            workers.add(worker)
            selector.register(worker.stdout, selectors.EVENT_READ, worker)

        def stop(worker: _Worker) -> str:
            selector.unregister(worker.stdout)
            workers.discard(worker)
            return worker.end()

        try:
            while waiting or workers:
                while waiting and len(workers) < jobs:
                    start()
                nearest = min(worker.deadline for worker in workers)
                ready = selector.select(max(0.0, nearest - time.monotonic()))
                now = time.monotonic()
                answered = {key.data for key, _ in ready}
                overdue = [worker for worker in workers if worker.deadline <= now and worker not in answered]
                for key, _ in ready:
                    worker: _Worker = key.data
                    frame = read_frame(worker.stdout)
                    if frame is None:
                        code = worker.process.poll()
                        ended = _ended(code, stop(worker))
                        if not worker.started:
                            raise RocmendError(
                                "port",
                                f"a process that reads files does not start ({ended}).",
                                next_step=f"See why with: {' '.join(_COMMAND)} < /dev/null",
                            )
                        yield _lost(worker, f"the process that read it died ({ended})")
                        continue
                    if not worker.started:
                        worker.started = True
                        continue
                    seen, retiring = decoder.decode(frame)
                    if retiring or not waiting:
                        stop(worker)
                    else:
                        worker.give(waiting.popleft(), settings.time_limit_s)
                    yield seen
                for late in overdue:
                    stop(late)
                    yield _lost(late, f"took longer than {settings.time_limit_s:g} s to read")
        finally:
            for worker in list(workers):
                stop(worker)


def _ended(code: int | None, after_kill: str) -> str:
    """Say how a process ended that closed its pipe: its own status where it had one before it was killed."""
    if code is None:
        return after_kill
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def _lost(worker: _Worker, reason: str) -> Look:
    """Return the look at the file that a process ended with: known from then on, so that it does so once."""
    task = worker.task
    return not_looked_at(task.path, reason, task.size_bytes, task.stamp)
