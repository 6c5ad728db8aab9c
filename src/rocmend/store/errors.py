"""What can go wrong with a store, said so that a person can act on it."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from rocmend.core.errors import DataError, RocmendError, UsageError
from rocmend.core.units import count_text, size_text


class StoreError(RocmendError):
    """The store cannot be opened, read or written."""

    code = "store"


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_READ_ONLY = {errno.EROFS, errno.EACCES, errno.EPERM}


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what SQLite and the file system raise about a store into errors of ours.

    Args:
        path: The store's file, for the message.

    Raises:
        DataError: The file is damaged or is no database.
        StoreError: It is full, read-only, locked or unreadable.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise _of_sqlite(path, error) from error
    except UnicodeDecodeError as error:  # SQLite's own message quotes what the damaged tables are called
        raise damaged(path, "its text is not UTF-8") from error
    except OSError as error:
        raise _of_system(path, error) from error


def _of_sqlite(path: Path, error: sqlite3.Error) -> RocmendError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # the low byte is the primary result code
    match code:
        case sqlite3.SQLITE_NOTADB:
            return DataError(
                str(path),
                "The file is not an SQLite database, so it is not a store. It was not changed.",
                next_step="Name another file with --store, or move this one away.",
            )
        case sqlite3.SQLITE_CORRUPT:
            return damaged(path, str(error))
        case sqlite3.SQLITE_FULL:
            return _full(path)
        case sqlite3.SQLITE_READONLY:
            return read_only(path)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return busy(path)
        case _:
            return StoreError(
                str(path), f"SQLite could not use the store: {error}.", next_step=_NEXT_STEPS.get(code, "")
            )


_NEXT_STEPS = {
    sqlite3.SQLITE_CANTOPEN: "Check the permissions of the file and its folder.",
    sqlite3.SQLITE_PERM: "Check the permissions of the file and its folder.",
    sqlite3.SQLITE_IOERR: "Check the disk, its free space and file locks (network drives); or use --store.",
}


def _of_system(path: Path, error: OSError) -> RocmendError:
    if error.errno in _FULL:
        return _full(path)
    where = Path(str(error.filename)) if error.filename else path
    if error.errno in _READ_ONLY:
        return read_only(where)
    return StoreError(
        str(path),
        f"The store can't be used: {error.strerror or error} ({where}).",
        next_step="Name another place with --store or ROCMEND_HOME; `bench` and `probe` also take --no-store.",
    )


def _full(path: Path) -> StoreError:
    return StoreError(
        str(path),
        "There is no space left to write the store.",
        why="Existing records are safe; the new one was not added.",
        next_step="Free some space (`rocmend store gc` removes unused files), or use --store on another disk.",
    )


def read_only(path: Path) -> StoreError:
    """Return the error of writing where that is not allowed."""
    return StoreError(
        str(path),
        "The store can't be written: it is read-only or belongs to another user.",
        next_step="Use --store or ROCMEND_HOME to keep evidence where you can write.",
    )


def no_store(path: Path) -> UsageError:
    """Return the error of looking for something in a store that was never made."""
    return UsageError(
        "store",
        f"there is no store at {path}.",
        why="It is created with the first record, for example by `rocmend check` or `rocmend probe`.",
        next_step="Use --store or ROCMEND_HOME for another one.",
    )


def orphaned(database: Path, what: str, folder: Path, count: int, size_bytes: int) -> DataError:
    """Return the error of a database that knows nothing of the artifacts beside it."""
    return DataError(
        str(database),
        f"The store's database {what}, and {folder} holds {count_text(count, 'artifact')} ({size_text(size_bytes)}) "
        "that only its records refer to.",
        why="It was emptied, removed or replaced. Nothing was changed.",
        next_step="Restore the right database (from a backup, or a copy next to it that ends in .bak); or move both "
        "away and start a new store.",
    )


def unnamed(database: Path, folder: Path, count: int, size_bytes: int) -> DataError:
    """Return the error of collecting the artifacts of a database that names none of them."""
    return DataError(
        str(database),
        f"No record refers to any of the {count_text(count, 'artifact')} ({size_text(size_bytes)}) in {folder}.",
        why="Either their records were removed, or this is not the database that they belong to. Nothing was changed.",
        next_step="In the first case `rocmend store gc --all` removes them; otherwise restore the right database.",
    )


def busy(path: Path) -> StoreError:
    """Return the error of waiting too long for a lock."""
    return StoreError(
        str(path),
        "Another process holds the store's lock and did not release it in time.",
        next_step="Wait for it to finish and try again; `fuser` on the file shows the process.",
    )


def damaged(path: Path, what: str) -> DataError:
    """Return the error of a damaged database file."""
    return DataError(
        str(path),
        f"The store is damaged: {what}.",
        why="The file was overwritten or truncated, or the disk is failing. Nothing was changed.",
        next_step="Copy the folder, then try `sqlite3 FILE .recover`; or move it away and start a new store.",
    )
