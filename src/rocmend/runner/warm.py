"""Python calls as attempts in one process that stays, for as long as nothing is wrong with it.

Each call is an attempt of its own: watched, judged and described as one in a process of its own would be. The process
stays for the next call only where the call was answered and no process was left behind; in every other case, and
whenever the caller has doubts (`WarmExecutor.retire`), all that descends from it is killed and the next call gets a new
one.

It is never forked from a process that holds a GPU: a new one is a new interpreter.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from typing import Any

from rocmend.runner.events import Sample, Stack
from rocmend.runner.executor import Executor, Exit, Handle, NotStartedError
from rocmend.runner.local import Launch, LocalHandle, launch_of
from rocmend.runner.spec import AttemptSpec, PythonCall

_STALE_READS = 64
"""Reads that empty a pipe which nobody should be writing to."""


class WarmExecutor(Executor):
    """Gives one Python call after another to one process; not for several threads at once.

    Attributes:
        calls: Calls that the process which is there has been given.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._process: LocalHandle | None = None
        self._launch: Launch | None = None

    @property
    def alive(self) -> bool:
        """Whether there is a process."""
        return self._process is not None and self._process.exit() is None

    def start(self, spec: AttemptSpec) -> Handle:
        """Hand the call to the process; start one where there is none, or none with this environment and these limits.

        Raises:
            NotStartedError: No process could be started, or it does not take the call.
        """
        if not isinstance(spec.command, PythonCall):
            raise NotStartedError("warm", "a process that stays runs Python calls only.")
        launch = launch_of(spec, spec.command, serves=True)
        if not self.alive or launch != self._launch:
            self.retire()
            self._process, self._launch = LocalHandle(launch), launch
        process = self._process
        if process is None:
            raise NotStartedError("warm", "the process ended before it received the call.")
        try:
            made = _Answer(self, process, spec.command)
        except OSError as error:
            self.retire()
            raise NotStartedError("warm", f"the process did not accept the call: {error.strerror}.") from error
        self.calls += 1
        return made

    def retire(self) -> None:
        """End the process and all that it started."""
        process, self._process, self.calls = self._process, None, 0
        if process is not None:
            process.close()


class _Answer(Handle):
    """One call's time in the process: over when the process says that it is done, or ends."""

    on_this_host = True

    def __init__(self, executor: WarmExecutor, process: LocalHandle, call: PythonCall) -> None:
        self._executor, self._process = executor, process
        self.streams, self.pid = process.streams, process.pid
        self._id = secrets.token_hex(8)
        self._done = self._ending = False
        self._number = executor.calls + 1
        for descriptor in self.streams.values():
            _empty(descriptor)  # what comes late from another call is not this one's
        process.sample()  # rates are those since the last sample: let them begin here
        request = {"id": self._id, "target": call.target, "arguments": call.arguments, "path": call.path}
        data = json.dumps(request).encode() + b"\n"
        if os.write(self.streams["channel"], data) < len(data):
            raise BlockingIOError(0, "it does not read")

    def admits(self, message: dict[str, Any]) -> bool:
        """Whether a message carries this call's number; another call's, and what the call made up, does not."""
        if message.pop("id", None) != self._id:
            return False
        self._done = self._done or "done" in message
        return True

    def exit(self) -> Exit | None:
        """Return status 0 once the call is answered; how the process ended where it ended before."""
        return Exit(code=0) if self._done and not self._ending else self._process.exit()

    def settle(self) -> tuple[str, ...]:
        """Let the process stay where it is in order; else end it and all that it started."""
        running = self._process.exit() is None
        self.stays = running and self._done and not self._ending and not self._process.others()
        if self.stays:
            return ()
        left = self._process.settle()
        self.left_behind = max(0, self._process.left_behind - running)
        return left

    def close(self) -> None:
        """Give the process back, or let go of it where it is over."""
        if not self.stays:
            self._executor.retire()

    def terminate(self) -> None:
        """Ask the process to end, with all that it started."""
        self._ending = True
        self._process.terminate()

    def kill(self) -> None:
        """Kill the process and all that it started."""
        self._ending = True
        self._process.kill()

    def wake(self) -> int | None:
        """Return what tells of the process's end; the answer comes by the channel."""
        return self._process.wake()

    def sample(self) -> Sample | None:
        """Return what the process and the GPU do."""
        return self._process.sample()

    def stacks(self) -> tuple[Stack, ...]:
        """Return kernel stacks, and ask the process for its own."""
        return self._process.stacks()

    def uses_gpu(self) -> bool:
        """Whether the process holds a GPU open."""
        return self._process.uses_gpu()

    def seen_pids(self) -> frozenset[int]:
        """Return the processes seen so far."""
        return self._process.seen_pids()

    def notes(self) -> tuple[str, ...]:
        """Return what was done to the warden."""
        return self._process.notes()

    def describe(self) -> dict[str, Any]:
        """Return the process's id, and the number of this call among those that it was given."""
        return {**self._process.describe(), "call": self._number}


def _empty(descriptor: int) -> None:
    """Read and drop what lies in a pipe."""
    with contextlib.suppress(OSError):
        for _ in range(_STALE_READS):
            if not os.read(descriptor, 1 << 18):
                return
