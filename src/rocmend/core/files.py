"""Writing files so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from rocmend.core.scratch import PartialFile


def write_atomic(path: Path, data: bytes | str, *, private: bool = False) -> None:
    """Write ``data`` beside ``path``, flush it to disk and move it into place.

    Args:
        path: The file to create or replace; its folder is created. What a symbolic link names is replaced, not the
            link. A device or pipe (``/dev/stdout``, ``/dev/null``) stays what it is and is written to.
        data: Bytes, or text written as UTF-8, with ``?`` for the bytes of a name that is not.
        private: For the owner alone (0600, new folders 0700), as what rocmend keeps for itself is. Otherwise as the
            umask allows, as what is written to be shown is.

    Raises:
        OSError: It cannot be written; its ``filename`` is ``path``.
    """
    payload = data.encode(errors="replace") if isinstance(data, str) else data
    if _is_stream(path):
        with naming(path), path.open("wb") as stream:
            stream.write(payload)
        return
    path = Path(os.path.realpath(path))
    with naming(path):
        if private:
            make_private(path.parent)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        with PartialFile(path) as partial:
            with os.fdopen(partial.descriptor, "wb", closefd=False) as file:
                file.write(payload)
            os.fsync(partial.descriptor)
            if not private:  # a report is for sharing
                partial.path.chmod(0o666 & ~umask())
            partial.path.replace(path)


def umask() -> int:
    """Return the permissions that new files of this process are made without.

    Setting it is the system's only call to read it, and in that moment the files of other threads would be open to all.

    Source: proc_pid_status(5), ``Umask`` (Linux 4.7)
    """
    with contextlib.suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("Umask:")).partition(":")[2], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def make_private(folder: Path) -> None:
    """Make a folder, and those above it that are not there, for us alone (0700)."""
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def open_private(path: Path, flags: int) -> int:
    """Open a file that is the owner's alone (0600), also where it was there before, and return its descriptor.

    Args:
        path: The file; its folder is made (0700) where it is not there.
        flags: As ``os.open`` takes them; ``O_CREAT`` and ``O_CLOEXEC`` are added.
    """
    make_private(path.parent)
    descriptor = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, 0o600)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_mode & 0o077:
        with contextlib.suppress(PermissionError):  # it is another user's, who lets us write
            os.fchmod(descriptor, 0o600)
    return descriptor


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have every error of the system say which file it is about.

    What fails on an open file (no room, a disk error) or on a temporary one beside it does not name it otherwise.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror or os.strerror(error.errno), str(path)) from error


def _is_stream(path: Path) -> bool:
    """Tell whether this is there and is neither a file nor a folder: moving a file over it would destroy it."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
