"""The store of evidence: records in one SQLite file, their artifacts beside it."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import itertools
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, Self

import msgspec

from rocmend.core.errors import DataError, UsageError
from rocmend.core.evidence import Artifact, Evidence
from rocmend.core.suggest import unknown
from rocmend.core.verdict import Verdict
from rocmend.store.artifacts import ArtifactFolder, count_artifacts
from rocmend.store.conditions import Conditions
from rocmend.store.database import BUSY_S
from rocmend.store.encoding import (
    decode_evidence,
    decode_machine,
    encode_evidence,
    encode_machine,
    machine_hash,
)
from rocmend.store.errors import damaged, no_store, orphaned, read_only, storage_errors, unnamed
from rocmend.store.garbage import collect, damages, names_any
from rocmend.store.ids import IdMaker, id_of, is_id, utc_time
from rocmend.store.place import Place
from rocmend.store.records import Damage, GcReport, StoredEvidence, StoredGroup, StoredSummary
from rocmend.store.session import Session

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine

_PAGE_ROWS = 200
"""Records read at a time: an iterator holds no more, and keeps no read transaction open in between."""

_MAX_NAME_CHARS = 255

# From one run to the next, and from one verdict of it to the next, by the index: GROUP BY would read all of it.
_RUNS = """
    WITH RECURSIVE runs (run, till) AS (
        SELECT min(run), ?2 FROM evidence WHERE run >= ?1 AND run < ?2
        UNION ALL
        SELECT (SELECT min(run) FROM evidence WHERE run > runs.run AND run < till), till FROM runs WHERE run IS NOT NULL
    )
"""
_COUNTED = "SELECT run, verdict, COUNT(*) FROM evidence WHERE {} GROUP BY run, verdict"
_NAMES = f"{_RUNS} SELECT run FROM runs WHERE run != ''"  # noqa: S608  our own words
_ENDS = f"""
    {_RUNS}, pairs (run, verdict) AS (
        SELECT run, (SELECT min(verdict) FROM evidence WHERE evidence.run = runs.run) FROM runs WHERE run != ''
        UNION ALL
        SELECT run, (SELECT min(verdict) FROM evidence WHERE evidence.run = pairs.run AND verdict > pairs.verdict)
        FROM pairs WHERE verdict IS NOT NULL
    )
    SELECT
        run,
        (SELECT min(id) FROM evidence WHERE evidence.run = pairs.run AND evidence.verdict = pairs.verdict),
        (SELECT max(id) FROM evidence WHERE evidence.run = pairs.run AND evidence.verdict = pairs.verdict)
    FROM pairs WHERE verdict IS NOT NULL
