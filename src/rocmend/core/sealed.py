"""Folders that are whole or not there: built beside their place, flushed to disk, marked as complete, then named.

A folder that was cut short by a kill, a full disk or a power cut, one that somebody else made, and an empty one have no
mark that fits them: they do not count as there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError
from rocmend.core.files import naming, open_private, write_atomic
from rocmend.core.private import is_own_file, untrusted
from rocmend.core.scratch import ScratchFolder

__all__ = ["LOCK", "MARK", "building", "is_complete"]

MARK = ".rocmend-complete.json"
_MAX_MARK_BYTES = 1 << 16
LOCK = ".rocmend-complete.lock"


class _Mark(msgspec.Struct, frozen=True):
    """What a complete folder holds.

    Attributes:
        files: SHA-256 of the paths and sizes of its files: looked at whenever it is used.
        contents: SHA-256 of the paths and contents.
    """

    files: str
    contents: str


@contextlib.contextmanager
def building(place: Path) -> Iterator[Path]:
    """Yield a folder to fill; at the end it is complete and becomes ``place``, at an error it is removed.

    Args:
        place: Its folder is there. What is there under its own name and is not complete is replaced.

    Raises:
        OSError: It cannot be written.
    """
    with ScratchFolder("building", place.parent) as made:
        yield made
        _seal(made)
        with _alone(place):
            if is_complete(place):  # another process was faster
                return
            with ScratchFolder("replaced", place.parent) as old:
                if os.path.lexists(place):
                    place.rename(old / place.name)
                made.rename(place)
            _flush(place.parent)


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Keep other processes from naming a folder: one that is complete must not be replaced, for it may be in use.

    The lock is on a file beside it, which stays: a lock on a file that is removed keeps nobody out.
    """
    handle = open_private(place.with_name(LOCK), os.O_RDWR)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def is_complete(folder: Path, *, thorough: bool = False) -> bool:
    """Tell whether a folder holds what it was completed with, all of it ours.

    Args:
        folder: The folder.
        thorough: Read every file, instead of looking at its size.
    """
    try:
        if folder.is_symlink() or untrusted(folder) or not is_own_file(folder / MARK):
            return False
        mark = read_json(folder / MARK, _Mark, max_bytes=_MAX_MARK_BYTES)
        if not all(_is_ours(folder / name) for name in _names(folder)):
            return False
        return mark.files == _listing(folder) and (not thorough or mark.contents == _contents(folder))
    except (OSError, DataError):
        return False


def _is_ours(path: Path) -> bool:
    return is_own_file(path) or (path.is_file() and not path.is_symlink() and path.stat().st_size == 0)


def _seal(folder: Path) -> None:
    with naming(folder):
        mark = _Mark(_listing(folder), _contents(folder, flush=True))
        for at, _, _ in os.walk(folder):
            _flush(Path(at))
        write_atomic(folder / MARK, msgspec.json.encode(mark), private=True)
        _flush(folder)


def _names(folder: Path) -> list[str]:
    """Return the files in it, but for byte code that was written since and the mark itself."""
    found = [
        os.path.relpath(Path(at) / name, folder)
        for at, folders, names in os.walk(folder)
        for name in (*names, *(one for one in folders if (Path(at) / one).is_symlink()))
        if Path(at).name != "__pycache__"
    ]
    return sorted(name for name in found if name != MARK)


def _listing(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in _names(folder):
        digest.update(f"{name}\0{(folder / name).lstat().st_size}\0".encode(errors="surrogateescape"))
    return digest.hexdigest()


def _contents(folder: Path, *, flush: bool = False) -> str:
    digest = hashlib.sha256()
    for name in _names(folder):
        with (folder / name).open("rb") as file:
            digest.update(name.encode(errors="surrogateescape") + b"\0")
            digest.update(hashlib.file_digest(file, "sha256").digest())
            if flush:
                os.fsync(file.fileno())
    return digest.hexdigest()


def _flush(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
