"""Reading a file whole, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["NotReadError", "read_steady", "stamp_of", "too_large"]


class NotReadError(Exception):
    """A file that is not read; the message says why, in the words of a report."""


def stamp_of(status: os.stat_result) -> tuple[int, int, int]:
    """Return what tells one state of a file from another: modification and change times in ns, and inode."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def too_large(size_bytes: int, max_bytes: int) -> str:
    """Return why a file of this size is not read."""
    return f"{size_bytes:,} bytes, more than the limit of {max_bytes:,} (max-file-bytes in [tool.rocmend.port])"


def read_steady(path: Path, max_bytes: int) -> tuple[bytes, tuple[int, int, int]]:
    """Return a file's bytes and the stamp that they belong to.

    Args:
        path: A regular file; the last part of the path is no link.
        max_bytes: A larger file is not read.

    Raises:
        NotReadError: It cannot be read, is too large, or changed meanwhile: half of a new file behind half of an old
            one is no source of anything.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise NotReadError(f"cannot be read: {error.strerror}") from error
    try:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            raise NotReadError("not a regular file")
        if before.st_size > max_bytes:
            raise NotReadError(too_large(before.st_size, max_bytes))
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)
        after = os.fstat(handle)
        named = path.stat(follow_symlinks=False)
    except OSError as error:
        raise NotReadError(f"cannot be read: {error.strerror}") from error
    finally:
        os.close(handle)
    if not (len(data) == before.st_size and stamp_of(before) == stamp_of(after) == stamp_of(named)):
        raise NotReadError("changed while it was being read; run again when nothing writes to it")
    return data, stamp_of(before)
