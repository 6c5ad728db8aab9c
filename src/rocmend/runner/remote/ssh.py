"""Attempts on other hosts, by the OpenSSH client."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import select
import shutil
import subprocess
import threading
import time
from typing import Any

from rocmend.core.scratch import ScratchFolder
from rocmend.core.stall import StallClock
from rocmend.core.supervise import run_command
from rocmend.core.visible import one_line
from rocmend.runner.events import Sample, Stack
from rocmend.runner.executor import Executor, Exit, Handle, NotStartedError
from rocmend.runner.remote.far_side import end_script, loader, run_script
from rocmend.runner.remote.far_words import MAX_LEFT, FarSampler, Marks, is_sound, parse_left, parse_stack
from rocmend.runner.remote.program import attempt_id, program_of
from rocmend.runner.remote.pump import Pump
from rocmend.runner.remote.ssh_rules import client_env, effective, option_arguments, warnings_of
from rocmend.runner.spec import AttemptSpec, Ssh

_LINGER_S = 3.0
_TURN_S = 0.02
_RECONNECT_S = 20.0
_TRIES = 3
_MAX_STACKS = 64
_START_S = 120.0
_SETTINGS_S = 15.0
_SAID_BYTES = 1 << 16

_CAUSES = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed|No \S+ host key is known",
        "the host's key is not known or has changed",
        "check it, then put it into known_hosts (ssh-keyscan), or set the option StrictHostKeyChecking=accept-new",
    ),
    (
        r"Permission denied \(|Too many authentication failures|Load key .*: |no mutual signature",
        "the host did not accept our key",
        "check user and identity_file; there is no password prompt",
    ),
    (
        r"Could not resolve hostname",
        "the host's name is not known",
        "check its spelling or the client's configuration",
    ),
    (
        r"Connection refused|timed out|No route to host|Network is unreachable|Connection (?:reset|closed)|kex_ex",
        "the host could not be reached",
        "check that the host is up, its SSH server runs, and the port is right",
    ),
    (
        r"Bad configuration|[Cc]an't open user config|unsupported option",
        "the client's options are wrong",
        "correct them",
    ),
)


def ssh_argv(where: Ssh, log: str, remote: str) -> list[str]:
    """Return the client's command line.

    Args:
        where: The host.
        log: File to which the client writes its own messages, which keeps them apart from the command's.
        remote: The command line over there.

    Raises:
        NotStartedError: The host's name would be read as an option, or a setting is not possible.
    """
    return [*_client(where), "-T", "-E", log, "--", where.host, remote]


def _client(where: Ssh) -> list[str]:
    """Return the client's command line up to the host."""
    argv = ["ssh", *option_arguments(where)]
    if where.config_file:
        argv += ["-F", where.config_file]
    if where.port:
        argv += ["-p", str(where.port)]
    if where.user:
        argv += ["-l", where.user]
    if where.identity_file:
        argv += ["-i", where.identity_file, "-o", "IdentitiesOnly=yes"]
    return argv


def settings_of(where: Ssh) -> dict[str, list[str]]:
    """Return the client's effective options for a host, with ours; empty where it does not say (it will again)."""
    asked = run_command(
        [*_client(where), "-G", "--", where.host], time_limit_s=_SETTINGS_S, max_output_bytes=_SAID_BYTES
    )
    return effective(asked.stdout) if asked.ok else {}


def cause_of(log: str) -> str:
    """Return why there is no connection, from the client's own messages, and what can be done."""
    said = one_line(log)[-400:]
    for pattern, cause, remedy in _CAUSES:
        if re.search(pattern, log):
            return f"{cause} ({said}): {remedy}"
    return f"the client said: {said}" if said else "the client said nothing"


class SshExecutor(Executor):
    """Runs attempts on other hosts."""

    def start(self, spec: AttemptSpec) -> SshHandle:
        """Connect and start the command; a host that cannot be reached shows in the handle's ``exit``.

        Raises:
            NotStartedError: There is no client, or a setting is not possible.
        """
        if not isinstance(spec.where, Ssh):
            raise TypeError(f"an SSH executor was given {type(spec.where).__name__}")
        if shutil.which("ssh") is None:
            raise NotStartedError(
                "ssh", "there is no ssh on this machine.", next_step="Install it (apt install openssh-client)."
            )
        handle = SshHandle(spec, spec.where)
        deadline = time.monotonic() + _START_S
        try:
            while not handle.started and handle.exit() is None and time.monotonic() < deadline:
                time.sleep(_TURN_S)  # the client's ConnectTimeout ends it where nobody answers
        except BaseException:  # an interrupt: leave no connection behind
            handle.close()
            raise
        if not handle.started and handle.exit() is None:
            handle.close()
            raise NotStartedError(
                "ssh",
                f"{spec.where.host} accepted the connection but did not start the command within {_START_S:.0f} s.",
                next_step="Check its login shell: `ssh HOST true` should return at once.",
            )
        return handle


