"""Attempts in containers, by the podman or docker command line.

The container is not started with ``--rm``: a runtime forgets a container that removes itself before it can be asked
whether it was ended for memory. It is removed when the attempt is let go of, and by the next attempt on this machine
should rocmend be killed before that.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.scratch import ScratchFolder
from rocmend.runner.events import Sample, Stack
from rocmend.runner.executor import Executor, Exit, Handle, NotStartedError
from rocmend.runner.gpu import GpuSampler
from rocmend.runner.local import input_of
from rocmend.runner.remote.container_rules import EXTRA, ROOT, EngineFacts, container_rules, shortcomings
from rocmend.runner.remote.engine import Engine, Image, State, repository
from rocmend.runner.remote.owner import LABEL_ATTEMPT, LABEL_OWNER, ourselves
from rocmend.runner.remote.program import attempt_id, program_of, slug
from rocmend.runner.remote.pump import Pump
from rocmend.runner.samples import TreeSampler
from rocmend.runner.secret import is_hidden
from rocmend.runner.spec import AttemptSpec, Container

_PAUSE_S = 0.2
_SIGKILL_CODE = 137
_CLOSE_S = 30.0
_STDERR_S = 2.0
_SAID_BYTES = 1000  # a client or an init that could not start anything says little else

_READ_ONLY = (
    "it could not write to the image's file system, which is read-only: mount a folder there, or ask for it with "
    'options = ["writable-root"]'
)

_INIT_FAILED = re.compile(
    r"catatonit:\d+\): failed to exec pid1: (?P<podman>.+)|\[FATAL tini \(\d+\)\] exec \S+ failed: (?P<docker>.+)"
)


def resolved(name: str, image: Image) -> str:
    """Return an image's name pinned to its digest, or to its id where it was built here and has no digest."""
    return f"{repository(name)}@{image.digest}"


def run_arguments(  # noqa: PLR0913  each is a different part of the command line
    spec: AttemptSpec,
    where: Container,
    image: Image,
    labels: Mapping[str, str],
    name: str,
    *,
    engine: EngineFacts | None = None,
) -> list[str]:
    """Return the arguments of ``podman run`` or ``docker run`` for an attempt.

    Every user of the machine can read a command line: secrets stand there by name alone, and the client takes their
    values from its environment (``client_env``).

    Args:
        spec: The attempt.
        where: Its place.
        image: The image, by whose id it is run.
        labels: Labels of the container.
        name: Name of the container.
        engine: What is known of the runtime.
    """
    argv, stdin = program_of(spec)
    arguments = ["run", "--name", name, "--pull", "never", "--log-driver", "none", "--entrypoint", argv[0]]
    for key, value in labels.items():
        arguments += ["--label", f"{key}={value}"]
    if stdin:
        arguments.append("--interactive")
    memory = where.memory_bytes or spec.limits.memory_bytes
    if memory:  # as much with swap as without: a limit that swap hides is none
        arguments += ["--memory", str(memory), "--memory-swap", str(memory)]
    if spec.command.cwd:
        arguments += ["--workdir", spec.command.cwd]
    arguments += ["--init"] if where.init else []
    for rule in container_rules(where, engine):
        if rule.what != EXTRA:  # the experiment's own come last, so that they are stronger
            arguments += rule.arguments
    for key, setting in spec.env.items():
        if setting is None:
            arguments += [f"--unsetenv={key}"] if key in image.env else []
        else:
            arguments += ["--env", key if is_hidden(key, setting) else f"{key}={setting}"]
    return [*arguments, *where.extra_args, image.id, *argv[1:]]


def client_env(spec: AttemptSpec) -> dict[str, str]:
    """Return the environment of the runtime's client: ours, and the secrets that the container gets.

    Raises:
        NotStartedError: A secret's name is none that ``--env`` takes as it is.
    """
    secrets = {key: value for key, value in spec.env.items() if value is not None and is_hidden(key, value)}
    for key in secrets:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", key):
            raise NotStartedError("container", f"a secret cannot be passed in a variable named {key!r}.")
    return {**os.environ, **secrets}


def exit_of(state: State | None, program: str, client_code: int | None, said: str = "") -> Exit:
    """Return how a container ended, from what the runtime says once its client is over.

    Sources: https://docs.podman.io/en/latest/markdown/podman-run.1.html, section Exit Status (125, 126, 127);
    https://github.com/openSUSE/catatonit and https://github.com/krallin/tini for what an init says.

    Args:
        state: The container's state; None where there is no such container.
        program: The program that was to run in it.
        client_code: Exit status of the client.
        said: All that came by standard error, where it was little.
    """
    if state is not None and state.running:
        return Exit(infra="the container client exited while the container ran; the container was removed")
    if state is not None and state.started:
        failed = _INIT_FAILED.match(said.removeprefix("ERROR (")) if state.code else None
        if failed is None:
            return Exit(code=state.code, oom_killed=state.oom_killed)
        client_code = 127 if "No such file" in said else 126
    reasons = {
        126: f"the image has {program!r}, but it cannot be executed",
        127: f"the image has no program {program!r}",
    }
    reason = reasons.get(client_code or 0, "the runtime did not start the container")
    details = " ".join((state.error if state is not None else "", *said.split())).strip()
    return Exit(code=client_code, infra=f"{reason}: {details}" if details else reason)


