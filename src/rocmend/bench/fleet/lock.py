"""One exclusive measurement at a time on a machine: of fleets and of ``bench exclusive``.

The lock is the kernel's (``flock``) on a file in the folder of temporary files: it belongs to the machine, whoever
measures there and wherever their ``ROCMEND_HOME`` is (which hosts may share), and it is gone with the process that
holds it, however that ends. The file says who holds it and since when.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import getpass
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rocmend.core.documents import MALFORMED
from rocmend.core.errors import RocmendError
from rocmend.core.visible import one_line

NAME = "rocmend-measuring.lock"
_MOST_BYTES = 4096
_TRIES = 10


class BusyError(RocmendError):
    """Another rocmend measures on this machine."""

    code = "busy"


class Holder(msgspec.Struct, frozen=True):
    """Who measures.

    Attributes:
        user: Login name.
        pid: Process, in its own namespace.
        since: ISO time (UTC).
        what: What it measures.
    """

    user: str
    pid: int
    since: str
    what: str

    def text(self) -> str:
        """Return it in words."""
        return one_line(f"{self.what[:200]}, by {self.user[:80]} (process {self.pid}) since {self.since[:40]}")


@contextlib.contextmanager
def measuring(what: str, folder: Path | None = None) -> Iterator[None]:
    """Hold this machine's lock.

    Args:
        what: What is going to be measured, for others to read.
        folder: Where the file is; None for the folder of temporary files.

    Raises:
        BusyError: Another process holds it; the message says who.
        OSError: The file can't be made.
    """
    path = (folder or Path(tempfile.gettempdir())) / NAME
    descriptor = _opened(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                "fleet",
                f"another rocmend measures on this machine: {_holder(descriptor)}.",
                why="Two measurements at the same time falsify each other.",
                next_step="Wait until it has ended.",
            ) from None
        own = Holder(_user(), os.getpid(), dt.datetime.now(dt.UTC).isoformat(timespec="seconds"), what)
        with contextlib.suppress(OSError):  # another user's file, which can be locked and not written
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(own), 0)
        yield
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    """Open the lock's file, which another user may have made; a link, or what is no file, is refused."""
    flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    for _ in range(_TRIES):
        try:
            descriptor = os.open(path, os.O_RDWR | flags)
        except PermissionError:
            descriptor = os.open(path, os.O_RDONLY | flags)
        except FileNotFoundError:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o666)
            except FileExistsError:
                continue
            os.fchmod(descriptor, 0o666)  # every user of this machine may measure
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        break
    raise RocmendError("fleet", f"{path} is no plain file.", next_step="Remove it.")


def _holder(descriptor: int) -> str:
    try:
        return msgspec.json.decode(os.pread(descriptor, _MOST_BYTES, 0), type=Holder).text()
    except (OSError, *MALFORMED):
        return "it does not say what"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, no such variable
        return str(os.getuid())
