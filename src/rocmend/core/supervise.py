"""Running a tool or a function in a child process that cannot hang, flood or take us down."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import resource
import shutil
import signal
import struct
import subprocess
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import msgspec

from rocmend.core.stall import StallClock
from rocmend.core.watch import GRACE_S, Ending, Watched, WatchedWork, Watcher, end_group

__all__ = ["GRACE_S", "ChildResult", "CommandResult", "Ending", "end_group", "run_children", "run_command"]


class CommandResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a supervised command printed and how it ended.

    Attributes:
        argv: The command line.
        ending: How it ended.
        exit_code: Exit status where it exited, else None.
        signal: Signal number where a signal ended it, else None.
        stdout: Standard output, decoded as UTF-8 with replacement, cut at the limit.
        stderr: Standard error, likewise; where it did not start, why.
        time_ms: Wall time.
        unkillable: The child survived KILL (it waits inside the kernel).
        stalled_s: Seconds for which we were paused ourselves, which did not count towards its time limit.
    """

    argv: tuple[str, ...]
    ending: Ending
    exit_code: int | None = None
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    time_ms: float = 0.0
    unkillable: bool = False
    stalled_s: float = 0.0

    @property
    def ok(self) -> bool:
        """The command ran to its end and said success."""
        return self.ending is Ending.EXITED and self.exit_code == 0


def run_command(  # noqa: PLR0913  a run has as many limits as it has
    argv: Sequence[str],
    *,
    time_limit_s: float,
    stall_limit_s: float | None = None,
    env: Mapping[str, str] | None = None,
    folder: Path | None = None,
    max_output_bytes: int = 8 << 20,
    memory_bytes: int = 0,
) -> CommandResult:
    """Run a tool to its end or its limit, without a shell and without standard input.

    It is over when the tool itself ends: processes that it leaves behind in its group are killed, whether or not they
    still hold its output open.

    Args:
        argv: Program and arguments.
        time_limit_s: Wall seconds after which the process group is ended.
        stall_limit_s: Seconds without CPU time to speak of after which it is ended already; None for no such limit.
        env: The whole environment, whose PATH the program is looked up in; None hands on ours.
        folder: Where it runs; None for where we are.
        max_output_bytes: Bytes of each stream kept; a tool that prints more is ended as ``flooded``.
        memory_bytes: Address-space limit of each of its processes; 0 for none.

    Returns:
        How it ended, and what it printed. Never raises for what the tool does.
    """
    start = time.monotonic()
    command = tuple(argv)
    with contextlib.ExitStack() as write_ends:
        try:
            (out, out_write), (err, err_write) = _pipes(2)
        except OSError as error:
            return CommandResult(command, Ending.NOT_STARTED, stderr=str(error), time_ms=_elapsed_ms(start))
        for descriptor in (out_write, err_write):
            write_ends.callback(os.close, descriptor)
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out_write,
                stderr=err_write,
                env=None if env is None else dict(env),
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            os.close(out)
            os.close(err)
            ending, why = _why_not_started(command[0], env, error)
            return CommandResult(command, ending, stderr=why, time_ms=_elapsed_ms(start))
    if memory_bytes:
        _limit_memory(child.pid, memory_bytes)
    watcher = Watcher()
    watched = WatchedWork(
        child.pid,
        (out, err),
        clock=watcher.clock,
        limit_s=time_limit_s,
        stall_limit_s=time_limit_s if stall_limit_s is None else stall_limit_s,
        max_bytes=max_output_bytes,
    )
    try:
        with watcher:
            watcher.add(watched)
            while not watched.over:
                watcher.wait()
    finally:  # we reaped it, so Popen must not try
        child.returncode = -signal.SIGKILL if watched.status is None else os.waitstatus_to_exitcode(watched.status)
    stdout, stderr = (bytes(watched.buffers[fd][:max_output_bytes]).decode(errors="replace") for fd in (out, err))
    ending, code, sig = _ending(watched)
    return CommandResult(
        command,
        ending,
        code,
        sig,
        stdout,
        stderr,
        time_ms=_elapsed_ms(start),
        unkillable=watched.unkillable,
        stalled_s=round(watcher.clock.lost_s, 3),
    )


