"""Finding what a store no longer needs, and what in it is not as it was written."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

from rocmend.core.errors import RocmendError
from rocmend.store.artifacts import ArtifactFolder
from rocmend.store.encoding import decode_evidence, decode_machine, machine_hash
from rocmend.store.records import Damage, GcReport

Rows = Callable[[str, tuple[str | int, ...]], list[tuple[Any, ...]]]
"""Runs a SELECT."""

_PAGE_ROWS = 200


def names_any(database: sqlite3.Connection, folder: ArtifactFolder) -> bool:
    """Tell whether a record names one of the artifacts that are there."""
    named = "SELECT 1 FROM artifact WHERE sha256 = ?"
    return any(held.sha256 and database.execute(named, (held.sha256,)).fetchone() for held in folder.walk())


def collect(database: sqlite3.Connection, folder: ArtifactFolder, *, dry_run: bool) -> GcReport:
    """Remove what no record names; the caller keeps writers out meanwhile.

    Args:
        database: In a transaction.
        folder: The artifacts.
        dry_run: Count only.
    """
    unused = "FROM machine WHERE hash NOT IN (SELECT machine FROM evidence WHERE machine IS NOT NULL)"
    machines, freed = database.execute(f"SELECT COUNT(*), COALESCE(SUM(LENGTH(snapshot)), 0) {unused}").fetchone()
    if not dry_run:
        database.execute(f"DELETE {unused}")
    artifacts = partial = 0
    for held in folder.walk():
        if held.sha256 is None:
            partial += 1
        elif database.execute("SELECT 1 FROM artifact WHERE sha256 = ?", (held.sha256,)).fetchone() is None:
            artifacts += 1
        else:
            continue
        freed += held.path.stat().st_size
        if not dry_run:
            held.path.unlink()
    if not dry_run:
        _remove_empty(folder)
    return GcReport(machines, artifacts, partial, freed)


def _remove_empty(folder: ArtifactFolder) -> None:
    with contextlib.suppress(FileNotFoundError):
        for entry in list(folder.path.iterdir()):
            if entry.is_dir():
                with contextlib.suppress(OSError):  # it is not empty
                    entry.rmdir()


def damages(rows: Rows, folder: ArtifactFolder) -> Iterator[Damage]:
    """Yield what cannot be read, is not there or has changed, in bounded memory."""
    for record_id, text, verdict in _all(rows, "evidence", "id", "id, record, verdict"):
        with _told(record_id) as told:
            record = decode_evidence(text, record_id)
            names = sorted(artifact.name for artifact in record.artifacts)
            listed = rows("SELECT name FROM artifact WHERE evidence = ? ORDER BY name", (record_id,))
            if record.verdict.value != verdict or names != [name for (name,) in listed]:
                told.append(Damage(record_id, "The record and its search index differ."))
        yield from told
    for content_hash, snapshot in _all(rows, "machine", "hash", "hash, snapshot"):
        with _told(content_hash) as told:
            if machine_hash(decode_machine(snapshot, content_hash)) != content_hash:
                told.append(Damage(content_hash, "The machine snapshot does not match its hash."))
        yield from told
    for sha256, size_bytes in _all(rows, "artifact", "sha256", "sha256, MAX(size_bytes)", group=True):
        with _told(sha256) as told:
            if folder.read(sha256, len) != size_bytes:
                told.append(Damage(sha256, "The artifact's size differs from its record."))
        yield from told


@contextlib.contextmanager
def _told(subject: str) -> Iterator[list[Damage]]:
    """Collect what is wrong with one thing; an error of ours is one more."""
    found: list[Damage] = []
    try:
        yield found
    except RocmendError as error:
        found.append(Damage(subject, error.message))
    except OSError as error:
        found.append(Damage(subject, str(error)))


def _all(rows: Rows, table: str, key: str, columns: str, *, group: bool = False) -> Iterator[tuple[Any, ...]]:
    after = ""
    grouping = f"GROUP BY {key} " if group else ""
    while page := rows(
        f"SELECT {columns} FROM {table} WHERE {key} > ? {grouping}ORDER BY {key} LIMIT ?",  # noqa: S608  our own words
        (after, _PAGE_ROWS),
    ):
        yield from page
        after = page[-1][0]
