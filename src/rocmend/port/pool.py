"""Several processes that work on files: one that crashes, hangs or grows costs one file, not the run."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Self, cast

import msgspec

import rocmend
from rocmend.core.errors import RocmendError
from rocmend.core.stall import StallClock
from rocmend.port.look import Look, Task
from rocmend.port.rewrite import Rewrite, Rewritten
from rocmend.port.settings import Settings
from rocmend.port.worker import Setup, read_frame, write_frame

__all__ = ["Crew", "Macros"]


# -P: the folder that the command is called in is somebody's project, not a place to import from
_COMMAND = [sys.executable, "-P", "-m", "rocmend.port.worker"]


Macros = Mapping[str, tuple[int | None, int | None]]
"""Values on the ROCm and on the NVIDIA side; None: not defined."""
_DECODER = msgspec.msgpack.Decoder(tuple[Look | Rewritten, bool])


class _Worker:
    """One process and the file that it is looking at."""

    def __init__(self, root: Path, settings: Settings, clock: StallClock, macros: Macros) -> None:
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
        self.time_limit_s = settings.time_limit_s
        self.task: Task | Rewrite = Task("", 0, (0, 0, 0))
        self.started = False
        self.clock = clock
        self.deadline = clock.now() + self.time_limit_s
        setup = Setup(str(root), settings.max_file_bytes, settings.memory_limit_bytes, dict(macros))
        with contextlib.suppress(BrokenPipeError):  # seen when the first answer does not come
            write_frame(self.stdin, msgspec.msgpack.encode(setup))

    @property
    def stdin(self) -> BinaryIO:
        """Where tasks go."""
        return cast("BinaryIO", self.process.stdin)

    @property
    def stdout(self) -> BinaryIO:
        """Where answers come from."""
        return cast("BinaryIO", self.process.stdout)

    def give(self, task: Task | Rewrite) -> None:
        self.task = task
        self.deadline = self.clock.now() + self.time_limit_s
        with contextlib.suppress(BrokenPipeError):
            write_frame(self.stdin, msgspec.msgpack.encode(task))

    def end(self) -> str:
        """End the process and say how it ended."""
        code = self.process.poll()
        self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.stdin.close()
        self.stdout.close()
        code = self.process.wait() if code is None else code
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"


class Crew:
    """The processes that look at the files of one project; leaving the block ends them.

    Args:
        root: The project's folder.
        settings: Its limits hold for each file; the project's time begins with the first call of ``looks`` or
            ``rewrites``.
        macros: The project's own that tell ROCm from CUDA.
    """

    def __init__(self, root: Path, settings: Settings, macros: Macros | None = None) -> None:
        self._macros = macros or {}
        self._root = root
        self._settings = settings
        self._workers: set[_Worker] = set()
        self._selector = selectors.DefaultSelector()
        self._clock = StallClock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self._workers):
            self._stop(worker)
        self._selector.close()

    def start(self) -> None:
        """Start a process before there is a file for it, so that it is ready when there is."""
        worker = _Worker(self._root, self._settings, self._clock, self._macros)
        self._workers.add(worker)
        self._selector.register(worker.stdout, selectors.EVENT_READ, worker)

    def _stop(self, worker: _Worker) -> str:
        self._selector.unregister(worker.stdout)
        self._workers.discard(worker)
        return worker.end()

    def looks(self, tasks: Iterable[Task], jobs: int) -> Iterator[Look]:
        """Look at files in ``jobs`` processes and yield what was found, in no particular order.

        Raises:
            RocmendError: Such a process does not start.
        """
        return cast("Iterator[Look]", self._results(tasks, jobs))

    def rewrites(self, tasks: Iterable[Rewrite], jobs: int) -> Iterator[Rewritten]:
        """Port files in ``jobs`` processes and yield what they became, in no particular order.

        Raises:
            RocmendError: Such a process does not start.
        """
        return cast("Iterator[Rewritten]", self._results(tasks, jobs))

    def _results(self, tasks: Iterable[Task | Rewrite], jobs: int) -> Iterator[Look | Rewritten]:
        """Give files to processes and yield what comes back.

        Args:
            tasks: The files.
            jobs: How many processes, at least one.

        Raises:
            RocmendError: Such a process does not start.
        """
        waiting: deque[Task | Rewrite] = deque(tasks)
        end = self._clock.now() + self._settings.project_time_limit_s
        for worker in list(self._workers):
            if waiting:
                worker.give(waiting.popleft())
            else:
                self._stop(worker)
        while waiting or self._workers:
            if self._clock.now() >= end:
                yield from (task.left_out() for task in (*(one.task for one in self._workers), *waiting))
                return  # whoever made the processes ends them
            while waiting and len(self._workers) < jobs:
                before = set(self._workers)
                self.start()
                (fresh,) = self._workers - before
                fresh.give(waiting.popleft())
            nearest = min(end, *(worker.deadline for worker in self._workers))
            ready = self._clock.wait(self._selector.select, nearest - self._clock.now())
            now = self._clock.now()
            answered: set[_Worker] = {key.data for key, _ in ready}
            overdue = [worker for worker in self._workers if worker.deadline <= now and worker not in answered]
            for worker in answered:
                yield from self._answer(worker, waiting)
            for worker in overdue:
                self._stop(worker)
                yield worker.task.lost(f"took longer than {self._settings.time_limit_s:g} s to read")

    def _answer(self, worker: _Worker, waiting: deque[Task | Rewrite]) -> Iterator[Look | Rewritten]:
        """Yield what a worker that has something to say has found, and give it the next file."""
        frame = read_frame(worker.stdout)
        if frame is None:
            ended = self._stop(worker)
            if not worker.started:
                raise RocmendError(
                    "port",
                    f"a worker process did not start ({ended}).",
                    next_step=f"See why with: {' '.join(_COMMAND)} < /dev/null",
                )
            yield worker.task.lost(f"the process that read it died ({ended})")
            return
        if not worker.started:
            worker.started = True
            return
        seen, retiring = _DECODER.decode(frame)
        if retiring or not waiting:
            self._stop(worker)
        else:
            worker.give(waiting.popleft())
        yield seen
