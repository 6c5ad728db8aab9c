"""One process's use of the database: a connection that threads take turns with and that fork does not carry over."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from typing import Any

from rocmend.store.database import connect, transaction
from rocmend.store.errors import StoreError, storage_errors
from rocmend.store.place import Place

_INHERITED: list[sqlite3.Connection] = []
"""Connections that came through fork: SQLite forbids to use or close them here, so they are only kept.

Source: https://www.sqlite.org/howtocorrupt.html#_carrying_an_open_database_file_across_a_fork_
"""


class Session:
    """An open database.

    Args:
        place: Where it lies.
        writable: Open it for writing.
    """

    def __init__(self, place: Place, *, writable: bool) -> None:
        self._place = place
        self._writable = writable
        self._connection: sqlite3.Connection | None = None
        self._connect()

    def _connect(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        with storage_errors(self._place.database):
            self._connection = connect(self._place, writable=self._writable)

    def close(self) -> None:
        """Close the file; again is allowed."""
        if self._connection is not None and self._pid == os.getpid():
            with self._lock, storage_errors(self._place.database):
                self._connection.close()
        elif self._connection is not None:
            _INHERITED.append(self._connection)
        self._connection = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Have the connection to oneself; a process that came by fork gets its own."""
        if self._connection is None:
            raise StoreError(str(self._place.database), "The store was closed.")
        if self._pid != os.getpid():
            _INHERITED.append(self._connection)
            self._connect()
        with self._lock, storage_errors(self._place.database):
            yield self._connection

    @contextlib.contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Have the connection to oneself for changes that are kept together or not at all."""
        with self.reading() as connection, transaction(connection):
            yield connection

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[sqlite3.Connection]:
        """Have the connection to oneself for reading, and see nothing of what others change meanwhile."""
        with self.reading() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def rows(self, statement: str, values: tuple[str | int, ...] = ()) -> list[tuple[Any, ...]]:
        """Return the rows that a SELECT finds."""
        with self.reading() as connection:
            return connection.execute(statement, values).fetchall()
