"""Files that are old, new, damaged, another's or read-only: clear errors, and nothing lost."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.errors import DataError, RocmendError
from rocmend.core.evidence import Evidence
from rocmend.core.mounts import shared_by_hosts
from rocmend.core.verdict import Verdict
from rocmend.store import database
from rocmend.store.errors import StoreError
from rocmend.store.place import Place, default_path
from rocmend.store.schema import APPLICATION_ID, STEPS
from rocmend.store.store import Store

Make = Callable[..., Any]
SECOND = ("ALTER TABLE evidence ADD COLUMN note TEXT NOT NULL DEFAULT 'old'",)


@pytest.fixture
def path(tmp_path: Path, evidence: Make) -> Path:
    """A store with a record."""
    place = tmp_path / "kept" / "evidence.sqlite"
    with Store.open(place) as store:
        store.add(evidence(), artifacts={"a": b"1"})
    return place


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def test_files_are_the_owners_alone(path: Path) -> None:
    with Store.open(path):
        for file in [path.parent, *path.parent.rglob("*")]:
            assert stat.S_IMODE(file.stat().st_mode) == (0o700 if file.is_dir() else 0o600), file
        assert {file.name for file in path.parent.iterdir()} >= {"evidence.sqlite-wal", "artifacts"}


def test_the_file_says_what_it_is(path: Path) -> None:
    with opened(path) as connection:
        assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert connection.execute("PRAGMA user_version").fetchone() == (len(STEPS),)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


class TestVersions:
    def test_an_older_one_is_upgraded_and_a_copy_stays(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with Store.open(path) as store:
            before = [item.evidence for item in store.query()]
        monkeypatch.setattr(database, "STEPS", (*STEPS, SECOND))
        with Store.open(path) as store:
            assert store._session.rows("SELECT note FROM evidence") == [("old",)]
            assert [item.evidence for item in store.query()] == before
        (copy,) = path.parent.glob("*.bak")
        assert copy.name.startswith(f"evidence.sqlite.v{len(STEPS)}-")
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        monkeypatch.undo()
        copy.replace(path)
        with Store.open(path) as store:  # the copy is a whole store of the old version
            assert [item.evidence for item in store.query()] == before

    def test_the_first_version_is_upgraded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "first" / "evidence.sqlite"
        monkeypatch.setattr(database, "STEPS", STEPS[:1])
        with Store.open(path) as store:
            store.add(Evidence("probe", "a", "i", Verdict.PASS, "", "2026-01-01", 1.0, group="probe-1"))
        monkeypatch.undo()
        with Store.open(path) as store:
            assert [(group.group, group.count) for group in store.groups()] == [("probe-1", 1)]
            assert store.verify() == []

    def test_an_upgrade_that_fails_changes_nothing(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(database, "STEPS", (*STEPS, (*SECOND, "CREATE TABLE evidence (id)")))
        with pytest.raises(StoreError, match="already exists"):
            Store.open(path)
        monkeypatch.undo()
        assert list(path.parent.glob("*.bak*")) == []
        with Store.open(path) as store:
            assert len(list(store.query())) == 1
            assert store.verify() == []

    def test_a_newer_one_is_refused_untouched(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(database, "STEPS", (*STEPS, SECOND))
        Store.open(path).close()
        monkeypatch.undo()
        before = path.read_bytes()
        with pytest.raises(
            StoreError,
            match=rf"has version {len(STEPS) + 1}; this rocmend knows versions up to {len(STEPS)}.*Upgrade rocmend",
        ):
            Store.open(path)
        assert path.read_bytes() == before

    def test_two_that_upgrade_at_once_do_it_once(
        self, path: Path, monkeypatch: pytest.MonkeyPatch, in_child: Callable[..., int]
    ) -> None:
        monkeypatch.setattr(database, "STEPS", (*STEPS, SECOND))
        real = database._checked_version
        calls = []

        def overtaken(connection: sqlite3.Connection, place: Place) -> int:
            version = real(connection, place)
            calls.append(version)
            if len(calls) == 1:
                assert in_child(lambda: Store.open(path).close()) == 0
            return version

        monkeypatch.setattr(database, "_checked_version", overtaken)
        with Store.open(path) as store:
            assert len(list(store.query())) == 1
        assert (calls[0], calls[-1]) == (len(STEPS), len(STEPS) + 1)
        assert len(list(path.parent.glob("*.bak"))) == 1


class TestOthers:
    @pytest.mark.parametrize("contents", [b"hello\n", b"\0" * 5000, b"SQLite format 4\0" + b"\0" * 5000, b"#!/bin/sh"])
    def test_a_file_that_is_no_database(self, tmp_path: Path, contents: bytes) -> None:
        path = tmp_path / "evidence.sqlite"
        path.write_bytes(contents)
        with pytest.raises(DataError, match="not an SQLite database"):
            Store.open(path)
        assert path.read_bytes() == contents
        assert [file.name for file in tmp_path.iterdir()] == [path.name]

    @pytest.mark.parametrize("mark", ["CREATE TABLE t (x)", "PRAGMA user_version=1", "PRAGMA application_id=7"])
    def test_another_programs_database(self, tmp_path: Path, mark: str) -> None:
        path = tmp_path / "other.db"
        with opened(path) as connection:
            connection.execute(mark)
        before = path.read_bytes()
        with pytest.raises(DataError, match="belongs to another program"):
            Store.open(path)
        assert path.read_bytes() == before

    def test_an_empty_file_becomes_a_store(self, tmp_path: Path, evidence: Make) -> None:
        (tmp_path / "mine").touch()
        with Store.open(tmp_path / "mine") as store:
            assert store.get(store.add(evidence())).evidence == evidence()

    def test_a_folder_where_the_file_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "evidence.sqlite").mkdir()
        with pytest.raises(StoreError, match="unable to open"):
            Store.open(tmp_path)

    def test_a_file_where_a_folder_should_be(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StoreError, match=r"(File exists|Not a directory) \(.*file"):
            Store.open(tmp_path / "file" / "evidence.sqlite")


def use_all(path: Path, record: Evidence) -> bool:
    """Read and write a store; return whether it found damage in itself."""
    with Store.open(path) as store:
        damage = store.verify()
        list(store.query())
        store.add(record)
    return bool(damage)


class TestDamage:
    @pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
    def test_a_file_that_was_cut(self, path: Path, keep: float, evidence: Make) -> None:
        data = path.read_bytes()
        path.write_bytes(data[: int(len(data) * keep)])
        with pytest.raises(DataError, match="is damaged"):
            use_all(path, evidence())

    def test_bytes_that_were_overwritten_are_never_a_crash(self, path: Path, evidence: Make) -> None:
        data = path.read_bytes()
        noticed = 0
        for start in range(100, len(data), 997):
            path.with_name("evidence.sqlite-wal").unlink(missing_ok=True)
            path.with_name("evidence.sqlite-shm").unlink(missing_ok=True)
            path.write_bytes(data[:start] + os.urandom(2000) + data[start + 2000 :])
            try:
                noticed += use_all(path, evidence())
            except RocmendError:  # ours, with words
                noticed += 1
        assert noticed > 10


@pytest.fixture
def read_only(path: Path, tmp_path: Path) -> Iterator[Path]:
    """The store on a mount that is read-only for everyone, root included."""
    there = tmp_path / "mounted"
    there.mkdir()
    tool = shutil.which("mount")
    if tool is None or os.geteuid() != 0:
        pytest.skip("only root can mount")
    bound = subprocess.run([tool, "--bind", path.parent, there], capture_output=True, check=False)
    if bound.returncode:
        pytest.skip(f"no mounting here: {bound.stderr.decode()}")
    try:
        subprocess.run([tool, "-o", "remount,ro,bind", there], check=True)
        yield there / path.name
    finally:
        subprocess.run(["umount", there], check=True)


class TestReadOnly:
    def test_it_can_be_read_and_says_that_it_cannot_be_written(self, read_only: Path, evidence: Make) -> None:
        with Store.open(read_only) as store:
            (record,) = store.query()
            assert store.artifact(record.evidence.artifacts[0].sha256) == b"1"
            assert not store.writable
            for change in (lambda: store.add(evidence()), lambda: store.remove([record.id]), store.gc):
                with pytest.raises(StoreError, match=r"read-only or belongs to another user.*--store"):
                    change()
            assert store.gc(dry_run=True).artifacts == 0
            assert store.verify() == []

    def test_an_older_one_there_says_that_it_has_to_be_copied(
        self, read_only: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(database, "STEPS", (*STEPS, SECOND))
        with pytest.raises(StoreError, match=rf"needs an upgrade to {len(STEPS) + 1}, and it is read-only.*Copy"):
            Store.open(read_only)

    def test_a_new_one_there(self, read_only: Path) -> None:
        with pytest.raises(StoreError, match="can't be written"):
            Store.open(read_only.parent / "new" / "evidence.sqlite")

    def test_records_that_are_still_in_the_log(self, path: Path, read_only: Path, evidence: Make) -> None:
        with Store.open(path) as writer:
            writer.add(evidence())
            log = path.with_name("evidence.sqlite-wal").read_bytes()
        assert log
        path.with_name("evidence.sqlite-wal").write_bytes(log)
        with pytest.raises(StoreError, match=r"last records are still in evidence\.sqlite-wal.*Copy"):
            Store.open(read_only)


class TestPlace:
    def test_the_default_follows_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("ROCMEND_HOME", raising=False)
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
        monkeypatch.setenv("HOME", "/home/someone")
        assert default_path() == Path("/home/someone/.local/share/rocmend/evidence.sqlite")
        monkeypatch.setenv("XDG_DATA_HOME", "relative")
        assert default_path() == Path("/home/someone/.local/share/rocmend/evidence.sqlite")
        monkeypatch.setenv("XDG_DATA_HOME", "/data")
        assert default_path() == Path("/data/rocmend/evidence.sqlite")
        monkeypatch.setenv("ROCMEND_HOME", "~/r")
        assert default_path() == Path("/home/someone/r/evidence.sqlite")

    def test_a_folder_means_the_file_in_it(self, tmp_path: Path) -> None:
        assert Place(tmp_path).database == tmp_path / "evidence.sqlite"
        assert Place(tmp_path / "mine.db").database == tmp_path / "mine.db"
        assert Place(tmp_path / "mine.db").artifacts == tmp_path / "mine.db.artifacts"

    def test_artifacts_lie_where_a_link_leads(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "link.sqlite").symlink_to(path)
        with Store.open(tmp_path / "link.sqlite") as store:
            assert store.verify() == []

    @pytest.mark.parametrize("name", ["a?mode=ro", "a%20b", "a#b", "ü 1", "a;b'c"])
    def test_odd_names(self, tmp_path: Path, name: str, evidence: Make) -> None:
        with Store.open(tmp_path / name / name) as store:
            store.add(evidence(), artifacts={"a": b"1"})
        with Store.open(tmp_path / name / name, create=False) as store:
            assert len(list(store.query())) == 1
        assert (tmp_path / name / name).is_file()

    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("/home/a/x", True),
            ("/home/local disk/x", False),
            ("/homestead/x", False),
            ("/srv/x", True),
            ("/", False),
        ],
    )
    def test_network_file_systems_are_known(self, path: str, expected: bool) -> None:
        mounts = (
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
            "23 22 0:30 / /home rw shared:1 - nfs4 host:/home rw\n"
            "24 23 8:2 / /home/local\\040disk rw - xfs /dev/sdb1 rw\n"
            "25 22 8:3 / /srv rw - ext4 /dev/sdc1 rw\n"
            "26 22 0:31 / /srv rw - fuse.sshfs host: rw\n"
            "nonsense\n"
        )
        assert shared_by_hosts(Path(path), mounts) is expected

    def test_there_the_log_is_one_that_they_bear(
        self, tmp_path: Path, evidence: Make, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(database, "shared_by_hosts", lambda _: True)
        with Store.open(tmp_path / "s") as store:
            store.add(evidence())
            assert store._session.rows("PRAGMA journal_mode") == [("delete",)]
            assert store.verify() == []
