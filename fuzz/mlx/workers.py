"""The processes in which programs run: one with real MLX, one with rocmend's."""

from __future__ import annotations

import json
import os
import pickle
import select
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

from language import Program

START_S = 40.0  # to start on a machine that is busy
PROGRAM_S = 0.5
HERE = Path(__file__).resolve().parent


class Worker:
    """A process that runs programs; started anew where one takes it down."""

    def __init__(self, python: str, side: str) -> None:
        self.command = [python, str(HERE / "worker.py"), side]
        self.child: subprocess.Popen[bytes] | None = None

    def run(self, programs: list[Program], *, eager: bool = False) -> list[Any]:
        """Return the outcomes of each program; None for one that crashes or hangs."""
        answer = self._ask(programs, eager=eager)
        if answer is not None:
            return answer
        if len(programs) == 1:
            return [None]
        return [self.run([program], eager=eager)[0] for program in programs]

    def _ask(self, programs: list[Program], *, eager: bool) -> list[Any] | None:
        if self.child is None:
            env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
            self.child = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=env | {"ROCMEND_MLX_DEVICE": "cpu", "OMP_NUM_THREADS": "1"},
            )
        assert self.child.stdin  # noqa: S101  both are pipes
        assert self.child.stdout  # noqa: S101
        try:
            self.child.stdin.write(json.dumps({"programs": programs, "eager": eager}).encode() + b"\n")
            self.child.stdin.flush()
            deadline = time.monotonic() + START_S + PROGRAM_S * len(programs)
            size = struct.unpack("<Q", self._read(8, deadline))[0]
            answer: list[Any] = pickle.loads(self._read(size, deadline))  # noqa: S301  our own worker's
        except (OSError, EOFError, TimeoutError):
            self.close()
            return None
        return answer

    def _read(self, size: int, deadline: float) -> bytes:
        assert self.child  # noqa: S101
        assert self.child.stdout  # noqa: S101
        data = b""
        while len(data) < size:
            ready, _, _ = select.select([self.child.stdout], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                raise TimeoutError
            part = os.read(self.child.stdout.fileno(), size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def close(self) -> None:
        """End the process."""
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None
