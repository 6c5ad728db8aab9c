"""What the kernel says while an attempt runs: new log lines of known classes, and kills for memory.

Sources: https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg (one record a read, EPIPE after an overrun),
https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.events, oom_kill)
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import msgspec

from rocmend.machine.parse.kernel_log import classify

RESET_CLASSES = frozenset(
    {
        "reset_begin",
        "reset_failed",
        "reset_mode1",
        "reset_mode2",
        "reset_other",
        "reset_recovered",
        "ring_reset",
        "ring_reset_failed",
        "vram_lost",
    }
)
"""Classes of kernel lines that say that the GPU was reset, or that resetting it failed."""

_MAX_RECORDS = 2000
_KILLED = re.compile(r"[Oo]ut of memory: Kill(?:ed)? process (\d{1,10}) \(")


class KernelLine(msgspec.Struct, frozen=True):
    """A line of the kernel log that is of a known class."""

    classes: tuple[str, ...]
    text: str


def parse_record(data: bytes) -> str:
    """Return the message of a ``/dev/kmsg`` record: what stands behind the first semicolon, without its dictionary."""
    return data.partition(b";")[2].partition(b"\n")[0].decode(errors="replace")


def killed_process(line: str) -> int | None:
    """Return the process that an out-of-memory line says was killed."""
    match = _KILLED.search(line)
    return int(match[1]) if match else None


class KernelLog:
    """The kernel log from now on.

    Args:
        path: The device; None or one that may not be read gives a log that says nothing.

    Attributes:
        readable: It can be read.
    """

    def __init__(self, path: str | None = "/dev/kmsg") -> None:
        self._descriptor = -1
        if path is not None:
            with contextlib.suppress(OSError):
                self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                os.lseek(self._descriptor, 0, os.SEEK_END)
        self.readable = self._descriptor >= 0

    def new_lines(self) -> list[KernelLine]:
        """Return the lines of known classes since the last call."""
        found = []
        for _ in range(_MAX_RECORDS if self.readable else 0):
            try:
                data = os.read(self._descriptor, 1 << 13)
            except BrokenPipeError:
                continue  # the ring buffer overran what we had not read: go on with what is there
            except OSError:
                break
            if not data:
                break
            text = parse_record(data)
            classes = tuple(classify(text))
            if classes:
                found.append(KernelLine(classes, text[:500]))
        return found

    def close(self) -> None:
        """Let go of the device."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            self.readable = False


class OomCounter:
    """Counts the kernel's kills for memory in our control group.

    Args:
        root: Where control groups are mounted.
        self_file: The file that names our groups.
    """

    def __init__(self, root: Path = Path("/sys/fs/cgroup"), self_file: Path = Path("/proc/self/cgroup")) -> None:
        self._files: list[Path] = []
        with contextlib.suppress(OSError):
            for line in self_file.read_text(encoding="utf-8", errors="replace").splitlines():
                _, controllers, path = [*line.split(":", 2), "", ""][:3]
                if not controllers:
                    self._files += [root / path.lstrip("/") / "memory.events", root / "memory.events"]
                elif "memory" in controllers.split(","):
                    self._files += [
                        root / "memory" / path.lstrip("/") / "memory.oom_control",
                        root / "memory" / "memory.oom_control",
                    ]
        self._begin = self._count()

    def _count(self) -> int | None:
        for path in self._files:
            with contextlib.suppress(OSError, ValueError):
                for line in path.read_text(encoding="ascii", errors="replace").splitlines():
                    name, _, value = line.partition(" ")
                    if name == "oom_kill":
                        return int(value)
        return None

    def kills(self) -> int:
        """Return the kills since the counter was made; 0 where they are not counted."""
        now = self._count()
        return 0 if now is None or self._begin is None else max(0, now - self._begin)