class SshHandle(Handle):
    """A command on another host and the client that is connected to it.

    Args:
        spec: The attempt.
        where: The host.
    """

    def __init__(self, spec: AttemptSpec, where: Ssh) -> None:
        self.where = where
        self.attempt = attempt_id()
        argv, stdin = program_of(spec, where.python)
        self._program = argv[0]
        self._cwd = spec.command.cwd
        word = secrets.token_hex(8)
        script = run_script(argv=argv, env=spec.env, cwd=spec.command.cwd, stdin=stdin, attempt=self.attempt, word=word)
        self._exit: Exit | None = None
        self._said: dict[str, str] = {}
        self._said_exit_at = 0.0
        self._closing = False
        settings = settings_of(where)
        self._notes = warnings_of(settings)
        self._env = client_env(settings, os.environ)
        self._sampler = FarSampler()
        self._sample: Sample | None = None
        self._stacks: list[Stack] = []
        self._threads: list[threading.Thread] = []
        self._folder = ScratchFolder("ssh")
        self._log = self._folder.path / "log"
        self._wake, self._wake_write = os.pipe()
        try:
            self._client = subprocess.Popen(
                ssh_argv(where, str(self._log), loader(script)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=self._env,
                start_new_session=True,
            )
        except (OSError, NotStartedError) as error:
            self._let_go()
            if isinstance(error, NotStartedError):
                raise
            raise NotStartedError("ssh", f"ssh could not be started: {error.strerror}.") from error
        if self._client.stdin is None or self._client.stdout is None or self._client.stderr is None:
            raise NotStartedError("ssh", "the client has no input or output.")
        self._lifeline = self._client.stdin
        self._writing = threading.Lock()
        self._stdout = Pump(self._client.stdout.fileno(), Marks(word, lambda _: None))
        self._marks = Marks(word, self._hear)
        self._stderr = Pump(self._client.stderr.fileno(), self._marks)
        self.streams = {"stdout": self._stdout.output, "stderr": self._stderr.output}
        self._spawn(self._write, script)
        self._spawn(self._watch)

    @property
    def started(self) -> bool:
        """The command's process is there."""
        return "pid" in self._said

    def _spawn(self, function: Any, *arguments: Any) -> None:
        thread = threading.Thread(target=function, args=arguments, name=f"ssh-{self.attempt}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _write(self, data: bytes) -> None:
        """Write to the lifeline; in a thread, because a connection may hang."""
        with self._writing, contextlib.suppress(OSError, ValueError):
            view = memoryview(data)
            while view:
                view = view[self._lifeline.write(view) or 0 :]

    def _hear(self, message: str) -> None:
        """In a pump's thread: take in what the script says."""
        kind, _, text = message.partition(" ")
        if kind == "sample":
            self._sample = self._sampler.sample(text)
        elif kind == "host":
            self._sampler.host(text)
        elif kind == "stack":
            stack = parse_stack(text)
            if stack is not None and len(self._stacks) < _MAX_STACKS:
                self._stacks.append(stack)
        elif is_sound(kind, text):
            self._said[kind] = text
            if kind == "exit":
                self._said_exit_at = time.monotonic()

    def _watch(self) -> None:
        """In a thread: wait for the client, then say how the command ended."""
        clock = StallClock()
        while self._client.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._client.wait(0.2)
            now = clock.now(0.2)
            if self._said_exit_at and now - self._said_exit_at > _LINGER_S:
                self._client.kill()
        for pump in (self._stdout, self._stderr):
            pump.wait(_LINGER_S)
        if not self._closing:
            self._exit = self._judge()
            with contextlib.suppress(OSError):
                os.write(self._wake_write, b".")

    def _judge(self) -> Exit:
        """Return how it ended, from what the script said and what the client said."""
        said = self._said
        if "missing" in said:
            return Exit(infra=f"{self.where.host} has no {said['missing']}: install util-linux there")
        if "nofolder" in said:
            return Exit(infra=f"{self.where.host} has no folder {self._cwd!r}")
        if "noprogram" in said:
            return Exit(code=127, infra=f"{self.where.host} has no program {self._program!r}")
        if "exit" in said:
            return Exit(code=int(said["exit"]))
        log = self._own_messages()
        if "pid" not in said and "begin" not in said:
            return Exit(infra=f"{self.where.host}: {cause_of(log)}")
        ended = self.end_over_there() if "pid" in said else "nothing had been started"
        return Exit(infra=f"the connection to {self.where.host} was lost while the command ran; {ended}")

    def _own_messages(self) -> str:
        try:
            with self._log.open("rb") as file:
                said = file.read(_SAID_BYTES).decode(errors="replace")
        except OSError:
            said = ""
        return said or self._marks.before.decode(errors="replace")  # wrong options are told before there is a log

    def end_over_there(self) -> str:
        """Connect again and end what the attempt left over there; return how that went, in words."""
        script = end_script(self.attempt)
        argv = ssh_argv(self.where, str(self._log), loader(script))
        clock = StallClock()
        deadline = clock.now() + _RECONNECT_S
        for turn in range(_TRIES):
            clock.sleep(turn)
            limit = max(1.0, deadline - clock.now())
            with contextlib.suppress(OSError):
                found = parse_left(self._answer(argv, script, limit))
                if found == ():
                    return "its processes were killed through a second connection"
                if found:
                    return f"processes {' '.join(map(str, found))} did not end"
            if clock.now(limit) > deadline:
                break
        return f"the host could not be reached again: processes with ROCMEND_ATTEMPT={self.attempt} may still run there"

    def _answer(self, argv: list[str], script: bytes, limit_s: float) -> bytes:
        """Return what a script says over there, as far as it is short and comes in time."""
        deadline, said = time.monotonic() + limit_s, b""
        with subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._env,
            start_new_session=True,
        ) as client:
            try:
                if client.stdin is None or client.stdout is None:
                    return b""
                client.stdin.write(script)
                client.stdin.close()
                while len(said) < _SAID_BYTES and (left := deadline - time.monotonic()) > 0:
                    if not select.select([client.stdout], [], [], left)[0]:
                        break
                    data = os.read(client.stdout.fileno(), _SAID_BYTES)
                    if not data:
                        break
                    said += data
            finally:
                client.kill()
        return said

    def wake(self) -> int | None:
        """Return a pipe that is written to when it is known how the command ended."""
        return self._wake

    def exit(self) -> Exit | None:
        """Return how the command ended, None while it runs."""
        return self._exit

    def sample(self) -> Sample | None:
        """Return what the command's session does over there, as of a second ago."""
        return self._sample

    def stacks(self) -> tuple[Stack, ...]:
        """Return the kernel stacks that came since the last call, and ask for new ones."""
        stacks, self._stacks = tuple(self._stacks), []
        self._spawn(self._write, b"S\n")
        return stacks

    def notes(self) -> tuple[str, ...]:
        """Return what there is to say since the last call."""
        said, self._notes = tuple(self._notes), []
        return said

    def terminate(self) -> None:
        """Send TERM to everything that the command started."""
        self._spawn(self._write, b"T\n")

    def kill(self) -> None:
        """Kill everything that the command started; a connection that hangs is cut, and another one made."""
        self._spawn(self._write, b"K\n")
        self._spawn(self._cut)

    def _cut(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._client.wait(_LINGER_S)
            return
        self._client.kill()

    def settle(self) -> tuple[str, ...]:
        """Return the processes that would not end; the script has killed what was left."""
        return tuple(f"process {pid} on {self.where.host}" for pid in self._said.get("left", "").split()[:MAX_LEFT])

    def close(self) -> None:
        """Let go of the connection; the script ends over there what may still run."""
        self._closing = self._exit is None
        if self._client.poll() is None:
            self._lifeline.close()  # the end of the lifeline; then the client has nothing to wait for
            self._stdout.close(0)
            self._stderr.close(0)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._client.wait(_LINGER_S)
            self._client.kill()
            self._client.wait()
        else:
            with contextlib.suppress(OSError):
                self._lifeline.close()
            self._stdout.close()
            self._stderr.close()
        for thread in self._threads:
            thread.join(_LINGER_S)
        for stream in (self._client.stdout, self._client.stderr):
            if stream is not None:
                stream.close()
        self._let_go()

    def _let_go(self) -> None:
        os.close(self._wake)
        os.close(self._wake_write)
        self._folder.cleanup()

    def describe(self) -> dict[str, Any]:
        """Return the host, the attempt's id over there and the process."""
        pid = self._said.get("pid", "")
        return {"host": self.where.host, "attempt": self.attempt, **({"pid": int(pid)} if pid else {})}
