"""Where a store lies, and what the file system there can do."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from rocmend.core.files import make_private
from rocmend.core.places import DATA_VARIABLE, data_home, expanded
from rocmend.core.stall import StallClock
from rocmend.store.errors import StoreError, busy, storage_errors

FILE_NAME = "evidence.sqlite"
_DIRECTORY_MODE, _FILE_MODE = 0o700, 0o600


def default_path() -> Path:
    """Return the store's file: in ROCMEND_HOME, else in ``rocmend`` below XDG_DATA_HOME or ``~/.local/share``."""
    return data_home() / FILE_NAME


class Place:
    """The paths of one store.

    Args:
        path: Its database file, or a folder that holds ``evidence.sqlite``; None for the default.
    """

    def __init__(self, path: Path | None = None) -> None:
        given = default_path() if path is None else expanded(path, "--store")
        with storage_errors(given):
            if given.is_dir():
                given /= FILE_NAME
            self.database = Path(os.path.realpath(given))
        folder, name = self.database.parent, self.database.name
        # two stores in one folder must not collect each other's garbage
        self.artifacts = folder / ("artifacts" if name == FILE_NAME else f"{name}.artifacts")
        self.lock = folder / f"{name}.lock"

    def create(self) -> None:
        """Make the folder and an empty database file, for the owner alone, where they are not there."""
        with storage_errors(self.database):
            make_private(self.database.parent)
            os.close(os.open(self.database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE))

    def close_to_others(self) -> None:
        """Take from others what they may do with the default store: its files and its folder.

        Who names a folder may share it with a group: there the modes of what is there are theirs to choose.
        """
        folder = self.database.parent
        if os.environ.get(DATA_VARIABLE) or folder != Path(os.path.realpath(data_home())):
            return
        beside = [self.database.with_name(self.database.name + end) for end in ("", "-wal", "-shm")]
        for path in (*beside, self.lock, self.artifacts, folder):
            with contextlib.suppress(OSError):
                found = path.lstat()
                if found.st_uid == os.geteuid() and found.st_mode & 0o077 and not stat.S_ISLNK(found.st_mode):
                    path.chmod(_DIRECTORY_MODE if stat.S_ISDIR(found.st_mode) else _FILE_MODE)

    def writable(self) -> bool:
        """Return whether the database is ours, and it and the log beside it can be written.

        Root may write to any: what it wrote there would be root's, and the user could not read their store any more.
        """
        with storage_errors(self.database):
            if self.database.stat().st_uid != os.geteuid():
                return False
        return os.access(self.database, os.W_OK) and os.access(self.database.parent, os.W_OK | os.X_OK)

    @contextlib.contextmanager
    def locked(self, *, alone: bool, time_limit_s: float) -> Iterator[None]:
        """Hold the store's file lock: writers share it, collecting garbage needs it alone.

        It keeps an artifact from being collected between its writing and that of the record that names it. The system
        lets go of it when the process ends, however it ends.

        Raises:
            StoreError: Others did not let go of it in time, or the file system has no locks.
        """
        with storage_errors(self.database):
            handle = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
        try:
            self._wait(handle, alone=alone, time_limit_s=time_limit_s)
            yield
        finally:
            os.close(handle)

    def _wait(self, handle: int, *, alone: bool, time_limit_s: float) -> None:
        clock = StallClock()
        deadline = clock.now() + time_limit_s
        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        pause = 0.001
        while True:
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in {errno.EWOULDBLOCK, errno.EINTR}:
                    if not alone:
                        return  # nothing can be collected there either, so there is nothing to be kept from
                    raise StoreError(
                        str(self.lock), f"This file system has no file locks ({error.strerror})."
                    ) from error
                if clock.now() > deadline:
                    raise busy(self.database) from None
                clock.sleep(pause)
                pause = min(pause * 2, 0.05)
            else:
                return
