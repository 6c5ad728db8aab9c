"""Temporary folders and half-written files that the next start removes where their owner was killed.

Each holds a lock (``flock``) for as long as its owner lives; the kernel lets go of it however the owner ends. A process
number would not do: containers share folders, and not process numbers. Only what bears a name of ours, belongs to the
same user, is no link and has no owner is removed. A file system without locks keeps what was left there. On one that
hosts share (NFS, virtiofs, 9p) a lock may be seen by its own host alone: what is there goes only when nothing changed
it for a day.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Self

from rocmend.core.mounts import shared_by_hosts

_OURS = re.compile(r"\.?rocmend-[a-z]+-[a-z0-9_]{8}\.tmp|\..{0,48}\.[a-z0-9_]{8}\.rocmend-part", re.DOTALL)
_MOST_TRIES = 20
_UNTOUCHED_S = 86400.0
_swept: set[Path] = set()


class ScratchFolder:
    """A temporary folder that is removed when the block or the process ends, or by the next start.

    Args:
        what: What it is for, a word of lower-case letters: part of its name.
        place: The folder that it is made in, where it is then hidden; None for the folder of temporary files.

    Attributes:
        path: The folder.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, what: str, place: Path | None = None) -> None:
        parent = Path(tempfile.gettempdir()) if place is None else place
        prefix = f"{'.' if place is not None else ''}rocmend-{what}-"
        self.path, lock = _made(parent, lambda: tempfile.mkdtemp(".tmp", prefix, parent), os.O_RDONLY | os.O_DIRECTORY)
        self._end = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        """Remove the folder with all that is in it; nothing where it has been moved away."""
        self._end()


class PartialFile:
    """A file beside its place, to be moved there once it is whole; removed at the end of the block if it was not.

    Args:
        path: Where it is to be.

    Attributes:
        path: Where it is until then; readable by its owner only.
        descriptor: It, open for reading and writing until the block ends.

    Raises:
        OSError: It cannot be made.
    """

    def __init__(self, path: Path) -> None:
        def make() -> str:
            handle, name = tempfile.mkstemp(".rocmend-part", f".{path.name[:48]}.", path.parent)
            os.close(handle)
            return name

        self.path, self.descriptor = _made(path.parent, make, os.O_RDWR)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.path.unlink(missing_ok=True)
        os.close(self.descriptor)


def sweep(place: Path) -> int:
    """Remove what killed processes of ours left in a folder; return how much it was.

    Args:
        place: The folder; what cannot be read or removed is left.
    """
    count = 0
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        ours = [Path(entry.path) for entry in entries if _OURS.fullmatch(entry.name)]
        untouched_s = _UNTOUCHED_S if ours and shared_by_hosts(place.resolve()) else None
        for path in ours:
            with contextlib.suppress(OSError):
                count += _collect(path, untouched_s)
    return count


def _made(parent: Path, make: Callable[[], str], flags: int) -> tuple[Path, int]:
    """Make something and lock it; return it with the descriptor that holds the lock."""
    if parent not in _swept:
        _swept.add(parent)
        sweep(parent)
    for _ in range(_MOST_TRIES):
        path = Path(make())
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)
            if _locked(descriptor) is not False and _is(path, descriptor):
                return path, descriptor
            os.close(descriptor)  # somebody swept before it was locked
    raise FileExistsError(f"nothing can be kept in {parent}: others remove it")


def _locked(descriptor: int) -> bool | None:
    """Lock, for as long as the descriptor is open; False where another has it, None where there are no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is(path: Path, descriptor: int) -> bool:
    """Tell whether an open file or folder is what a path names."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _collect(path: Path, untouched_s: float | None = None) -> bool:
    """Remove one thing that bears a name of ours, if it is ours and has no owner; return whether it was.

    Args:
        path: The file or folder.
        untouched_s: Seconds that nothing must have changed it for; None where its lock can be relied on.
    """
    mode = path.lstat().st_mode
    flags = os.O_RDONLY | os.O_DIRECTORY if stat.S_ISDIR(mode) else os.O_RDWR
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        return False
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or not _locked(descriptor) or not _is(path, descriptor):
            return False
        if untouched_s is not None and time.time() - found.st_mtime < untouched_s:
            return False
        if stat.S_ISDIR(found.st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink()
    finally:
        os.close(descriptor)
    return True


def _remove(path: Path, descriptor: int, owner: int) -> None:
    if os.getpid() == owner:  # not in a process that came by fork
        shutil.rmtree(path, ignore_errors=True)
    os.close(descriptor)
