"""Artifacts outlive a database that was emptied, removed or replaced; and a store is its owner's alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.core.errors import DataError
from rocmend.store.store import Store

Make = Callable[..., Any]
OTHER = 54321
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def home(tmp_path: Path, evidence: Make) -> Path:
    """The default store, with 25 records of an artifact each."""
    with Store.open(tmp_path / "home" / "evidence.sqlite") as store:
        for number in range(25):
            store.add(evidence(), artifacts={"log": b"%d" % number})
    return tmp_path / "home"


def artifacts(home: Path) -> int:
    return sum(path.is_file() for path in (home / "artifacts").rglob("*"))


def close(home: Path) -> Path:
    for beside in home.glob("evidence.sqlite-*"):
        beside.unlink()
    return home / "evidence.sqlite"


def empty(home: Path, evidence: Make) -> None:  # noqa: ARG001
    close(home).write_bytes(b"")


def gone(home: Path, evidence: Make) -> None:  # noqa: ARG001
    close(home).unlink()


def another(home: Path, evidence: Make) -> None:
    with Store.open(home.with_name("another") / "evidence.sqlite") as store:
        store.add(evidence(), artifacts={"log": b"another"})
    (home.with_name("another") / "evidence.sqlite").replace(close(home))


@pytest.mark.parametrize("harm", [empty, gone])
@pytest.mark.parametrize(
    "arguments", [("gc",), ("gc", "--yes"), ("gc", "--all", "--yes"), ("ls",), ("ls", "--json", "--no-redact")]
)
def test_a_store_without_its_database_is_refused(
    rocmend: Make, home: Path, evidence: Make, harm: Callable[..., None], arguments: tuple[str, ...]
) -> None:
    harm(home, evidence)
    before = sorted(home.iterdir())
    done = rocmend("store", *arguments)
    said = " ".join((done.out + done.err).split())
    assert done.code == 2
    assert "25 artifacts" in said
    assert str(home / "artifacts") in said
    assert "Restore the right database" in said
    assert (artifacts(home), sorted(home.iterdir())) == (25, before)


@pytest.mark.parametrize("harm", [empty, gone])
def test_nothing_is_added_to_it(home: Path, evidence: Make, harm: Callable[..., None]) -> None:
    harm(home, evidence)
    with pytest.raises(DataError, match="25 artifacts"):
        Store.open(home)


def test_gc_keeps_artifacts_that_another_database_named(rocmend: Make, home: Path, evidence: Make) -> None:
    another(home, evidence)
    done = rocmend("store", "gc", "--yes")
    assert done.code == 2
    assert "No record refers to any of the 25 artifacts" in " ".join(done.err.split())
    assert artifacts(home) == 25
    assert rocmend("store", "gc", "--all", "--yes").code == 0
    assert artifacts(home) == 0


def test_gc_removes_nothing_unasked(rocmend: Make, home: Path) -> None:
    first = next(iter(msgspec.json.decode(rocmend("store", "ls", "--json").out)["data"]))["id"]
    assert rocmend("store", "gc").code == 0  # there is nothing to ask about
    assert rocmend("store", "rm", first, "--yes").code == 0
    done = rocmend("store", "gc")
    assert done.code == 2
    assert "would remove 1 artifact (" in done.err
    assert artifacts(home) == 25
    assert rocmend("store", "gc", "--yes").code == 0
    assert artifacts(home) == 24


class TestModes:
    def modes(self, home: Path) -> dict[str, int]:
        return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (home, *home.iterdir())}

    def test_what_was_open_to_others_is_closed(
        self, rocmend: Make, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for path in (home, *home.iterdir()):
            path.chmod(0o755 if path.is_dir() else 0o644)
        monkeypatch.delenv("ROCMEND_HOME")
        monkeypatch.setenv("XDG_DATA_HOME", str(home.parent))
        (home.parent / "rocmend").symlink_to(home)
        assert rocmend("store", "ls").code == 0
        found = self.modes(home)
        assert (found["home"], found["artifacts"], found["evidence.sqlite"]) == (0o700, 0o700, 0o600)

    @pytest.mark.parametrize("named", ["--store", "ROCMEND_HOME"])
    def test_in_a_named_folder_what_was_there_keeps_its_mode(
        self, rocmend: Make, home: Path, monkeypatch: pytest.MonkeyPatch, named: str
    ) -> None:
        for path in (home, *home.iterdir()):
            path.chmod(0o2770 if path.is_dir() else 0o660)
        before = self.modes(home)
        if named == "--store":
            monkeypatch.setenv("ROCMEND_HOME", str(home.parent / "other"))
        assert rocmend("store", "ls", *(["--store", home] if named == "--store" else [])).code == 0
        after = self.modes(home)
        assert {name: after[name] for name in before} == before

    def test_in_a_folder_of_the_users_its_own_mode_stays(self, tmp_path: Path, evidence: Make) -> None:
        tmp_path.chmod(0o755)
        with Store.open(tmp_path / "mine.sqlite") as store:
            store.add(evidence(), artifacts={"log": b"1"})
            found = self.modes(tmp_path)
        assert found.pop(tmp_path.name) == 0o755
        assert set(found.values()) == {0o600, 0o700}

    @as_root
    def test_root_does_not_write_to_a_users_store(self, rocmend: Make, home: Path) -> None:
        for path in (home, *home.rglob("*")):
            os.chown(path, OTHER, OTHER)
        assert rocmend("store", "ls").code == 0
        first = next(iter(msgspec.json.decode(rocmend("store", "ls", "--json").out)["data"]))["id"]
        done = rocmend("store", "rm", first, "--yes")
        assert done.code == 2
        assert "another user" in done.err
        assert {path.stat().st_uid for path in (home, *home.rglob("*"))} == {OTHER}
