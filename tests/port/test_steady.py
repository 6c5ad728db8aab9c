"""Reading a file whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.port.steady import NotReadError, read_steady, stamp_of

MOST = 1000


def test_a_quiet_file_is_read_with_its_stamp(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"x = 1\n")
    assert read_steady(tmp_path, path.name, MOST) == (b"x = 1\n", stamp_of(path.stat()))


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"# more\n")


def rewritten(path: Path) -> None:
    path.write_bytes(b"y = 2\n")
    os.utime(path, ns=(1, 1))


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)


@pytest.mark.parametrize("meanwhile", [appended, rewritten, replaced, Path.unlink])
def test_a_file_that_changes_meanwhile_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Path], None]
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"x = 1\n")
    honest = os.fdopen

    def dishonest(handle: int, mode: str, *, closefd: bool) -> object:
        monkeypatch.setattr(os, "fdopen", honest)
        meanwhile(path)
        return honest(handle, mode, closefd=closefd)

    monkeypatch.setattr(os, "fdopen", dishonest)
    with pytest.raises(NotReadError, match=r"changed while|No such file"):
        read_steady(tmp_path, path.name, MOST)


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name, reason in (("pipe", "not a regular file"), ("link", "cannot be read"), ("none", "No such file")):
        with pytest.raises(NotReadError, match=reason):
            read_steady(tmp_path, name, MOST)


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * (MOST + 1))
    with pytest.raises(NotReadError, match="1,001 bytes, more than the limit of 1,000"):
        read_steady(tmp_path, path.name, MOST)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_says_so(tmp_path: Path) -> None:
    path = tmp_path / "shut"
    path.write_bytes(b"")
    path.chmod(0)
    with pytest.raises(NotReadError, match="Permission denied"):
        read_steady(tmp_path, path.name, MOST)
