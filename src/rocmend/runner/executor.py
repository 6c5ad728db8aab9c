"""How an attempt is started, watched and ended, whatever runs it.

An executor turns a spec into a handle. The run loop polls the handle's file descriptors, asks it for samples and
stacks, and climbs the kill ladder with it. A handle never blocks for long: what takes time (a watch on a cluster, an
SSH connection) happens in a process or thread of its own that writes to a pipe.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import msgspec

from rocmend.core.errors import RocmendError
from rocmend.runner.events import Sample, Stack
from rocmend.runner.spec import AttemptSpec, Container, Kubernetes, Local, Ssh, Where


class NotStartedError(RocmendError):
    """An attempt could not be started: the program, image, host or cluster is not there. Its verdict is ``infra``."""

    code = "not-started"


class Exit(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the attempt's main process ended.

    Attributes:
        code: Exit status where it exited. A shell's or container's 128 + N is given as it stands.
        signal: Signal number where a signal is known to have ended it.
        oom_killed: The kernel, a cgroup or the kubelet ended it for memory.
        infra: Why the harness failed (pod evicted, connection lost, runtime error); empty where it did not.
    """

    code: int | None = None
    signal: int | None = None
    oom_killed: bool = False
    infra: str = ""


class Handle(ABC):
    """A started attempt.

    Attributes:
        streams: Names to readable, non-blocking descriptors: ``stdout``, ``stderr``, and where there are such
            ``channel`` (JSON lines of ``runner.child``) and ``stack`` (Python stacks asked for). They belong to the
            handle, which closes them in ``close``.
        on_this_host: It runs on this machine, so that this machine's GPU and kernel log speak of it.
        pid: The main process, where it has one here; else 0.
        left_behind: Processes that ``settle`` had to end.
        stays: The process goes on after ``settle``, so that its streams do not end.
    """

    streams: Mapping[str, int]
    on_this_host: bool = False
    pid: int = 0
    left_behind: int = 0
    stays: bool = False

    def admits(self, message: dict[str, Any]) -> bool:
        """Whether a message on the channel is about this attempt; sees each before it is taken in."""
        del message
        return True

    def wake(self) -> int | None:
        """Return a descriptor that becomes readable when ``exit`` may answer, or None: then it is asked often."""
        return None

    @abstractmethod
    def exit(self) -> Exit | None:
        """Return how the main process ended, None while it runs. Does not block."""

    def sample(self) -> Sample | None:
        """Return what its processes do now; None where that cannot be seen."""
        return None

    def stacks(self) -> tuple[Stack, ...]:
        """Return kernel stacks that can be read now, and ask a Python child for its own (it comes by ``stack``)."""
        return ()

    def uses_gpu(self) -> bool:
        """Whether one of its processes holds a GPU of this machine open."""
        return False

    def seen_pids(self) -> frozenset[int]:
        """Return its processes on this machine, for telling whose death the kernel log speaks of."""
        return frozenset()

    def notes(self) -> tuple[str, ...]:
        """Return what the executor has to say since the last call (image pulled, pod scheduled, connection lost)."""
        return ()

    @abstractmethod
    def terminate(self) -> None:
        """Ask all of its processes to end (TERM). Does not wait."""

    @abstractmethod
    def kill(self) -> None:
        """End all of its processes (KILL). Does not wait."""

    def settle(self) -> tuple[str, ...]:
        """End what the main process left behind, once it is over; return what would not end, in words."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Let go of descriptors and clean up (remove the container, the Job); called once, last, in every case."""

    def describe(self) -> dict[str, Any]:
        """Return what is worth keeping about where it ran: pid, image digest, host, node."""
        return {}


class Executor(ABC):
    """Starts attempts of one kind."""

    def resolve(self, spec: AttemptSpec) -> AttemptSpec:
        """Return the spec with what defines it pinned, e.g. an image by its digest.

        Raises:
            NotStartedError: What it names is not there.
        """
        return spec

    @abstractmethod
    def start(self, spec: AttemptSpec) -> Handle:
        """Start it.

        Raises:
            NotStartedError: It could not be started.
        """


_EXECUTORS: dict[type[Where], str] = {
    Local: "rocmend.runner.local:LocalExecutor",
    Container: "rocmend.runner.remote.container:ContainerExecutor",
    Ssh: "rocmend.runner.remote.ssh:SshExecutor",
    Kubernetes: "rocmend.runner.remote.kubernetes:KubernetesExecutor",
}


def executor_for(where: Where) -> Executor:
    """Return the executor for a place; its module is imported only now."""
    module, _, name = _EXECUTORS[type(where)].partition(":")
    executor: Executor = getattr(importlib.import_module(module), name)()
    return executor
