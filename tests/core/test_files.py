from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from rocmend.core.files import write_atomic


def test_writes_text_and_bytes_and_makes_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_atomic(path, "größe")
    assert path.read_bytes() == "größe".encode()
    write_atomic(path, b"\x00")
    assert path.read_bytes() == b"\x00"
    assert [item.name for item in path.parent.iterdir()] == ["file"]


def test_the_old_file_stays_whole_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomic(path, "old")

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_new_file_is_as_readable_as_the_umask_allows(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        write_atomic(tmp_path / "file", "x")
    finally:
        os.umask(mask)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_the_umask_is_read_and_not_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mask = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda _: pytest.fail("other threads make files meanwhile"))
            write_atomic(tmp_path / "file", "x")
    finally:
        os.umask(mask)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_what_a_link_names_is_replaced_and_the_link_stays(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write_atomic(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomic(pipe, "through")
    reader.join(timeout=10)
    assert read == [b"through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    link = tmp_path / "full"
    link.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        write_atomic(link, "x")
    assert stat.S_ISCHR(link.stat().st_mode)
    assert [item.name for item in tmp_path.iterdir()] == ["full"]
