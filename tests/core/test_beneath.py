"""Access to a stranger's folder: nothing leads out of it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rocmend.core.beneath import Beneath, UnsafePathError
from rocmend.core.errors import DataError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "mine").write_text("mine")
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "file").write_text("theirs")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "folder" / "up").symlink_to("..")
    (root / "folder" / "mine").symlink_to(tmp_path / "outside" / "mine")
    return root


@pytest.mark.parametrize(
    "path",
    ["link/mine", "link/new", "folder/up/folder/file", "../outside/mine", "/etc/passwd", "a//b", "./a", "a/..", "a\0b"],
)
def test_no_operation_takes_a_way_out(root: Path, path: str) -> None:
    with Beneath(root) as tree:
        for operation in (
            lambda: tree.read(path, 100),
            lambda: tree.create(path, b""),
            lambda: tree.put(path, b""),
            lambda: tree.stat(path),
            lambda: tree.unlink(path),
            lambda: tree.mkdir(path),
            lambda: tree.rmdir(path),
            lambda: tree.remove(path),
            lambda: tree.names(path),
            lambda: tree.replace("folder/file", path),
            lambda: tree.replace(path, "folder/file"),
        ):
            with pytest.raises(UnsafePathError):
                operation()
    assert (root / "folder" / "file").read_text() == "theirs"
    assert [one.name for one in (root.parent / "outside").iterdir()] == ["mine"]


def test_a_link_itself_is_seen_removed_and_replaced_but_not_read(root: Path) -> None:
    with Beneath(root) as tree:
        for refused in (lambda: tree.read("folder/mine", 100), lambda: tree.is_folder("link")):
            with pytest.raises(UnsafePathError, match="symbolic link"):
                refused()
        with pytest.raises(FileExistsError):
            tree.create("folder/mine", b"")
        tree.replace("folder/file", "folder/mine")
        tree.unlink("link")
    assert (root / "folder" / "mine").read_text() == "theirs"
    assert (root.parent / "outside" / "mine").read_text() == "mine"


def test_links_inside_are_followed_for_reading_where_that_is_asked_for(root: Path) -> None:
    with Beneath(root) as tree:
        assert tree.read(tree.within("folder/up/folder/file"), 100) == b"theirs"
        with pytest.raises(UnsafePathError, match="out of the project"):
            tree.within("folder/mine")


def test_pipes_are_not_opened_and_sizes_are_limited(root: Path) -> None:
    os.mkfifo(root / "pipe")
    with Beneath(root) as tree:
        with pytest.raises(OSError, match="not a regular file"):
            tree.read("pipe", 100)
        with pytest.raises(DataError, match="more than 3 bytes"):
            tree.read("folder/file", 3)


def test_a_folder_is_removed_and_what_its_links_name_stays(root: Path) -> None:
    with Beneath(root) as tree:
        tree.remove("folder")
    assert not (root / "folder").exists()
    assert (root.parent / "outside" / "mine").read_text() == "mine"


def test_errors_name_the_whole_path(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Beneath(root) as tree:
        with pytest.raises(FileNotFoundError) as absent:
            tree.read("folder/none", 1)
        assert absent.value.filename == str(root / "folder" / "none")
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left") as failed:
            tree.create("folder/new", b"data")
        assert failed.value.filename == str(root / "folder" / "new")
        with pytest.raises(OSError, match="No space left"):
            tree.put("folder/put", b"data")
    assert not (root / "folder" / "put").exists()
    assert not list((root / "folder").glob(".rocmend-*"))


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with Beneath(tmp_path) as tree, pytest.raises(DataError, match="File name too long"):
        tree.document(f"{'a' * 300}/b", 10)