def kernel_says_oom(container_id: str, log: Path = Path("/dev/kmsg")) -> bool | None:
    """Return whether the kernel log names the container's cgroup as out of memory; None where it may not be read.

    Source: https://docs.kernel.org/admin-guide/mm/concepts.html and ``dump_oom_summary`` in Linux' mm/oom_kill.c.
    """
    try:
        descriptor = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        while True:
            try:
                record = os.read(descriptor, 8192)
            except BrokenPipeError:  # records were overwritten while we read: go on with the next
                continue
            if not record:
                return False
            if b"oom-kill:" in record and container_id.encode() in record:
                return True
    except BlockingIOError:
        return False
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _elsewhere(is_podman: bool) -> bool:
    """Whether the runtime's service is set to be on another machine."""
    service = os.environ.get("CONTAINER_HOST" if is_podman else "DOCKER_HOST", "")
    return service.startswith(("tcp:", "ssh:", "http:", "https:"))


class ContainerExecutor(Executor):
    """Runs attempts in containers."""

    def resolve(self, spec: AttemptSpec) -> AttemptSpec:
        """Return the spec with its image pinned; the image is pulled where it has to be.

        Raises:
            NotStartedError: There is no such image, or no runtime.
        """
        where = _where(spec)
        image = Engine(where).provide(where)
        return msgspec.structs.replace(spec, where=msgspec.structs.replace(where, image=resolved(where.image, image)))

    def start(self, spec: AttemptSpec) -> ContainerHandle:
        """Start a container, after removing what a killed rocmend left behind.

        Raises:
            NotStartedError: There is no such image or no runtime, or a setting is not possible.
        """
        where = _where(spec)
        engine = Engine(where)
        image = engine.provide(where)
        taken = {key for key, value in spec.env.items() if value is None} & image.env
        if taken and not engine.is_podman:
            raise NotStartedError(
                "container",
                f"docker cannot remove {', '.join(sorted(taken))} from the image.",
                next_step="Use podman.",
            )
        return ContainerHandle(engine, spec, where, image)


def _where(spec: AttemptSpec) -> Container:
    if not isinstance(spec.where, Container):
        raise TypeError(f"a container executor was given {type(spec.where).__name__}")
    return spec.where


