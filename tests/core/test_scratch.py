"""What a killed process leaves is removed by the next one, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from rocmend.core import scratch
from rocmend.core.files import write_atomic
from rocmend.core.scratch import PartialFile, ScratchFolder, sweep


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process sweep as a new one would."""
    monkeypatch.setattr(scratch, "_swept", set())


def killed(place: Path, source: str) -> list[Path]:
    """Run Python in a process that kills itself; return what it left."""
    source = f"import os, signal\nfrom pathlib import Path\nplace = Path({str(place)!r})\n{textwrap.dedent(source)}"
    done = subprocess.run([sys.executable, "-c", source], check=False, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    return sorted(place.iterdir())


LEAVE = """
    from rocmend.core.scratch import PartialFile, ScratchFolder
    folder = ScratchFolder("probe", place)
    (folder.path / "rocmend").symlink_to("/")
    (folder.path / "sub").mkdir()
    (folder.path / "sub" / "file").write_text("x")
    partial = PartialFile(place / "report.html")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed_at_the_next_start(tmp_path: Path) -> None:
    assert len(killed(tmp_path, LEAVE)) == 2
    write_atomic(tmp_path / "other", "x")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_write_that_is_killed_leaves_nothing_after_the_next(tmp_path: Path) -> None:
    left = killed(
        tmp_path,
        """
        from rocmend.core.files import write_atomic
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        write_atomic(place / "report.html", "half")
        """,
    )
    assert len(left) == 1
    write_atomic(tmp_path / "report.html", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_what_has_an_owner_or_is_not_ours_stays(tmp_path: Path) -> None:
    with ScratchFolder("mine", tmp_path) as mine, PartialFile(tmp_path / "file") as partial:
        target = tmp_path / "target"
        target.mkdir()
        (target / "precious").write_text("x")
        (tmp_path / "rocmend-probe-abcdefgh.tmp").symlink_to(target)
        (tmp_path / ".file.abcdefgh.rocmend-part").symlink_to(target / "precious")
        (tmp_path / "rocmend-probe-abcdefgh").mkdir()  # of an older version: nobody knows whether it is in use
        (tmp_path / ".file.abcdefgh.part").write_text("another program's")
        os.mkfifo(tmp_path / ".pipe.abcdefgh.rocmend-part")
        before = sorted(path.name for path in tmp_path.iterdir())
        assert sweep(tmp_path) == 0
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        assert mine.is_dir()
        assert partial.path.is_file()
    assert (target / "precious").read_text() == "x"
    assert not mine.exists()


def test_another_users_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rocmend-probe-abcdefgh.tmp").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert sweep(tmp_path) == 0
    monkeypatch.undo()
    assert sweep(tmp_path) == 1


def test_what_is_swept_before_it_is_locked_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = scratch._locked
    turns: list[int] = []

    def late(descriptor: int) -> bool | None:
        if not turns:
            turns.append(1)
            (made,) = tmp_path.iterdir()
            made.rmdir()
        return locked(descriptor)

    monkeypatch.setattr(scratch, "_locked", late)
    with ScratchFolder("probe", tmp_path) as folder:
        assert folder.is_dir()
    assert turns
    assert list(tmp_path.iterdir()) == []


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("ä" * 127)
    write_atomic(path, "x")
    assert path.read_text() == "x"


def test_where_hosts_share_a_folder_a_lock_says_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "shared_by_hosts", lambda _: True)
    folder, file = tmp_path / "rocmend-probe-abcdefgh.tmp", tmp_path / ".file.abcdefgh.rocmend-part"
    folder.mkdir()
    file.touch()
    assert sweep(tmp_path) == 0, "another host may be at work in them"
    for path in (folder, file):
        os.utime(path, (0, time.time() - 90_000))
    with ScratchFolder("mine", tmp_path) as mine:
        os.utime(mine, (0, 0))
        assert sweep(tmp_path) == 0  # the new folder has swept
        assert list(tmp_path.iterdir()) == [mine]
