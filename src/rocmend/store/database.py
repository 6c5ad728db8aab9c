"""Opening the database file: its form, its version, and transactions that wait their turn."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from rocmend.core.errors import DataError
from rocmend.core.mounts import shared_by_hosts
from rocmend.core.scratch import PartialFile
from rocmend.core.stall import StallClock
from rocmend.store.artifacts import count_artifacts
from rocmend.store.errors import StoreError, damaged, orphaned, read_only
from rocmend.store.place import Place
from rocmend.store.schema import APPLICATION_ID, STEPS

T = TypeVar("T")

BUSY_S = 30.0
"""Seconds to wait for other writers before giving up."""

MAX_VALUE_BYTES = 256 << 20
"""Of one record, or of one machine: what is larger is an error of SQLite's, in a database that others filled too."""

_NO_INDEX = {sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMMAP}
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def connect(place: Place, *, writable: bool) -> sqlite3.Connection:
    """Open the database, making or upgrading its tables where that is needed.

    Args:
        place: Where it lies; the file is there.
        writable: Open it for writing.

    Returns:
        A connection in autocommit mode that any thread may use, one at a time.

    Raises:
        DataError: It is damaged, or no database, or another program's.
        StoreError: Its version is newer than this program, or it needs an upgrade and is read-only.
        sqlite3.Error: What else SQLite says.
    """
    connection = _open(place, writable=writable)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.execute(f"PRAGMA busy_timeout={int(BUSY_S * 1000)}")
        _prepare(connection, place, writable=writable)
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA trusted_schema=OFF")
        # a machine under test is the one whose power gets cut: a commit is on the disk when it returns
        connection.execute("PRAGMA synchronous=FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _open(place: Place, *, writable: bool) -> sqlite3.Connection:
    if writable:
        return _open_writable(place)
    connection = _connect(place, "ro")
    try:
        connection.execute("SELECT 1 FROM sqlite_master")
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            raise
    else:
        return connection
    # the index of the write-ahead log can't be made beside the file; without a log the file alone is the whole truth
    log = place.database.with_name(place.database.name + "-wal")
    if log.exists() and log.stat().st_size:
        raise StoreError(
            str(place.database),
            f"The store is read-only and its last records are still in {log.name}.",
            why="SQLite has to merge them into the file, which needs write access.",
            next_step="Copy the whole folder to where you can write, and use --store on the copy.",
        )
    return _connect(place, "ro&immutable=1")


def _open_writable(place: Place) -> sqlite3.Connection:
    """Open it for writing; where the disk is full, such that it can be read, and writing says that there is no room.

    The log needs an index beside it, 32 KiB that processes share; where that does not fit, it is held in memory, and
    the file is kept from others meanwhile. Source: https://www.sqlite.org/wal.html#noshm
    """
    connection = _connect(place, "rw")
    try:
        _patiently(lambda: connection.execute("SELECT 1 FROM sqlite_master"))
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode not in _NO_INDEX:
            connection.close()
            raise
    except BaseException:
        connection.close()
        raise
    else:
        return connection
    connection.close()
    connection = _connect(place, "rw")
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    return connection


def _connect(place: Place, mode: str) -> sqlite3.Connection:
    name = str(place.database).replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return sqlite3.connect(
        f"file:{name}?mode={mode}", uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=False
    )


def _prepare(connection: sqlite3.Connection, place: Place, *, writable: bool) -> None:
    """Bring the tables to this program's version."""
    version = _patiently(lambda: _looked_up_version(connection, place))
    if version == len(STEPS):
        return
    if version == 0 and (orphans := count_artifacts(place.artifacts)):
        version = _patiently(lambda: _looked_up_version(connection, place))
        if version == 0:  # artifacts are written after the tables: another process is not just making them
            raise orphaned(place.database, "is empty", place.artifacts, *orphans)
    if not writable:
        if version == 0:
            raise read_only(place.database)
        raise StoreError(
            str(place.database),
            f"The store has version {version}; it needs an upgrade to {len(STEPS)}, and it is read-only.",
            next_step="Copy the whole folder to where you can write, and use --store on the copy.",
        )
    if version == 0:
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # has an effect before the first table only
        if not shared_by_hosts(place.database):
            _patiently(lambda: connection.execute("PRAGMA journal_mode=WAL"))
    with transaction(connection):
        version = _checked_version(connection, place)  # another process may have been faster
        if version < len(STEPS):
            _upgrade(connection, place, version)


def _looked_up_version(connection: sqlite3.Connection, place: Place) -> int:
    """Check the version as it is at one moment: others may be making the tables."""
    connection.execute("BEGIN")
    try:
        return _checked_version(connection, place)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _checked_version(connection: sqlite3.Connection, place: Place) -> int:
    """Return the version of the tables, 0 where there are none.

    Raises:
        DataError: It is another program's file.
        StoreError: It is newer than this program.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (objects,) = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (application or version or objects):
        raise DataError(
            str(place.database),
            "This SQLite file belongs to another program; it is not an evidence store. It was not changed.",
            next_step="Name another file with --store.",
        )
    if version > len(STEPS):
        raise StoreError(
            str(place.database),
            f"The store has version {version}; this rocmend knows versions up to {len(STEPS)}.",
            why="A newer rocmend wrote it, and this one could misread it. Nothing was changed.",
            next_step="Upgrade rocmend, or use another store with --store.",
        )
    if application == APPLICATION_ID and version == 0:
        raise damaged(place.database, "it says that it has no tables")
    return int(version)


def _upgrade(connection: sqlite3.Connection, place: Place, version: int) -> None:
    """Apply the steps that the file lacks, inside the caller's transaction, after a copy of an older file."""
    copy = _backup(place, version) if version else None
    try:
        for statements in STEPS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={len(STEPS)}")
    except sqlite3.Error:
        if copy is not None:
            os.unlink(copy)  # noqa: PTH108  the transaction is rolled back, so the file itself is the old one
        raise


def _backup(place: Place, version: int) -> str:
    """Copy the database as it was last committed, and return the copy's path."""
    final = f"{place.database}.v{version}-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}.bak"
    with PartialFile(Path(final)) as partial:
        with (
            contextlib.closing(_connect(place, "ro")) as source,
            contextlib.closing(sqlite3.connect(partial.path)) as target,
        ):
            source.backup(target)
        os.fsync(partial.descriptor)
        partial.path.rename(final)
    return final


def _patiently(action: Callable[[], T]) -> T:
    """Do something, again and again while others hold the lock: SQLite's own waiting leaves out some cases."""
    clock = StallClock()
    deadline = clock.now() + BUSY_S
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in _BUSY or clock.now(BUSY_S) > deadline:
                raise
            clock.sleep(random.uniform(0.001, 0.02))  # noqa: S311  to step out of lock-step, not a secret


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run statements as one: all of them are kept at the end, or none.

    The write lock is taken at once, so that a transaction that has begun never has to be run again.

    Raises:
        sqlite3.Error: It could not begin or be kept; nothing of it was.
    """
    _patiently(lambda: connection.execute("BEGIN IMMEDIATE"))
    try:
        yield connection
        _patiently(lambda: connection.execute("COMMIT"))
    except BaseException:
        if connection.in_transaction:  # SQLite ends it by itself on some errors
            connection.execute("ROLLBACK")
        raise