class ContainerHandle(Handle):
    """A container and the client that is attached to it.

    Args:
        engine: The runtime.
        spec: The attempt.
        where: Its place.
        image: Its image.
    """

    def __init__(self, engine: Engine, spec: AttemptSpec, where: Container, image: Image) -> None:
        self.engine = engine
        self.image = image
        self.on_this_host = not _elsewhere(engine.is_podman)
        self._program, stdin = program_of(spec)
        run_id = attempt_id()
        self.name = f"rocmend-{slug(spec.name)}-{run_id}"
        self.container_id = ""
        facts = engine.facts(here=self.on_this_host)
        self._read_only = any(rule.what == ROOT for rule in container_rules(where, facts))
        self._limited = bool(where.memory_bytes or spec.limits.memory_bytes)
        self._killed = self._closing = False
        self._exit: Exit | None = None
        self._notes: list[str] = shortcomings(where, facts)
        self._sampler: TreeSampler | None = None
        self._gpu = GpuSampler()
        self._signals: list[threading.Thread] = []
        self._folder = ScratchFolder("container")
        self._cidfile = self._folder.path / "cid"
        orphans = engine.remove_orphans()
        if orphans:
            self._notes.append(
                f"removed {len(orphans)} container(s) left by an ended rocmend process: {', '.join(orphans)}"
            )
        labels = {LABEL_ATTEMPT: run_id, LABEL_OWNER: ourselves().text()}
        arguments = run_arguments(spec, where, image, labels, self.name, engine=facts)
        arguments[1:1] = ["--cidfile", str(self._cidfile)]
        self._wake, self._wake_write = os.pipe()
        self._client = self._start([*engine.base, *arguments], stdin, client_env(spec))
        self._watcher = threading.Thread(target=self._watch, name=self.name, daemon=True)
        self._watcher.start()

    def _start(self, argv: list[str], stdin: bytes, env: dict[str, str]) -> subprocess.Popen[bytes]:
        """Start the client with its output in pipes."""
        with input_of(stdin) as source:
            try:
                client = subprocess.Popen(
                    argv,
                    stdin=source,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    env=env,
                    cwd=self._folder.path,  # podman's monitor leaves a file named oom where it was started
                )
            except OSError as error:
                self._let_go()
                raise NotStartedError("container", f"{argv[0]} could not be started: {error.strerror}.") from error
        if client.stdout is None or client.stderr is None:
            raise NotStartedError("container", "the runtime's client has no output.")
        os.set_blocking(client.stdout.fileno(), False)
        self._stderr = Pump(client.stderr.fileno())
        self.streams = {"stdout": client.stdout.fileno(), "stderr": self._stderr.output}
        return client

    def _watch(self) -> None:
        """In a thread: find the container's process, wait for the client, and ask how it ended."""
        while self._client.poll() is None and self._sampler is None and not self._closing:
            self._find_process()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._client.wait(_PAUSE_S)
        code = self._client.wait()
        if self._closing:
            return
        self._find_id()
        try:
            state = self.engine.state(self.name)
        except NotStartedError as error:
            self._exit = Exit(infra=str(error))
        else:
            self._stderr.wait(_STDERR_S)
            said = self._stderr.tail.decode(errors="replace") if self._stderr.total <= _SAID_BYTES else ""
            if code and self._read_only and b"Read-only file system" in self._stderr.tail:
                self._notes.append(_READ_ONLY)
            self._exit = self._judge(exit_of(state, self._program[0], code, said))
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b".")

    def _find_id(self) -> None:
        with contextlib.suppress(OSError):
            self.container_id = self._cidfile.read_text(encoding="ascii").strip()

    def _find_process(self) -> None:
        """Look for the container's first process among this machine's."""
        self._find_id()
        if not self.container_id or not self.on_this_host:
            return
        with contextlib.suppress(NotStartedError):
            state = self.engine.state(self.name)
            if state is not None and state.pid and Path(f"/proc/{state.pid}").exists():
                self._sampler = TreeSampler(state.pid, include_root=True)

    def _judge(self, end: Exit) -> Exit:
        """Add what the kernel says of memory, where the runtime may have missed it."""
        if end.infra or end.oom_killed or not self._limited or not end.code or self._killed:
            return end
        said = kernel_says_oom(self.container_id) if self.on_this_host else None
        if said is None and end.code == _SIGKILL_CODE:
            self._notes.append("killed (137) under a memory limit, not by rocmend: treated as out of memory")
            said = True
        return msgspec.structs.replace(end, oom_killed=bool(said))

    def wake(self) -> int | None:
        """Return a pipe that is written to when it is known how the container ended."""
        return self._wake

    def exit(self) -> Exit | None:
        """Return how the container ended, None while it runs."""
        return self._exit

    def sample(self) -> Sample | None:
        """Return what the container's processes do, where they are this machine's."""
        sample = self._sampler.sample() if self._sampler else None
        gpu = self._gpu.sample()
        if sample is None or gpu is None:
            return sample
        return msgspec.structs.replace(
            sample, gpu_busy_percent=gpu.busy_percent, gpu_power_w=gpu.power_w, gpu_clock_mhz=gpu.clock_mhz
        )

    def seen_pids(self) -> frozenset[int]:
        """Return the container's processes seen so far."""
        return frozenset(self._sampler.seen) if self._sampler else frozenset()

    def uses_gpu(self) -> bool:
        """Whether one of its processes holds a GPU open."""
        return self._sampler.uses_gpu() if self._sampler else False

    def stacks(self) -> tuple[Stack, ...]:
        """Return the kernel stacks that may be read."""
        return self._sampler.kernel_stacks() if self._sampler else ()

    def notes(self) -> tuple[str, ...]:
        """Return what there is to say since the last call."""
        said, self._notes = tuple(self._notes), []
        return said

    def _signal(self, name: str) -> None:
        """In a thread: signal the container, or its client while there is none yet."""

        def send() -> None:
            if not self.engine.ask("kill", "--signal", name, self.name).ok and self._exit is None and not self._closing:
                self._client.terminate() if name == "TERM" else self._client.kill()

        thread = threading.Thread(target=send, name=f"{self.name}-{name}", daemon=True)
        self._signals.append(thread)
        thread.start()

    def terminate(self) -> None:
        """Send TERM to the container's first process."""
        self._signal("TERM")

    def kill(self) -> None:
        """Kill the container: with its first process go all others."""
        self._killed = True
        self._signal("KILL")

    def close(self) -> None:
        """Remove the container and let go of its client."""
        self._closing = self._exit is None
        deadline = time.monotonic() + _CLOSE_S
        while True:  # a container that is just being made is not there yet for the first removal
            self.engine.remove(self.name)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._client.wait(_PAUSE_S)
                break
            if time.monotonic() > deadline:
                self._client.kill()
                break
        self.engine.remove(self.name)
        self._stderr.close()
        for thread in (self._watcher, *self._signals):
            thread.join(_CLOSE_S)
        for stream in (self._client.stdout, self._client.stderr):
            if stream is not None:
                stream.close()
        self._let_go()

    def _let_go(self) -> None:
        os.close(self._wake)
        os.close(self._wake_write)
        self._folder.cleanup()

    def describe(self) -> dict[str, Any]:
        """Return the runtime, the container and its image."""
        return {
            "runtime": self.engine.program,
            "container": self.container_id[:12] or self.name,
            "image_id": self.image.id,
            "image_digest": self.image.digest,
        }
