"""A process that looks at files and ports them: reads tasks from its standard input, answers on its standard output.

Frames in both directions are a length of four bytes (little-endian) and MessagePack. The first task is a ``Setup``
and the first answer empty.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import BinaryIO

import msgspec

from rocmend.port.look import Task, look
from rocmend.port.rewrite import Rewrite, rewrite
from rocmend.port.rule import rules

__all__ = ["Setup", "read_frame", "write_frame"]

_LENGTH = struct.Struct("<I")
_PR_SET_PDEATHSIG = 1
_RETIRE_BYTES = 768 << 20
"""A process that has grown to this is replaced: what parsers keep is given back to the system only at its end."""


class Setup(msgspec.Struct, frozen=True, array_like=True):
    """What a worker is told first."""

    root: str
    max_file_bytes: int
    memory_limit_bytes: int
    macros: dict[str, tuple[int | None, int | None]] = {}


def write_frame(stream: BinaryIO, payload: bytes) -> None:
    """Write one frame."""
    rest = memoryview(_LENGTH.pack(len(payload)) + payload)
    while rest:  # a stream without a buffer writes what fits
        rest = rest[stream.write(rest) :]
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """Return the next frame; None at the end, also where it comes within a frame."""
    head = _exactly(stream, _LENGTH.size)
    return None if head is None else _exactly(stream, int(_LENGTH.unpack(head)[0]))


def _exactly(stream: BinaryIO, count: int) -> bytes | None:
    parts = []
    while count:
        part = stream.read(count)
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _limit_memory(more_bytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + more_bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> int:
    """Look at files until there are no more."""
    if sys.platform == "linux":  # the parent keeps the time limit: without it, a file that takes for ever would
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    tasks = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not end up between frames
    first = read_frame(tasks)
    if first is None:
        return 0
    setup = msgspec.msgpack.decode(first, type=Setup)
    _limit_memory(setup.memory_limit_bytes)
    write_frame(answers, b"")  # it has started: from here on, a file is what ends it
    rules()
    if setup.macros:
        from rocmend.port.cuda.conditions import use_macros

        use_macros({name.encode(): values for name, values in setup.macros.items()})
    root = Path(setup.root)
    encoder = msgspec.msgpack.Encoder()
    decoder = msgspec.msgpack.Decoder(Task | Rewrite)
    while (frame := read_frame(tasks)) is not None:
        task = decoder.decode(frame)
        most = setup.max_file_bytes
        result = rewrite(root, task, most) if isinstance(task, Rewrite) else look(root, task, most)
        retiring = _peak_bytes() > _RETIRE_BYTES
        write_frame(answers, encoder.encode((result, retiring)))
        if retiring:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
