"""Running a tool or a function in a child process that cannot hang, flood or take us down.

A child leads its own process group. When its time is up the whole group gets TERM, a grace period, then KILL. A child
that survives KILL (state D: waiting in a driver) is left behind and named, because nothing can end it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NoReturn

import msgspec

GRACE_S = 0.5
"""Time between TERM and KILL, in seconds, for short-lived collectors and tools."""

_CHUNK_BYTES = 1 << 16


class Ending(StrEnum):
    """How a child ended."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMEOUT = "timeout"
    NOT_FOUND = "not-found"
    NOT_EXECUTABLE = "not-executable"
    FLOODED = "flooded"


class CommandResult(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a supervised command printed and how it ended.

    Attributes:
        argv: The command line.
        ending: How it ended.
        exit_code: Exit status where it exited, else None.
        signal: Signal number where a signal ended it, else None.
        stdout: Standard output, decoded as UTF-8 with replacement, cut at the limit.
        stderr: Standard error, likewise.
        time_ms: Wall time.
        unkillable: The child survived KILL (it waits inside the kernel).
    """

    argv: tuple[str, ...]
    ending: Ending
    exit_code: int | None = None
    signal: int | None = None
    stdout: str = ""
    stderr: str = ""
    time_ms: float = 0.0
    unkillable: bool = False

    @property
    def ok(self) -> bool:
        """The command ran to its end and said success."""
        return self.ending is Ending.EXITED and self.exit_code == 0


def _kill_group(pid: int, sig: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, sig)


def _reap_within(pid: int, seconds: float) -> int | None:
    """Wait for ``pid`` up to ``seconds``; return its wait status, or None where it is still there."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            done, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        if done == pid:
            return status
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.005)


def end_group(pid: int, grace_s: float = GRACE_S) -> int | None:
    """End the process group led by our child ``pid``: TERM, grace, KILL.

    Returns:
        The child's wait status, or None where even KILL did not end it.
    """
    _kill_group(pid, signal.SIGTERM)
    status = _reap_within(pid, grace_s)
    _kill_group(pid, signal.SIGKILL)  # also for grandchildren that ignored TERM
    return status if status is not None else _reap_within(pid, 1.0)


def run_command(
    argv: Sequence[str],
    *,
    time_limit_s: float,
    env: Mapping[str, str] | None = None,
    max_output_bytes: int = 8 << 20,
) -> CommandResult:
    """Run a tool to its end or its limit, without a shell and without standard input.

    Args:
        argv: Program and arguments.
        time_limit_s: Wall seconds after which the process group is ended.
        env: The whole environment; None hands on ours.
        max_output_bytes: Bytes of each stream kept; a tool that prints more is ended as ``flooded``.

    Returns:
        How it ended, and what it printed. Never raises for what the tool does.
    """
    start = time.monotonic()
    command = tuple(argv)

    def result(ending: Ending, **more: object) -> CommandResult:
        elapsed = round((time.monotonic() - start) * 1000, 1)
        return CommandResult(command, ending, time_ms=elapsed, **more)  # type: ignore[arg-type]

    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else dict(env),
            start_new_session=True,
        )
    except FileNotFoundError:
        return result(Ending.NOT_FOUND)
    except OSError as error:
        if error.errno in {errno.EACCES, errno.ENOEXEC, errno.EPERM}:
            return result(Ending.NOT_EXECUTABLE, stderr=str(error))
        raise
    assert child.stdout is not None  # noqa: S101  PIPE was asked for
    assert child.stderr is not None  # noqa: S101
    buffers = {child.stdout: bytearray(), child.stderr: bytearray()}
    verdict: Ending | None = None
    deadline = start + time_limit_s
    with selectors.DefaultSelector() as selector:
        for stream in buffers:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                verdict = Ending.TIMEOUT
                break
            for key, _ in selector.select(left):
                data = os.read(key.fd, _CHUNK_BYTES)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                buffer = buffers[key.fileobj]  # type: ignore[index]
                buffer += data
                if len(buffer) > max_output_bytes:
                    verdict = Ending.FLOODED
            if verdict is Ending.FLOODED:
                break
    status: int | None
    if verdict is None:
        status = _reap_within(child.pid, max(0.0, deadline - time.monotonic()))
        if status is None:
            verdict = Ending.TIMEOUT
    if verdict is not None:
        status = end_group(child.pid)
    child.stdout.close()
    child.stderr.close()
    child.returncode = 0 if status is None else os.waitstatus_to_exitcode(status)  # we reaped it, not Popen
    code = child.returncode
    texts = {
        "stdout": bytes(buffers[child.stdout][:max_output_bytes]).decode(errors="replace"),
        "stderr": bytes(buffers[child.stderr][:max_output_bytes]).decode(errors="replace"),
    }
    if verdict is not None:
        return result(verdict, unkillable=status is None, **texts)
    if code < 0:
        return result(Ending.SIGNALLED, signal=-code, **texts)
    return result(Ending.EXITED, exit_code=code, **texts)


