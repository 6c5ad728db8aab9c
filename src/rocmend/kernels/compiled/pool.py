"""Workers under supervision: each answers one request at a time, within a time limit."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from rocmend.core.scratch import ScratchFolder
from rocmend.core.stall import StallClock
from rocmend.core.watch import end_group
from rocmend.kernels.compiled.toolchain import Toolchain

T = TypeVar("T")
_TELLING = ("LLVM ERROR", "Cannot select", "Assertion", "error:", "UNREACHABLE", "PLEASE submit")
_UNWANTED = {"TRITON_INTERPRET", "ROCMEND_KERNELS"}


class WorkerEndedError(Exception):
    """A worker crashed or was ended; its message says how.

    Args:
        message: How it ended.
        timed_out: It was ended because it did not answer in time.
        killed: It was killed from outside, as for want of memory.
    """

    def __init__(self, message: str, *, timed_out: bool = False, killed: bool = False) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.passing = timed_out or killed


class Worker:
    """A process that records and compiles.

    Args:
        toolchain: The Triton it uses.
        folder: Where it may leave files.
        paths: Further folders to import kernels from.
        own_cache: Triton keeps what it compiles in the folder; else in its cache.
    """

    def __init__(
        self, toolchain: Toolchain, folder: Path, paths: Iterable[Path] = (), *, own_cache: bool = True
    ) -> None:
        self.toolchain = toolchain
        self._buffer = bytearray()
        self._before = 0
        self._errors = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  it lives as long as the worker
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "rocmend.kernels.compiled.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(toolchain, folder, paths, own_cache=own_cache),
            start_new_session=True,
        )

    def ask(self, request: dict[str, Any], time_limit_s: float) -> Any:
        """Send a request and return the answer: ``{"ok": …}`` or ``{"error": reason}``.

        Raises:
            WorkerEndedError: It crashed, or did not answer in time and was ended.
        """
        clock = StallClock()
        deadline = clock.now() + time_limit_s
        self._before = self._errors.seek(0, os.SEEK_END)
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise WorkerEndedError("the worker has no pipes")
        try:
            stdin.write(msgspec.json.encode(request) + b"\n")
            stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        while b"\n" not in self._buffer:
            left = deadline - clock.now()
            if left <= 0:
                self.close()
                raise WorkerEndedError(f"no end after {time_limit_s:g} s", timed_out=True)
            if not clock.wait(lambda seconds: select.select([stdout], [], [], seconds)[0], left):
                continue
            data = os.read(stdout.fileno(), 1 << 20)
            if not data:
                raise self._ended()
            self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = rest
        answer = msgspec.json.decode(line)
        if "error" in answer and (said := self._said()):
            answer["error"] += f"\n{said[0]}"
        return answer

    def _ended(self) -> WorkerEndedError:
        """Say how it ended by itself."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.returncode
        said = self._said()
        how = signal.Signals(-code).name if code is not None and code < 0 else f"exit status {code}"
        self.close()
        return WorkerEndedError(
            f"the compiler crashed ({how})" + (f": {said[0]}" if said else ""), killed=code == -signal.SIGKILL
        )

    def _said(self) -> list[str]:
        """Return the telling lines of what was printed to standard error since the request, cut to 300 characters."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(self._before, size - 20000))
        said = self._errors.read().decode(errors="replace")
        return [line.strip()[:300] for line in said.splitlines() if any(word in line for word in _TELLING)]

    def stop(self) -> None:
        """Tell it to end, from any thread: who waits for its answer then learns that it has ended."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGTERM)

    def close(self) -> None:
        """End it."""
        if self._process.returncode is None:
            status = end_group(self._process.pid)
            self._process.returncode = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _environment(toolchain: Toolchain, folder: Path, paths: Iterable[Path], *, own_cache: bool) -> dict[str, str]:
    """Return the worker's environment: its Triton first, this very package, no interpreter, folders of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    own = [toolchain.path] if toolchain.path else []
    ahead = [str(path) for path in (*own, *paths, Path(__file__).resolve().parents[3])]
    kept["PYTHONPATH"] = os.pathsep.join([*ahead, *filter(None, [os.environ.get("PYTHONPATH")])])
    # the user's own tuning records stay out: the table must be the same on every machine
    kept["ROCMEND_HOME"] = str(folder / "home")
    if own_cache:
        kept["TRITON_CACHE_DIR"] = str(folder / "triton")
    return kept | {"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}


class _Work(Generic[T]):
    """What the threads of a pool share.

    Attributes:
        waiting: Tasks that nobody has begun.
        done: Called with each answer, under ``lock``.
        failures: Why no more are begun.
        alive: Workers that may be busy.
    """

    def __init__(
        self, waiting: deque[tuple[T, Toolchain, dict[str, Any]]], done: Callable[[T, dict[str, Any]], None]
    ) -> None:
        self.waiting = waiting
        self.done = done
        self.lock = threading.Lock()
        self.failures: list[BaseException] = []
        self.alive: set[Worker] = set()


class Pool(Generic[T]):
    """Carries out tasks in a number of workers side by side.

    Args:
        jobs: Workers at once.
        time_limit_s: Of a task.
        paths: Further folders to import kernels from.
        start_s: What a worker's first task may take besides.
        own_cache: What Triton compiles is forgotten afterwards.
    """

    def __init__(
        self,
        jobs: int,
        time_limit_s: float,
        paths: Iterable[Path] = (),
        *,
        start_s: float = 0.0,
        own_cache: bool = True,
    ) -> None:
        self.jobs = max(1, jobs)
        self.start_s, self.own_cache = start_s, own_cache
        self.time_limit_s = time_limit_s
        self.paths = tuple(paths)

    def map(
        self,
        tasks: Iterable[tuple[T, Toolchain, dict[str, Any]]],
        done: Callable[[T, dict[str, Any]], None],
    ) -> None:
        """Carry out tasks.

        Args:
            tasks: (name, Triton to use, request).
            done: Called, one call at a time, with a name and the answer; where there is an error,
                ``passing`` says that it may not come again.
        """
        waiting = deque(sorted(tasks, key=lambda task: task[1].version))
        work = _Work(waiting, done)

        def serve(folder: Path) -> None:
            try:
                self._serve(folder, work)
            except BaseException as error:  # noqa: BLE001  raised again below, in the caller's thread
                work.failures.append(error)

        workers = min(self.jobs, len(waiting))
        if not workers:
            return
        # Not Thread.join: in CPython 3.11 a join that is interrupted takes its thread for ended.
        with (
            ScratchFolder("compile") as folder,
            ThreadPoolExecutor(workers, "compile") as threads,
        ):
            own = [folder / str(number) for number in range(workers)]
            for own_folder in own:
                own_folder.mkdir()
            try:
                for thread in [threads.submit(serve, own_folder) for own_folder in own]:
                    thread.result()
            except BaseException as error:
                work.failures.append(error)
                for worker in tuple(work.alive):  # what is being compiled may take minutes, and nobody waits for it now
                    worker.stop()
                raise
        if work.failures:
            raise work.failures[0]

    def _serve(self, folder: Path, work: _Work[T]) -> None:
        """Carry out tasks one after the other, in one worker for as long as it lives."""
        worker: Worker | None = None
        extra_s = 0.0
        try:
            while not work.failures:
                with work.lock:
                    if not work.waiting:
                        return
                    name, toolchain, request = work.waiting.popleft()
                if worker is None or worker.toolchain is not toolchain:
                    if worker is not None:
                        work.alive.discard(worker)
                        worker.close()
                    worker, extra_s = Worker(toolchain, folder, self.paths, own_cache=self.own_cache), self.start_s
                    work.alive.add(worker)
                    if work.failures:  # before it was among those that are told to
                        return
                try:
                    answer = worker.ask(request, self.time_limit_s + extra_s)
                    extra_s = 0.0
                except WorkerEndedError as error:
                    work.alive.discard(worker)
                    worker = None
                    if work.failures:  # it was told to end: that says nothing of the task
                        return
                    answer = {"error": str(error), "passing": error.passing}
                with work.lock:
                    work.done(name, answer)
        finally:
            if worker is not None:
                work.alive.discard(worker)
                worker.close()
