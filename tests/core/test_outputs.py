"""Files that the user named are written, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rocmend.core.beneath import UnsafePathError
from rocmend.core.errors import UsageError
from rocmend.core.outputs import check_named, write_named


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A stranger's project with links that lead out of it."""
    made, outside = tmp_path / "project", tmp_path / "outside"
    made.mkdir()
    outside.mkdir()
    (outside / "mine").write_text("mine")
    (made / "link").symlink_to(outside)
    (made / "file").symlink_to(outside / "mine")
    (made / "dangling").symlink_to(outside / "new")
    os.mkfifo(made / "pipe")
    return made


def test_what_is_named_is_written(root: Path) -> None:
    for path in (root / "new.json", root.parent / "elsewhere.json", root.parent / "outside" / "mine"):
        write_named(path, "text", project=root)
        assert path.read_text() == "text"
    write_named(Path("/dev/null"), b"bytes")


@pytest.mark.parametrize("name", ["link/new", "file", "dangling"])
def test_a_link_is_not_written_through(root: Path, name: str) -> None:
    for refuse in (check_named, lambda path, project: write_named(path, "text", project=project)):
        with pytest.raises(UnsafePathError):
            refuse(root / name, project=root)
    assert [path.name for path in (root.parent / "outside").iterdir()] == ["mine"]
    assert (root.parent / "outside" / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["pipe", ".", "none/report.html"])
def test_what_is_no_file_is_refused_at_once(root: Path, name: str) -> None:
    with pytest.raises(UsageError):
        check_named(root / name)
    assert not (root / "none").exists()


def test_a_link_that_appears_meanwhile_is_not_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rocmend.core.outputs.check_named", lambda *_, **__: None)
    write_named(root / "file", "text")
    assert (root.parent / "outside" / "mine").read_text() == "mine"