def _limit_memory(pid: int, memory_bytes: int) -> None:
    """Limit the address space of a process that has just begun, and of those that it starts; never raise a limit."""
    with contextlib.suppress(OSError, ValueError):  # it has ended
        known = (one for one in resource.prlimit(pid, resource.RLIMIT_AS) if one != resource.RLIM_INFINITY)
        most = min((memory_bytes, *known))
        resource.prlimit(pid, resource.RLIMIT_AS, (most, most))


def _pipes(count: int) -> list[tuple[int, int]]:
    """Open pipes: all of them or none."""
    pipes: list[tuple[int, int]] = []
    try:
        pipes.extend(os.pipe() for _ in range(count))
    except OSError:
        for descriptor in (end for pipe in pipes for end in pipe):
            os.close(descriptor)
        raise
    return pipes


def _elapsed_ms(start: float) -> float:
    return round((time.monotonic() - start) * 1000, 1)


def _ending(watched: Watched) -> tuple[Ending, int | None, int | None]:
    """Return how a child ended, its exit code and its signal."""
    if watched.ending is not None:
        return watched.ending, None, None
    if watched.status is None:
        return Ending.EXITED, None, None
    code = os.waitstatus_to_exitcode(watched.status)
    return (Ending.SIGNALLED, None, -code) if code < 0 else (Ending.EXITED, code, None)


def _why_not_started(program: str, env: Mapping[str, str] | None, error: OSError | ValueError) -> tuple[Ending, str]:
    """Tell a program that is not there from one that cannot be run and from a machine that cannot fork."""
    if isinstance(error, ValueError):  # a NUL in an argument
        return Ending.NOT_STARTED, str(error)
    if error.errno in {errno.ENOENT, errno.ENOTDIR}:
        if shutil.which(program, path=None if env is None else env.get("PATH", os.defpath)):
            return Ending.NOT_EXECUTABLE, "the interpreter that its first line names is not there"
        return Ending.NOT_FOUND, ""
    if error.errno in {errno.EACCES, errno.ENOEXEC, errno.EPERM, errno.ELIBBAD, errno.ETXTBSY}:
        return Ending.NOT_EXECUTABLE, str(error)
    return Ending.NOT_STARTED, str(error)


class ChildResult(msgspec.Struct, frozen=True):
    """How a function run in a forked child ended, and the bytes it returned.

    Attributes:
        name: The function's name.
        ending: How it ended; ``exited`` with an empty ``error`` is the only success.
        payload: What it returned.
        error: What it raised, or why there is no payload.
        signal: Signal number where a signal ended it.
        time_ms: Wall time of the function.
        unkillable: The child survived KILL (it waits inside the kernel).
    """

    name: str
    ending: Ending
    payload: bytes = b""
    error: str = ""
    signal: int | None = None
    time_ms: float = 0.0
    unkillable: bool = False


Job = tuple[str, Callable[[], bytes], float]
"""A name, a function and its time limit in seconds."""

_FRAME = struct.Struct("<cdQ")  # kind ("=" payload, "!" error), time in ms, length


class _Terminated(BaseException):
    """TERM came: raised inside the child so that tools it is running are ended too."""


def _on_term(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise _Terminated


def _child_main(jobs: Sequence[Job], write_end: int, memory_bytes: int) -> NoReturn:
    """Run the functions in the child, write each outcome to the pipe, and leave without the parent's clean-up."""
    status = 1
    try:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, _on_term)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(sum(limit for _, _, limit in jobs)) + 5)  # our own end, should the parent be killed
        gc.freeze()
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)  # a read of the terminal would stop us
        os.dup2(null, 1)  # standard output is the parent's, for data
        if memory_bytes:
            resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        for _, function, _ in jobs:
            _run_job(function, write_end)
        status = 0
    finally:
        os._exit(status)


def _run_job(function: Callable[[], bytes], write_end: int) -> None:
    start = time.monotonic()
    try:
        kind, payload = b"=", bytes(function())
    except _Terminated:
        raise
    except BaseException as error:  # noqa: BLE001  the child's whole purpose is to report any end to its parent
        last = traceback.extract_tb(error.__traceback__)[-1:]
        place = f" ({os.path.basename(last[0].filename)}:{last[0].lineno})" if last else ""  # noqa: PTH119
        kind, payload = b"!", f"{type(error).__name__}: {error}{place}".encode(errors="replace")
    header = _FRAME.pack(kind, _elapsed_ms(start), len(payload))
    for part in (header, payload):
        view = memoryview(part)
        while view:
            view = view[os.write(write_end, view) :]


