"""Attempts as child processes of this machine, each under a warden that lets nothing outlive it."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.stall import StallClock
from rocmend.runner import leftovers
from rocmend.runner.events import Sample, Stack
from rocmend.runner.executor import Executor, Exit, Handle, NotStartedError
from rocmend.runner.gpu import GpuSampler
from rocmend.runner.samples import TreeSampler, process_of
from rocmend.runner.spec import AttemptSpec, Command, PythonCall

WARDEN = Path(__file__).with_name("warden.py")
START_S = 20.0
SETTLE_S = 4.0
PIPE_BYTES = 1 << 20
_STOPPED = "the supervisor process was stopped by a signal; it was continued"


def request_of(call: PythonCall) -> bytes:
    """Return what ``runner.child`` is to be told about a call."""
    return msgspec.json.encode({"target": call.target, "arguments": call.arguments, "path": call.path})


def environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Return our environment with changes made; a value of None takes a variable away."""
    merged: dict[str, str | None] = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value is not None}


class Launch(msgspec.Struct, frozen=True):
    """A program to start under a warden.

    Attributes:
        argv: Program and arguments.
        env: The whole environment.
        cwd: Working folder; empty for ours.
        stdin: What it reads from standard input.
        memory_bytes: Limit of its address space; 0 for none.
        file_bytes: Limit of the files that it writes; 0 for none.
        processes: Processes that its user may have beyond those of now; 0 for no limit.
        side: Side streams it writes to besides stdout and stderr; each is passed as ``--NAME FD`` behind ``argv``, with
            ``-`` behind them all.
        serves: ``channel`` is a socket, by which requests are sent to it too.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str = ""
    stdin: bytes = b""
    memory_bytes: int = 0
    file_bytes: int = 0
    processes: int = 0
    side: tuple[str, ...] = ()
    serves: bool = False


def launch_of(spec: AttemptSpec, call: PythonCall, *, serves: bool = False) -> Launch:
    """Return how the child of a Python call is started; one that serves is given the call later."""
    limits = spec.limits
    argv = (call.python or sys.executable, "-u", "-m", "rocmend.runner.child", *(("--serve", "1") if serves else ()))
    return Launch(
        argv,
        environment(spec.env),
        call.cwd,
        b"" if serves else request_of(call),
        limits.memory_bytes,
        limits.file_bytes,
        limits.processes,
        ("channel", "stack"),
        serves,
    )


class LocalExecutor(Executor):
    """Runs commands and Python calls as child processes."""

    def start(self, spec: AttemptSpec) -> LocalHandle:
        """Start it in a session of its own, under a warden.

        Raises:
            NotStartedError: There is no such program or folder, or no process could be made.
        """
        command, limits = spec.command, spec.limits
        if not isinstance(command, Command):
            return LocalHandle(launch_of(spec, command))
        bounds = (limits.memory_bytes, limits.file_bytes, limits.processes)
        env = environment(spec.env)
        return LocalHandle(Launch(command.argv, env, command.cwd, command.stdin.encode(), *bounds))


class LocalHandle(Handle):
    """A process and all that descends from it.

    Other executors that work through a local client program (podman, ssh) may start that program with it too.

    Args:
        launch: What to start.

    Raises:
        NotStartedError: It could not be started.
    """

    on_this_host = True

    def __init__(self, launch: Launch) -> None:
        if not launch.argv:
            raise NotStartedError("local", "the command is empty.", next_step="Pass a program to run.")
        self.argv, side = launch.argv, launch.side
        self._exit: Exit | None = None
        self._status_buffer = b""
        self._survivors: Sequence[Any] | None = None
        self._notes: list[str] = []
        self._unwatched = False
        self._signalled_stack = False
        self.max_rss_bytes = 0
        self.left_behind = 0
        self.pid = self._warden_pid = -1
        self._has_stack = "stack" in side
        streams: dict[str, int] = {}
        theirs: list[int] = []
        try:
            for name in ("stdout", "stderr", *side):
                streams[name], write_end = _socket() if launch.serves and name == "channel" else _pipe()
                theirs.append(write_end)
            arguments = [part for name, fd in zip(side, theirs[2:], strict=True) for part in (f"--{name}", str(fd))]
            self.streams = streams
            self._start(launch, [*launch.argv, *arguments, *(["-"] if side else [])], theirs)
        except BaseException:
            for descriptor in streams.values():
                os.close(descriptor)
            raise
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        self._sampler = TreeSampler(self._warden_pid)
        main = process_of(self.pid)
        if main is not None:
            self._sampler.seen[main.pid] = main.began
            self._sampler.sessions.add(main.session)
        self._gpu = GpuSampler()

    def _start(self, launch: Launch, argv: list[str], theirs: list[int]) -> None:
        """Start the warden, hand it the request, and wait until the program runs or cannot."""
        with contextlib.ExitStack() as stack:
            source = stack.enter_context(input_of(launch.stdin))
            control_read, self._control = os.pipe()
            stack.callback(os.close, control_read)
            self._status, status_write = os.pipe()
            stack.callback(os.close, status_write)
            try:
                self._warden = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(WARDEN), str(control_read), str(status_write)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=(control_read, status_write, source, *theirs),
                    start_new_session=True,
                )
            except OSError as error:
                os.close(self._control)
                os.close(self._status)
                raise NotStartedError("local", f"no process could be created: {error.strerror}.") from error
        request = {
            "argv": argv,
            "env": launch.env,
            "cwd": launch.cwd,
            "memory_bytes": launch.memory_bytes,
            "file_bytes": launch.file_bytes,
            "processes": launch.processes,
            "core": False,
            "descriptors": [source, *theirs],
        }
        try:
            with contextlib.suppress(BrokenPipeError):
                _write_all(self._control, json.dumps(request).encode() + b"\n")
            self._await_start(launch)
        except BaseException:
            self._release()
            raise
        os.set_blocking(self._control, False)

    def _readable(self, seconds: float) -> bool:
        """Wait until the warden says something."""
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def _await_start(self, launch: Launch) -> None:
        os.set_blocking(self._status, False)
        clock = StallClock()
        deadline = clock.now() + START_S
        while self.pid < 0:
            if clock.now() > deadline or self._exit is not None:
                raise NotStartedError("local", f"{launch.argv[0]}: the supervisor process did not respond.")
            clock.wait(self._readable, 0.5)
            self._read_status(launch)

    def _read_status(self, launch: Launch | None = None) -> None:
        """Take in what the warden says."""
        while True:
            try:
                data = os.read(self._status, 1 << 14)
            except BlockingIOError:
                break
            if not data:
                if self._survivors is None and not self._unwatched:
                    self._unwatched = True
                    self._without_warden("the supervisor processes were killed")
                break
            self._status_buffer += data
        *lines, self._status_buffer = self._status_buffer.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "pid" in message:
                self.pid, self._warden_pid = message["pid"], message["warden"]
            elif "stopped" in message:
                self._notes.append(_STOPPED)
            elif "ended" in message:
                self._survivors, self.left_behind = message["settled"], message["found"]
                self._unwatched = True
                ended = os.waitstatus_to_exitcode(message["ended"])
                how = signal.Signals(-ended).name if ended < 0 else f"with status {ended}"
                self._without_warden(f"the supervisor process was killed ({how})")
            elif "failed" in message:
                raise _not_started(launch or Launch(self.argv, {}), message)
            elif "exit" in message:
                code = os.waitstatus_to_exitcode(message["exit"])
                self.max_rss_bytes = message["max_rss_bytes"]
                self._exit = Exit(code=code) if code >= 0 else Exit(signal=-code)
            elif "settled" in message:
                self._survivors = message["settled"]
                self.left_behind = message["found"]

    def _without_warden(self, what: str) -> None:
        """Say what became of the warden; how the main process ended is not known then."""
        text = f"{what}, by the attempt itself or by another process"
        self._notes.append(text)
        if self._exit is None:
            self._exit = Exit(infra=text)

    def _continue_guard(self) -> None:
        """Continue the warden's guard, our child, where it was stopped."""
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, self._warden.pid, os.WSTOPPED | os.WNOHANG) is not None:
                self._warden.send_signal(signal.SIGCONT)
                self._notes.append(_STOPPED)

    def notes(self) -> tuple[str, ...]:
        """Return what the attempt did to its warden."""
        said, self._notes = tuple(dict.fromkeys(self._notes)), []
        return said

    def wake(self) -> int | None:
        """Return the warden's status pipe."""
        return self._status

    def exit(self) -> Exit | None:
        """Return how the main process ended, None while it runs."""
        if self._exit is None:
            self._continue_guard()
            self._read_status()
        return self._exit

    def sample(self) -> Sample | None:
        """Return what all descendants and the busiest GPU do."""
        sample = self._sampler.sample()
        gpu = self._gpu.sample()
        if sample is None or gpu is None:
            return sample
        return msgspec.structs.replace(
            sample, gpu_busy_percent=gpu.busy_percent, gpu_power_w=gpu.power_w, gpu_clock_mhz=gpu.clock_mhz
        )

    def others(self) -> int:
        """Return how many processes there are besides the main one."""
        return sum(process.pid != self.pid for process in self._sampler.members())

    def seen_pids(self) -> frozenset[int]:
        """Return the processes seen so far, the main one among them."""
        return frozenset({*self._sampler.seen, self.pid})

    def uses_gpu(self) -> bool:
        """Whether one of its processes holds a GPU open."""
        return self._sampler.uses_gpu()

    def stacks(self) -> tuple[Stack, ...]:
        """Return kernel stacks, and ask a Python child for its own."""
        if self._has_stack and self.exit() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, signal.SIGUSR1)
        return self._sampler.kernel_stacks()

    def _command(self, command: bytes) -> None:
        with contextlib.suppress(BrokenPipeError, BlockingIOError):
            os.write(self._control, command)

    def terminate(self) -> None:
        """Ask all descendants to end."""
        self._command(b"T")

    def kill(self) -> None:
        """Kill all descendants."""
        self._command(b"K")

    def settle(self) -> tuple[str, ...]:
        """Kill what is left; return what would not end, in words."""
        clock = StallClock()
        deadline = clock.now() + SETTLE_S
        if not self._unwatched:
            self._survivors = None
            self._command(b"S")
        while self._survivors is None and not self._unwatched and clock.now() < deadline:
            clock.wait(self._readable, 0.1)
            self._continue_guard()
            with contextlib.suppress(NotStartedError):
                self._read_status()
        if self._survivors is None:
            self._end_seen()
        left = self._survivors or ()
        return tuple(f"process {pid} (state {state}{', in ' + place if place else ''})" for pid, state, place in left)

    def _end_seen(self) -> None:
        """End what was seen of the attempt: its warden is gone, or does not answer."""
        if not self._unwatched:
            self._without_warden("the supervisor process did not respond")
        ended = leftovers.end(self._sampler.seen, self._sampler.sessions)
        self._survivors, self.left_behind = ended.survivors, ended.count

    def close(self) -> None:
        """Let go of the pipes; the warden ends what may be left and leaves."""
        for descriptor in self.streams.values():
            os.close(descriptor)
        self._release()

    def _release(self) -> None:
        os.close(self._control)
        os.close(self._status)
        self._warden.send_signal(signal.SIGCONT)
        try:
            self._warden.wait(SETTLE_S)
        except subprocess.TimeoutExpired:  # it waits for something that KILL does not end: leave it to that
            self._warden.returncode = 0

    def describe(self) -> dict[str, Any]:
        """Return the main process's id and its peak memory."""
        return {"pid": self.pid, **({"max_rss_bytes": self.max_rss_bytes} if self.max_rss_bytes else {})}


