"""Whose a container or Job is, so that what a killed rocmend left behind can be found and removed."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec

LABEL_ATTEMPT = "rocmend.attempt"
LABEL_OWNER = "rocmend.owner"


class Owner(msgspec.Struct, frozen=True):
    """The process that started something.

    Attributes:
        host: Its host's name.
        boot: Id of that host's boot.
        namespace: Inode of its PID namespace, in which ``pid`` counts.
        pid: Its id.
        began: When it started, in clock ticks after boot: an id may be given again.
    """

    host: str
    boot: str
    namespace: int
    pid: int
    began: int

    def text(self) -> str:
        """Return it as a label's value."""
        return f"{self.host}/{self.boot}/{self.namespace}/{self.pid}/{self.began}"


def ourselves() -> Owner:
    """Return this process as an owner."""
    return Owner(
        socket.gethostname(),
        _boot(),
        Path("/proc/self/ns/pid").stat().st_ino,
        os.getpid(),
        began(os.getpid()) or 0,
    )


def parse_owner(text: str) -> Owner | None:
    """Return the owner that a label names; None where the label is not ours."""
    parts = text.split("/")
    try:
        host, boot, namespace, pid, start = parts
        return Owner(host, boot, int(namespace), int(pid), int(start))
    except ValueError:
        return None


def is_gone(owner: Owner, here: Owner) -> bool:
    """Whether an owner is known to be over: it ran on this host, and it or its whole boot has ended."""
    if owner.host != here.host:
        return False
    if owner.boot != here.boot:
        return True
    return owner.namespace == here.namespace and began(owner.pid) != owner.began


def began(pid: int) -> int | None:
    """Return when a process started, in clock ticks after boot; None where there is none."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