"""  # noqa: S608  our own words


class Store:
    """A store of evidence; make one with :meth:`open` and use it as a context manager.

    Any number of processes and threads may use one file at the same time. What :meth:`add` returned for is on the disk,
    whatever is killed afterwards.

    Attributes:
        path: The database file.
        writable: Records can be added and removed.
    """

    def __init__(self, place: Place, *, writable: bool) -> None:
        self.path = place.database
        self.writable = writable
        self._place = place
        self._artifacts = ArtifactFolder(place.artifacts)
        self._ids = IdMaker()
        self._last_machine: tuple[Machine, str] | None = None
        self._session = Session(place, writable=writable)

    @classmethod
    def open(cls, path: Path | None = None, *, create: bool = True) -> Self:
        """Open a store.

        Args:
            path: Its file, or a folder that holds ``evidence.sqlite``; None for the default, which ``ROCMEND_HOME`` and
                ``XDG_DATA_HOME`` can move.
            create: Make an empty one where there is none.

        Raises:
            UsageError: There is none and ``create`` is false.
            DataError: The file is damaged, or no store.
            StoreError: It can't be opened; a newer rocmend wrote it; it needs an upgrade and is read-only.
        """
        place = Place(path)
        with storage_errors(place.database):
            exists = place.database.exists()
            orphans = None if exists else count_artifacts(place.artifacts)
            if orphans and not place.database.exists():  # a process that makes a store makes the database first
                raise orphaned(place.database, "is not there", place.artifacts, *orphans)
        if not exists and not create:
            raise no_store(place.database)
        if not exists:
            place.create()
        place.close_to_others()
        return cls(place, writable=place.writable())

    def close(self) -> None:
        """Close the file."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(
        self,
        evidence: Evidence,
        *,
        machine: Machine | None = None,
        artifacts: Mapping[str, bytes | Path] | None = None,
    ) -> str:
        """Keep a record. On return it is on the disk with all that it names.

        Args:
            evidence: The record; ``machine`` and ``artifacts`` in it may name what the store has already.
            machine: The snapshot of the machine that it ran on; its hash is filled in.
            artifacts: Name to contents, or to a file to copy them from; they are added to the record's own.

        Returns:
            The record's id.

        Raises:
            DataError: The record can't be written as JSON, or names a machine or an artifact that is not there.
            UsageError: An artifact's name is not fit, or is there twice.
            StoreError: It can't be written: read-only, no room, locked.
        """
        return self._add(evidence, machine, artifacts, "")[0]

    def add_once(
        self,
        evidence: Evidence,
        content: str,
        *,
        machine: Machine | None = None,
        artifacts: Mapping[str, bytes | Path] | None = None,
    ) -> bool:
        """Keep a record that comes from elsewhere, unless the store has it; say whether it was added.

        Args:
            evidence: The record; its ``detail`` has ``content`` at ``shared.content``.
            content: Hash of what it holds. Its id follows from it, so that of two that keep it at once one does.
            machine: As for :meth:`add`, which says what else it raises.
            artifacts: As for :meth:`add`.
        """
        return self._add(evidence, machine, artifacts, content)[1]

    def _add(
        self,
        evidence: Evidence,
        machine: Machine | None,
        artifacts: Mapping[str, bytes | Path] | None,
        content: str,
    ) -> tuple[str, bool]:
        self._check_writable()
        started = utc_time(evidence.started_at, "started_at")
        with self._place.locked(alone=False, time_limit_s=BUSY_S), storage_errors(self.path):
            kept = tuple(Artifact(name, *self._artifacts.put(source)) for name, source in (artifacts or {}).items())
            record = msgspec.structs.replace(
                evidence,
                machine=evidence.machine if machine is None else self._hash(machine),
                artifacts=(*evidence.artifacts, *kept),
            )
            self._check_artifacts(record)
            text = encode_evidence(record)
            with self._session.transaction() as database:
                _insert_machine(database, record.machine, machine)
                return self._insert(database, record, text, started, content)

    def _check_artifacts(self, record: Evidence) -> None:
        names = set()
        for artifact in record.artifacts:
            parts = artifact.name.split("/")
            fit = artifact.name.isprintable() and len(artifact.name) <= _MAX_NAME_CHARS
            if not fit or {"", ".", ".."} & set(parts):
                raise UsageError("store", f"{artifact.name!r} can't be an artifact's name; use one such as output.log.")
            if artifact.name in names:
                raise UsageError("store", f"two artifacts are called {artifact.name!r}.")
            names.add(artifact.name)
            if self._artifacts.find(artifact.sha256) is None:
                raise DataError("store", f"the record names the artifact {artifact.name!r}, which is not in the store.")

    def _hash(self, machine: Machine) -> str:
        if self._last_machine is None or self._last_machine[0] is not machine:
            self._last_machine = (machine, machine_hash(machine))
        return self._last_machine[1]

    def _insert(
        self, database: sqlite3.Connection, record: Evidence, text: str, started: dt.datetime, content: str = ""
    ) -> tuple[str, bool]:
        columns = [
            column.encode(errors="backslashreplace").decode()
            for column in (record.kind, record.subject, record.identity, record.verdict.value, record.gfx_target)
        ]
        run = record.group.encode(errors="backslashreplace").decode()
        for attempt in itertools.count():
            record_id = id_of(started, content, attempt) if content else self._ids.make(started)
            added = database.execute(
                "INSERT OR IGNORE INTO evidence VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (record_id, *columns, record.machine or None, run, text),
            )
            if added.rowcount:
                break
            if content and _holds(database, record_id, content):
                return record_id, False
        database.executemany(
            "INSERT INTO artifact VALUES (?, ?, ?, ?)",
            [(record_id, item.name, item.sha256, item.size_bytes) for item in record.artifacts],
        )
        return record_id, True

    def find(self, beginning: str) -> str:
        """Return the whole id of the record whose id begins with this.

        Raises:
            UsageError: No record has such an id, or several begin so.
        """
        rows = self._session.rows(
            "SELECT id FROM evidence WHERE id >= ? AND id < ? ORDER BY id LIMIT 4",
            (beginning, beginning + "~"),  # after every character of an id
        )
        ids = [record_id for (record_id,) in rows]
        if not ids and next(self.summaries(group=beginning), None):
            raise UsageError(
                "store",
                f"{beginning} names a run of several records, not one record.",
                next_step=f"rocmend store ls --group {beginning} lists them.",
            )
        if not ids or not beginning:
            raise unknown("store", "record", beginning, self._near(beginning), listed="rocmend store ls")
        if len(ids) > 1 and beginning not in ids:
            some = ", ".join(ids[:3] + ["…"] * (len(ids) > 3))
            raise UsageError("store", f"several records begin with {beginning!r}: {some}.")
        return str(ids[0])  # the shortest that begins so comes first, and that is the beginning itself

    def named(self, name: str) -> list[str]:
        """Return the ids of the records of a group, or of the record whose id begins with this.

        Raises:
            UsageError: There is no such group or record, or several records begin so.
        """
        group = [one.id for one in self.summaries(group=name)] if name else []
        return group or [self.find(name)]

    def _near(self, given: str) -> list[str]:
        """Return the ids among which a mistyped one is looked for: those that begin most like it, and the newest."""
        before = self._session.rows("SELECT id FROM evidence WHERE id < ? ORDER BY id DESC LIMIT 50", (given,))
        behind = self._session.rows("SELECT id FROM evidence WHERE id > ? ORDER BY id LIMIT 50", (given,))
        newest = self._session.rows("SELECT id FROM evidence ORDER BY id DESC LIMIT 200", ())
        return sorted({str(record_id) for (record_id,) in (*before, *behind, *newest)}, reverse=True)

    def get(self, record_id: str) -> StoredEvidence:
        """Return one record.

        Args:
            record_id: Its id, or a beginning that no other id has.

        Raises:
            UsageError: No record has such an id, or several begin so.
            DataError: The record is damaged.
        """
        whole = self.find(record_id)
        rows = self._session.rows("SELECT record FROM evidence WHERE id = ?", (whole,))
        if not rows:  # removed since
            raise UsageError("store", f"there is no record {whole!r}.")
        return StoredEvidence(whole, decode_evidence(rows[0][0], whole))

    def query(  # noqa: PLR0913  each narrows the search
        self,
        *,
        kind: str | None = None,
        subject: str | None = None,
        verdict: Verdict | Collection[Verdict] | None = None,
        gfx_target: str | None = None,
        identity: str | None = None,
        group: str | None = None,
        since: dt.datetime | str | None = None,
        until: dt.datetime | str | None = None,
        limit: int | None = None,
    ) -> Iterator[StoredEvidence]:
        """Yield the records that fit all that is given, those of the newest runs first.

        Args:
            kind: Of this kind.
            subject: Of this subject.
            verdict: With this verdict, or one of these.
            gfx_target: Run on this target.
            identity: Repeats of this run.
            group: Of this probe run or experiment.
            since: Of runs started at this time (ISO; UTC where it has no zone) or later.
            until: Of runs started before this time.
            limit: At most this many.

        Raises:
            DataError: A record is damaged; a time is not ISO.
        """
        tests = Conditions()
        tests.equal(kind=kind, subject=subject, gfx_target=gfx_target, identity=identity, run=group)
        tests.between(since, until)
        if verdict is not None:
            tests.among("verdict", [verdict] if isinstance(verdict, str) else verdict)
        pages = self._pages("record", tests, limit)
        return (StoredEvidence(record_id, decode_evidence(text, record_id)) for record_id, text in pages)

    def summaries(
        self,
        *,
        group: str | None = None,
        since: dt.datetime | str | None = None,
        until: dt.datetime | str | None = None,
    ) -> Iterator[StoredSummary]:
        """Yield what is noted for searching, also of records that are damaged; arguments as for :meth:`query`."""
        tests = Conditions()
        tests.equal(run=group)
        tests.between(since, until)
        for record_id, *noted in self._pages("kind, subject, verdict, gfx_target, run", tests, None):
            yield StoredSummary(record_id, *noted)

    def _pages(self, columns: str, tests: Conditions, limit: int | None) -> Iterator[tuple[str, ...]]:
        left, before = limit, "~"
        while left is None or left > 0:
            count = _PAGE_ROWS if left is None else min(left, _PAGE_ROWS)
            where = " AND ".join([*tests.texts, "id < ?"])
            rows = self._session.rows(
                f"SELECT id, {columns} FROM evidence WHERE {where} ORDER BY id DESC LIMIT ?",  # noqa: S608  our own words
                (*tests.values, before, count),
            )
            yield from rows
            if len(rows) < count:
                return
            before = rows[-1][0]
            left = None if left is None else left - count

    def repeats(self, identity: str) -> Iterator[StoredEvidence]:
        """Yield the records of one and the same run, the newest first."""
        return self.query(identity=identity)

    def kinds(self) -> list[str]:
        """Return the kinds that some record has."""
        # From one kind to the next by the index: DISTINCT would read all of it.
        statement = """
            WITH RECURSIVE found (kind) AS (
                SELECT min(kind) FROM evidence
                UNION ALL
                SELECT (SELECT min(kind) FROM evidence WHERE kind > found.kind) FROM found WHERE found.kind IS NOT NULL
            )
            SELECT kind FROM found WHERE kind IS NOT NULL
        """
        return [str(kind) for (kind,) in self._session.rows(statement, ())]

    def last_group(self, beginning: str) -> str | None:
        """Return the newest group whose id begins so; such ids end with the time of the start.

        Args:
            beginning: ``probe-``, ``bench-gemm-``.
        """
        statement = "SELECT max(run) FROM evidence WHERE run >= ? AND run < ?"
        ((found,),) = self._session.rows(statement, (beginning, beginning + "~"))
        return None if found is None else str(found)

    def group_names(self, *beginnings: str) -> list[str]:
        """Return the ids of the groups that begin with one of these, by name; of all where none is given."""
        found: dict[str, None] = {}
        for beginning in beginnings or ("",):
            rows = self._session.rows(_NAMES, (beginning, f"{beginning}\U0010ffff"))
            found.update(dict.fromkeys(str(name) for (name,) in rows))
        return list(found)

    def groups(self, limit: int | None = None) -> list[StoredGroup]:
        """Return the probe runs and experiments that have records, the newest first.

        Args:
            limit: At most this many: the others are not counted.
        """
        ends: dict[str, tuple[str, str]] = {}
        for name, first, last in self._session.rows(_ENDS, ("", "\U0010ffff")):
            old = ends.get(name, (first, last))
            ends[name] = min(old[0], first), max(old[1], last)
        newest = sorted(ends, key=lambda name: ends[name][1], reverse=True)
        listed = newest[:limit]
        counts: dict[str, dict[str, int]] = {name: {} for name in listed}
        if limit is None:
            rows = self._session.rows(_COUNTED.format("run != ''"), ())
        else:
            rows = [row for name in listed for row in self._session.rows(_COUNTED.format("run = ?"), (name,))]
        for name, verdict, count in rows:
            counts.setdefault(name, {})[verdict] = count
        return [StoredGroup(name, *ends[name], counts[name]) for name in listed]

    def machine(self, content_hash: str) -> Machine:
        """Return a machine snapshot.

        Raises:
            UsageError: There is none with this hash.
            DataError: It is damaged.
        """
        rows = self._session.rows("SELECT snapshot FROM machine WHERE hash = ?", (content_hash,))
        if not rows:
            raise UsageError("store", f"there is no machine snapshot {content_hash!r}.")
        return decode_machine(rows[0][0], content_hash)

    def artifact(self, sha256: str) -> bytes:
        """Return what an artifact holds; :meth:`copy_artifact` is for large ones.

        Raises:
            DataError: It is not there, or its contents have changed.
            UsageError: Not a SHA-256.
        """
        buffer = io.BytesIO()
        self.copy_artifact(sha256, buffer)
        return buffer.getvalue()

    def copy_artifact(self, sha256: str, target: BinaryIO) -> int:
        """Write what an artifact holds to a file, in bounded memory, and return its size in bytes.

        Raises:
            DataError: It is not there, or its contents have changed; in the latter case they have been written.
            UsageError: Not a SHA-256.
        """
        return self._artifacts.read(sha256, target.write)

    def remove(self, ids: Iterable[str]) -> int:
        """Remove records, all of them or none; what only they named is left to :meth:`gc`.

        Args:
            ids: Whole ids; those that there are not are passed over.

        Returns:
            How many were removed.
        """
        self._check_writable()
        listed = list(ids)
        for record_id in listed:
            if not is_id(record_id):
                raise UsageError("store", f"{record_id!r} is not a whole id.")
        with storage_errors(self.path), self._session.transaction() as database:
            return database.executemany("DELETE FROM evidence WHERE id = ?", [(item,) for item in listed]).rowcount

    def gc(self, *, dry_run: bool = False, every_artifact: bool = False) -> GcReport:
        """Remove what no record names: machine snapshots, artifacts, files that killed writers left half-written.

        Args:
            dry_run: Count only.
            every_artifact: Also where no record names any artifact that is there. Otherwise that is refused: it is what
                it looks like when the database was replaced by another.

        Raises:
            DataError: No record names any artifact; the database is damaged.
            StoreError: Others are writing without a pause; read-only.
        """
        if dry_run:
            with self._session.reading() as database:
                self._check_artifacts_named(database, every=every_artifact)
                return collect(database, self._artifacts, dry_run=True)
        self._check_writable()
        with (
            self._place.locked(alone=True, time_limit_s=BUSY_S),
            storage_errors(self.path),
            self._session.transaction() as database,
        ):
            self._check_artifacts_named(database, every=every_artifact)
            if (problem := database.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise damaged(self.path, problem)  # it could have forgotten what it names
            report = collect(database, self._artifacts, dry_run=False)
        with self._session.reading() as database:
            database.executescript("PRAGMA incremental_vacuum")  # execute() would stop at the first free page
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return report

    def _check_artifacts_named(self, database: sqlite3.Connection, *, every: bool) -> None:
        if not every and not names_any(database, self._artifacts):
            orphans = count_artifacts(self._artifacts.path)
            if orphans:
                raise unnamed(self.path, self._artifacts.path, *orphans)

    def verify(self) -> list[Damage]:
        """Read everything as it is at one moment, and return what is not as it was written; nothing is changed."""
        kept = self._place.locked(alone=False, time_limit_s=BUSY_S) if self.writable else contextlib.nullcontext()
        with kept, self._session.snapshot() as database:  # the lock keeps artifacts from being collected meanwhile
            problems = [text for (text,) in database.execute("PRAGMA integrity_check") if text != "ok"]
            if problems:
                return [Damage(str(self.path), problem) for problem in problems]
            return list(damages(self._session.rows, self._artifacts))

    def _check_writable(self) -> None:
        if not self.writable:
            raise read_only(self.path)


def _holds(database: sqlite3.Connection, record_id: str, content: str) -> bool:
    """Return whether a record is the one with this content, and not another whose id happens to be the same."""
    ((text,),) = database.execute("SELECT record FROM evidence WHERE id = ?", (record_id,)).fetchall()
    shared = decode_evidence(text, record_id).detail.get("shared")
    return isinstance(shared, dict) and shared.get("content") == content


def _insert_machine(database: sqlite3.Connection, content_hash: str, machine: Machine | None) -> None:
    """See to it that the snapshot that a record names is there."""
    if not content_hash or database.execute("SELECT 1 FROM machine WHERE hash = ?", (content_hash,)).fetchone():
        return
    if machine is None:
        raise DataError("store", f"the record names the machine {content_hash!r}, which is not in the store.")
    database.execute("INSERT INTO machine VALUES (?, ?)", (content_hash, encode_machine(machine)))