def _pipe() -> tuple[int, int]:
    """Make a pipe with a non-blocking read end and, where allowed, room for a burst."""
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    with contextlib.suppress(OSError):
        fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    return read_end, write_end


def _socket() -> tuple[int, int]:
    """Make a pair of connected sockets, ours non-blocking."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return ours.detach(), theirs.detach()


@contextlib.contextmanager
def input_of(data: bytes) -> Iterator[int]:
    """Yield a descriptor that a program can read its input from; it lies in memory, for it may hold secrets."""
    descriptor = os.memfd_create("stdin")
    try:
        _write_all(descriptor, data)
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _not_started(launch: Launch, message: dict[str, Any]) -> NotStartedError:
    """Say why a program did not start."""
    number, program, cwd, env = message["errno"], launch.argv[0], launch.cwd, launch.env
    if cwd and not Path(cwd).is_dir():
        return NotStartedError("local", f"the working folder {cwd} does not exist.")
    if number == errno.ENOENT and not shutil.which(program, path=env.get("PATH", os.defpath)):
        return NotStartedError(
            "local", f"there is no program {program!r}.", next_step="Install it, or use its full path."
        )
    if number == errno.ENOENT:
        return NotStartedError("local", f"the interpreter that {program!r} names is not there.")
    return NotStartedError("local", f"{program!r} could not be started: {message['failed']}.")
