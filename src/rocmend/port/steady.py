"""Reading a file whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from rocmend.core.beneath import Beneath, UnsafePathError

__all__ = ["NotReadError", "read_steady", "stamp_of", "too_large"]


class NotReadError(Exception):
    """A file that is not read; the message says why, in the words of a report."""


def stamp_of(status: os.stat_result) -> tuple[int, int, int]:
    """Return what tells one state of a file from another: modification and change times in ns, and inode."""
    return status.st_mtime_ns, status.st_ctime_ns, status.st_ino


def too_large(size_bytes: int, max_bytes: int) -> str:
    """Return why a file of this size is not read."""
    return f"{size_bytes:,} bytes, more than the limit of {max_bytes:,} (max-file-bytes in [tool.rocmend.port])"


def read_steady(root: Path, path: str, max_bytes: int) -> tuple[bytes, tuple[int, int, int]]:
    """Return a file's bytes and the stamp that they belong to.

    Args:
        root: The project's folder.
        path: A regular file, relative to it; no part of the path is a link.
        max_bytes: A larger file is not read.

    Raises:
        NotReadError: It cannot be read, is too large, or changed meanwhile: half of a new file behind half of an old
            one is no source of anything.
    """
    try:
        with Beneath(root) as tree, tree.opened(path) as handle:
            before = os.fstat(handle)
            if before.st_size > max_bytes:
                raise NotReadError(too_large(before.st_size, max_bytes))
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(max_bytes + 1)
            after = os.fstat(handle)
            named = tree.stat(path)
    except UnsafePathError as error:
        raise NotReadError("cannot be read: it is or is under a link, and links are not followed") from error
    except OSError as error:
        raise NotReadError(f"cannot be read: {error.strerror}") from error
    if named is None or not (len(data) == before.st_size and stamp_of(before) == stamp_of(after) == stamp_of(named)):
        raise NotReadError("changed while it was being read; run again when nothing writes to it")
    return data, stamp_of(before)