class _Worker(Watched):
    """A forked child that runs a batch of functions, one after the other, each within its own time limit."""

    def __init__(self, jobs: Sequence[Job], clock: StallClock, memory_bytes: int, max_payload_bytes: int) -> None:
        self.jobs = list(jobs)
        self.results: list[ChildResult] = []
        self.job_start = time.monotonic()
        read_end, write_end = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(read_end)
            os.close(write_end)
            raise
        if pid == 0:
            os.close(read_end)
            _child_main(jobs, write_end, memory_bytes)
        os.close(write_end)
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(pid, pid)  # both sides set it: no race about who is first
        super().__init__(pid, (read_end,), clock=clock, limit_s=jobs[0][2], max_bytes=max_payload_bytes)

    def received(self, stream: int) -> None:
        """Take complete outcomes off the buffer; each one starts the next function's time."""
        buffer = self.buffers[stream]
        while len(buffer) >= _FRAME.size and self.jobs and self.ending is None:
            kind, time_ms, length = _FRAME.unpack_from(buffer)
            if length > self.max_bytes:
                self.stop(Ending.FLOODED)
                return
            end = _FRAME.size + length
            if len(buffer) < end:
                return
            payload = bytes(buffer[_FRAME.size : end])
            del buffer[:end]
            name = self.jobs.pop(0)[0]
            if kind == b"=":
                result = ChildResult(name, Ending.EXITED, payload=payload, time_ms=time_ms)
            else:
                result = ChildResult(name, Ending.EXITED, error=payload.decode(errors="replace"), time_ms=time_ms)
            self.results.append(result)
            self.job_start = time.monotonic()
            # after the last one only the child's own end is awaited
            self.deadline = self.clock.now() + (self.jobs[0][2] if self.jobs else GRACE_S)

    def failure(self) -> ChildResult:
        """Return the outcome of the function that the child was at when it ended."""
        ending, code, sig = _ending(self)
        error = f"the child exited with status {code} and returned nothing" if ending is Ending.EXITED else ""
        name = self.jobs.pop(0)[0]
        return ChildResult(
            name, ending, error=error, signal=sig, time_ms=_elapsed_ms(self.job_start), unkillable=self.unkillable
        )


def run_children(
    functions: Mapping[str, tuple[Callable[[], bytes], float]],
    *,
    memory_bytes: int = 0,
    max_payload_bytes: int = 64 << 20,
    max_parallel: int = 8,
    batch_size: int = 1,
) -> dict[str, ChildResult]:
    """Run functions side by side in forked children, each function with its own time limit.

    Args:
        functions: Name to (function returning bytes, time limit in seconds).
        memory_bytes: Address-space limit of each child; 0 for none.
        max_payload_bytes: A child that returns more is ended as ``flooded``.
        max_parallel: Children alive at once.
        batch_size: Functions that share a child, one after the other, where a fork costs more than they do. One that
            hangs or crashes takes only itself: those after it go on in a new child.

    Returns:
        One result for each name, in the order given. Never raises for what a child does.
    """
    jobs = [(name, function, limit) for name, (function, limit) in functions.items()]
    size = max(1, batch_size)
    waiting = [jobs[at : at + size] for at in range(0, len(jobs), size)][::-1]
    results: dict[str, ChildResult] = {}
    with Watcher() as watcher:
        while waiting or watcher.alive:
            while waiting and len(watcher.alive) < max_parallel:
                batch = waiting.pop()
                try:
                    watcher.add(_Worker(batch, watcher.clock, memory_bytes, max_payload_bytes))
                except OSError as error:
                    if watcher.alive:  # out of processes or descriptors: some come back when one of ours ends
                        waiting.append(batch)
                        break
                    name = batch.pop(0)[0]
                    results[name] = ChildResult(name, Ending.NOT_STARTED, error=str(error))
                    if batch:
                        waiting.append(batch)
            for worker in watcher.wait():
                if not isinstance(worker, _Worker):
                    continue
                results.update((result.name, result) for result in worker.results)
                if worker.jobs:
                    failed = worker.failure()
                    results[failed.name] = failed
                if worker.jobs:
                    waiting.append(worker.jobs)
    return {name: results[name] for name in functions}
