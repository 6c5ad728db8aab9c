"""One measurement at a time on a machine, or on a GPU of it.

A benchmark or a tuning locks the machine. One that was told which GPU to use shares the machine with others on other
GPUs, and locks that GPU. The lock is the kernel's (``flock``) on a file in ``/tmp``, whatever ``TMPDIR`` says: it
belongs to the machine, whoever measures there and wherever their ``ROCMEND_HOME`` is (which hosts may share), and it is
gone with the process that holds it, however that ends. The file says who holds it and since when, and is believed only
while that process is there. Containers have a ``/tmp`` of their own: what runs in one neither sees the lock outside nor
is seen there.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import getpass
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from rocmend.core.documents import MALFORMED
from rocmend.core.errors import RocmendError
from rocmend.core.variables import LOCKS
from rocmend.core.visible import one_line
from rocmend.runner.remote.owner import is_gone, ourselves, parse_owner

NAME = "rocmend-measuring.lock"
GPU_NAME = "rocmend-measuring-gpu-{}.lock"
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
        owner: The same process with its host, boot, namespace and start, as ``Owner`` writes it.
    """

    user: str
    pid: int
    since: str
    what: str
    owner: str = ""

    @property
    def is_gone(self) -> bool:
        """It is known to have ended: of several who share the machine, the last to come left its name there."""
        owner = parse_owner(self.owner)
        return owner is not None and is_gone(owner, ourselves())

    def text(self) -> str:
        """Return it in words."""
        return one_line(f"{self.what[:200]}, by {self.user[:80]} (process {self.pid}) since {self.since[:40]}")


@contextlib.contextmanager
def measuring(
    what: str, *, gpu: str = "", on_wait: Callable[[str], None] | None = None, folder: Path | None = None
) -> Iterator[None]:
    """Hold this machine's lock, or that of one of its GPUs.

    Args:
        what: What is going to be measured, for others to read.
        gpu: Number of the only GPU that is measured; empty for the machine.
        on_wait: Told who measures, before it waits for their end; None refuses in place of waiting.
        folder: Where the files are; None for the machine's.

    Raises:
        BusyError: Another process holds it; the message says who.
        RocmendError: The file can't be made, or something else is in its place.
    """
    place = folder or Path(os.environ.get(LOCKS, "/tmp"))  # noqa: S108  the file is opened with care, see below
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    own = Holder(_user(), os.getpid(), now, what, ourselves().text())
    with contextlib.ExitStack() as stack:
        stack.enter_context(_held(place / NAME, own, fcntl.LOCK_SH if gpu else fcntl.LOCK_EX, on_wait))
        if gpu:
            stack.enter_context(_held(place / GPU_NAME.format(gpu), own, fcntl.LOCK_EX, on_wait))
        yield


def gpu_of(device: str, environment: Mapping[str, str]) -> str:
    """Return the number that the driver gives the GPU which torch calls so; empty where that can't be told.

    Args:
        device: ``cuda:1``, ``cuda``, ``auto``, ``cpu``.
        environment: Its variables may show torch some GPUs alone.
    """
    kind, _, number = device.partition(":")
    if kind != "cuda":
        return ""
    number = number or "0"
    for names in (("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"), ("ROCR_VISIBLE_DEVICES",)):
        shown = next((environment[name] for name in names if environment.get(name)), "")
        parts = [part.strip() for part in shown.split(",")] if shown else []
        if parts:
            number = parts[int(number)] if number.isdecimal() and int(number) < len(parts) else ""
    return number if number.isdecimal() else ""


@contextlib.contextmanager
def _held(path: Path, own: Holder, kind: int, on_wait: Callable[[str], None] | None) -> Iterator[None]:
    descriptor = _opened(path)
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _named(descriptor, path.parent)
            if on_wait is None:
                raise BusyError(
                    own.what,
                    f"another rocmend measures on this machine: {holder}.",
                    why="Two measurements at the same time disturb each other.",
                    next_step="Wait until it has ended.",
                ) from None
            on_wait(holder)
            fcntl.flock(descriptor, kind)
        with contextlib.suppress(OSError):  # another user's file, which can be locked and not written
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, msgspec.json.encode(own), 0)
        yield
        if kind == fcntl.LOCK_EX:  # what several share may name another one by now
            with contextlib.suppress(OSError):
                os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int:
    """Open the lock's file, which another user may have made; a link, or what is no file, is refused."""
    try:
        return _plain(path)
    except OSError as error:
        raise RocmendError(
            "bench",
            f"the file that keeps two benchmarks apart can't be opened: {error.strerror} ({path}).",
            next_step=f"Make {path.parent} a folder that you may write to, and remove what else has this name there.",
        ) from error


def _plain(path: Path) -> int:
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
    raise RocmendError("bench", f"{path} is no plain file.", next_step="Remove it.")


def _named(descriptor: int, folder: Path) -> str:
    """Say who holds a lock: who the file names, or another one who has a GPU of this machine, if that one has ended."""
    found = _holder(descriptor)
    if found is not None and found.is_gone:
        others = (_holder_of(path) for path in sorted(folder.glob(GPU_NAME.format("*"))))
        found = next((one for one in others if one is not None and not one.is_gone), None)
    return found.text() if found is not None else "it does not say what"


def _holder(descriptor: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(descriptor, _MOST_BYTES, 0), type=Holder)
    except (OSError, *MALFORMED):
        return None


def _holder_of(path: Path) -> Holder | None:
    with contextlib.suppress(OSError, RocmendError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            return _holder(descriptor)
        finally:
            os.close(descriptor)
    return None


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user, no such variable
        return str(os.getuid())
