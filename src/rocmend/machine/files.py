"""Opening files of a machine so that nothing blocks, floods or leads elsewhere; for the live and captured roots."""

from __future__ import annotations

import errno
import os
import posixpath
import stat as stat_modes

from rocmend.machine.root import AbsentError, DeniedError, ReadError

MAX_PATH_CHARS = 4096
"""Linux's PATH_MAX."""

_CHUNK_BYTES = 1 << 16


def clean_path(path: str) -> str:
    """Return an absolute machine path without ``.``, ``..``, doubled or trailing slashes.

    Raises:
        ReadError: Not absolute, too long, or holding a NUL.
    """
    if not path.startswith("/") or "\0" in path or len(path) > MAX_PATH_CHARS:
        raise ReadError(path[:100], "is not a usable path: expected an absolute path without NUL, at most 4096 long.")
    return "/" + posixpath.normpath(path).lstrip("/")


def printable(name: str) -> str:
    """Return a name from the file system as text that encodes to UTF-8 (undecodable bytes become U+FFFD)."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return name.encode(errors="surrogateescape").decode(errors="replace")
    return name


def read_error(path: str, error: OSError) -> ReadError:
    """Return the error of ours that says what the system's says about ``path``."""
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.ENAMETOOLONG}:
        return AbsentError(path, "is not there.")
    if error.errno in {errno.EACCES, errno.EPERM}:
        return DeniedError(path, "permission denied.")
    if error.errno == errno.ELOOP:
        return ReadError(path, "is a symbolic link that leads in a circle or may not be followed.")
    return ReadError(path, f"cannot be read: {os.strerror(error.errno) if error.errno else error}.")


def read_regular(real_path: str, *, shown_as: str, max_bytes: int, follow: bool) -> bytes:
    """Read at most ``max_bytes`` of a regular file, without ever waiting for a writer.

    Args:
        real_path: What to open.
        shown_as: The path to name in errors.
        max_bytes: Bytes to read at most.
        follow: Whether a symbolic link as last part is followed.

    Raises:
        AbsentError: No such file.
        DeniedError: No permission.
        ReadError: A directory, FIFO, socket or device, or an I/O error.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        handle = os.open(real_path, flags)
    except OSError as error:
        raise read_error(shown_as, error) from None
    try:
        if not stat_modes.S_ISREG(os.fstat(handle).st_mode):
            raise ReadError(shown_as, "is not a regular file.")
        parts = []
        left = max_bytes
        while left > 0 and (part := os.read(handle, min(left, _CHUNK_BYTES))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    except OSError as error:
        raise read_error(shown_as, error) from None
    finally:
        os.close(handle)