class ChildResult(msgspec.Struct, frozen=True):
    """How a function run in a forked child ended, and the bytes it returned."""

    name: str
    ending: Ending
    payload: bytes = b""
    error: str = ""
    signal: int | None = None
    time_ms: float = 0.0
    unkillable: bool = False


class _Child:
    """A forked child with the read end of its pipe."""

    def __init__(self, name: str, function: Callable[[], bytes], time_limit_s: float, memory_bytes: int) -> None:
        self.name = name
        self.start = time.monotonic()
        self.deadline = self.start + time_limit_s
        self.buffer = bytearray()
        read_end, write_end = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read_end)
            _child_main(function, write_end, memory_bytes)
        os.close(write_end)
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpgid(self.pid, self.pid)  # both sides set it: no race about who is first
        self.read_end = read_end

    def finish(self, ending: Ending | None) -> ChildResult:
        """Reap the child (ending its group first where ``ending`` says so) and build its result."""
        os.close(self.read_end)
        if ending is None:
            status = _reap_within(self.pid, max(0.05, self.deadline - time.monotonic()))
            if status is None:
                ending = Ending.TIMEOUT
        if ending is not None:
            status = end_group(self.pid)
        elapsed = round((time.monotonic() - self.start) * 1000, 1)
        if ending is not None:
            return ChildResult(self.name, ending, time_ms=elapsed, unkillable=status is None)
        code = os.waitstatus_to_exitcode(status or 0)
        _kill_group(self.pid, signal.SIGKILL)  # a grandchild left behind goes with its parent
        if code < 0:
            return ChildResult(self.name, Ending.SIGNALLED, signal=-code, time_ms=elapsed)
        kind, payload = bytes(self.buffer[:1]), bytes(self.buffer[1:])
        if kind == b"=":
            return ChildResult(self.name, Ending.EXITED, payload=payload, time_ms=elapsed)
        error = payload.decode(errors="replace") or f"the child exited with status {code} and returned nothing"
        return ChildResult(self.name, Ending.EXITED, error=error, time_ms=elapsed)


def _child_main(function: Callable[[], bytes], write_end: int, memory_bytes: int) -> NoReturn:
    """Run ``function`` in the child, write its outcome to the pipe and leave without cleaning up the parent's things."""
    status = 1
    try:
        os.setpgid(0, 0)
        for sig in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sig, signal.SIG_DFL)
        if memory_bytes:
            resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        try:
            message = b"=" + function()
            status = 0
        except BaseException as error:  # noqa: BLE001  the child's whole purpose is to report any end to its parent
            last = traceback.extract_tb(error.__traceback__)[-1:]
            place = f" ({os.path.basename(last[0].filename)}:{last[0].lineno})" if last else ""  # noqa: PTH119
            message = b"!" + f"{type(error).__name__}: {error}{place}".encode(errors="replace")
        view = memoryview(message)
        while view:
            view = view[os.write(write_end, view) :]
    finally:
        os._exit(status)


def run_children(
    functions: Mapping[str, tuple[Callable[[], bytes], float]],
    *,
    memory_bytes: int = 0,
    max_payload_bytes: int = 64 << 20,
    max_parallel: int = 8,
) -> dict[str, ChildResult]:
    """Run functions side by side, each in a forked child with its own time limit.

    Args:
        functions: Name to (function returning bytes, time limit in seconds).
        memory_bytes: Address-space limit of each child; 0 for none.
        max_payload_bytes: A child that returns more is ended as ``flooded``.
        max_parallel: Children alive at once.

    Returns:
        One result for each name, in the order given. Never raises for what a child does.
    """
    waiting = list(functions.items())[::-1]
    alive: dict[int, _Child] = {}
    results: dict[str, ChildResult] = {}
    with selectors.DefaultSelector() as selector:

        def settle(child: _Child, ending: Ending | None) -> None:
            selector.unregister(child.read_end)
            del alive[child.read_end]
            results[child.name] = child.finish(ending)

        try:
            while waiting or alive:
                while waiting and len(alive) < max_parallel:
                    name, (function, limit) = waiting.pop()
                    child = _Child(name, function, limit, memory_bytes)
                    alive[child.read_end] = child
                    selector.register(child.read_end, selectors.EVENT_READ)
                now = time.monotonic()
                for key, _ in selector.select(max(0.0, min(child.deadline for child in alive.values()) - now)):
                    child = alive[key.fd]
                    data = os.read(key.fd, _CHUNK_BYTES)
                    child.buffer += data
                    if not data:
                        settle(child, None)
                    elif len(child.buffer) > max_payload_bytes:
                        settle(child, Ending.FLOODED)
                now = time.monotonic()
                for child in [child for child in alive.values() if child.deadline <= now]:
                    settle(child, Ending.TIMEOUT)
        finally:
            for child in list(alive.values()):
                settle(child, Ending.TIMEOUT)
    return {name: results[name] for name in functions if name in results}
