"""Changing many files: all or none, whatever interrupts it and wherever."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from rocmend.core.errors import UsageError
from rocmend.port.patch import patch
from rocmend.port.records import Change
from rocmend.port.state import Manifest, entries_of, generations
from rocmend.port.transaction import commit, locked, modes_of, recover, to_make
from rocmend.port.undo import undo

BEFORE: dict[str, bytes] = {"a.py": b"a\n", "deep/b.cu": b"\xff\r\n", "same.txt": b"same\n", "mode.sh": b"#!/bin/sh\n"}
AFTER = {**BEFORE, "a.py": b"ported a\n", "deep/b.cu": b"ported \xff\r\n", "new/in/c.h": b"made\n", "mode.sh": b"#!\n"}
CHANGES = [Change(path, BEFORE.get(path), AFTER[path]) for path in ("a.py", "deep/b.cu", "mode.sh", "new/in/c.h")]

MUTATORS = ("open", "write", "fsync", "mkdir", "rmdir", "unlink", "replace", "rename", "fchmod")


@pytest.fixture(autouse=True)
def no_flushing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that dies loses nothing that it wrote; flushing to the disk is what takes the time here."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


def fresh(root: Path) -> Path:
    for path, data in BEFORE.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    (root / "mode.sh").chmod(0o750)
    return root


def port(root: Path, changes: list[Change] = CHANGES) -> None:
    with locked(root) as tree:
        recover(tree)
        manifest = Manifest(entries_of(changes, modes_of(tree, changes)), made_folders=tuple(to_make(tree, changes)))
        commit(tree, changes, manifest, patch(Change(one.path, one.after, one.before) for one in changes))


def state(root: Path) -> dict[str, bytes]:
    """Everything in the project but the record of ports; folders too, for those that should be gone."""
    found = {}
    for path in root.rglob("*"):
        shown = str(path.relative_to(root))
        if not shown.startswith(".rocmend"):
            found[shown] = path.read_bytes() if path.is_file() else b"<folder>"
    return found


def whole(files: dict[str, bytes]) -> dict[str, bytes]:
    folders = {str(parent) for path in files for parent in Path(path).parents if str(parent) != "."}
    return {**files, **dict.fromkeys(folders, b"<folder>")}


def recovered(root: Path) -> str:
    with locked(root) as tree:
        return recover(tree)


def killed_at(step: int, action: Callable[[], object], *, half: bool) -> bool:
    """Do something in a child that dies before its n-th change to the disk; return whether it died.

    Args:
        step: From 0.
        action: What is done.
        half: Whether a write is half done when the child dies at it.
    """
    child = os.fork()
    if child == 0:
        left = [step]
        status = 3
        try:
            for name in MUTATORS:
                wrap(name, left, half=half)
            action()
            status = 0
        finally:
            os._exit(status)
    _, code = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(code) in {0, 9}, "the child failed by itself"
    return os.waitstatus_to_exitcode(code) == 9


def wrap(name: str, left: list[int], *, half: bool) -> None:
    honest = getattr(os, name)

    def dying(*arguments: object, **named: object) -> object:
        if name == "open" and not int(str(arguments[1])) & (os.O_WRONLY | os.O_CREAT):
            return honest(*arguments, **named)
        if left[0] == 0:
            if half and name == "write":
                data = bytes(cast("memoryview", arguments[1]))
                honest(arguments[0], data[: len(data) // 2])
            os._exit(9)
        left[0] -= 1
        return honest(*arguments, **named)

    setattr(os, name, dying)


@pytest.mark.slow
@pytest.mark.parametrize("half", [False, True])
def test_a_port_that_dies_anywhere_is_finished_or_taken_back(tmp_path: Path, *, half: bool) -> None:
    step = finished = taken_back = 0
    while True:
        root = fresh(tmp_path / f"run{step}")
        died = killed_at(step, partial(port, root), half=half)
        told = recovered(root)
        now = state(root)
        if now == whole(AFTER):
            finished += 1
            assert len(generations(root)) == 1
            assert stat.S_IMODE((root / "mode.sh").stat().st_mode) == 0o750
            undo(root)
            assert state(root) == whole(BEFORE)
        else:
            assert now == whole(BEFORE), f"step {step}: neither before nor after"
            assert generations(root) == []
            taken_back += 1
        assert (root / ".rocmend").exists() == bool(generations(root))
        assert recovered(root) == "", "nothing is left to do"
        if not died:
            assert told == ""
            break
        step += 1
    assert finished > 5
    assert taken_back > 20


@pytest.mark.slow
def test_an_undo_that_dies_anywhere_is_finished_or_taken_back(tmp_path: Path) -> None:
    step = finished = taken_back = 0
    while True:
        root = fresh(tmp_path / f"run{step}")
        port(root)
        port(root, [Change("a.py", b"ported a\n", b"ported twice\n")])
        died = killed_at(step, partial(undo, root), half=True)
        recovered(root)
        now = state(root)
        if now == whole(BEFORE):
            finished += 1
            assert not (root / ".rocmend").exists()
        else:
            assert now == whole({**AFTER, "a.py": b"ported twice\n"}), f"step {step}: neither before nor after"
            assert len(generations(root)) == 2
            taken_back += 1
            undo(root)
            assert state(root) == whole(BEFORE)
        assert stat.S_IMODE((root / "mode.sh").stat().st_mode) == 0o750
        if not died:
            break
        step += 1
    assert finished > 10
    assert taken_back > 20


@pytest.mark.slow
def test_an_undo_that_keeps_a_file_and_dies_can_still_take_it_back(tmp_path: Path) -> None:
    step = finished = 0
    while True:
        root = fresh(tmp_path / f"run{step}")
        port(root)
        port(root, [Change("a.py", b"ported a\n", b"ported twice\n")])
        (root / "a.py").write_bytes(b"by hand\n")
        died = killed_at(step, partial(undo, root, keep_changed=True), half=True)
        recovered(root)
        assert state(root)["a.py"] == b"by hand\n"
        finished += state(root) == whole({**BEFORE, "a.py": b"by hand\n"})
        (root / "a.py").write_bytes(b"ported twice\n")
        undo(root)
        assert state(root) == whole(BEFORE), f"step {step}"
        assert not (root / ".rocmend").exists()
        if not died:
            break
        step += 1
    assert finished > 10


@pytest.mark.slow
def test_a_recovery_that_dies_anywhere_is_recovered_from(tmp_path: Path) -> None:
    """Killed in the middle of moving files, then again at every step of the recovery."""
    for first in range(26, 48, 7):
        step = 0
        while True:
            root = fresh(tmp_path / f"run{first}-{step}")
            if not killed_at(first, partial(port, root), half=False):
                break
            died = killed_at(step, partial(recovered, root), half=True)
            recovered(root)
            assert state(root) in (whole(BEFORE), whole(AFTER)), f"steps {first} and {step}"
            if not died:
                break
            step += 1


@pytest.mark.parametrize("name", ["write", "fsync", "replace", "mkdir", "fchmod"])
def test_an_error_anywhere_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The disk is full, or a folder not writable, at any one call."""
    count = 0
    while True:
        root = fresh(tmp_path / f"run{count}")
        honest = getattr(os, name)
        left = [count]
        named: list[str] = []

        def failing(
            *arguments: object, honest: Callable[..., object] = honest, left: list[int] = left, **others: object
        ) -> object:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(errno.ENOSPC, "No space left on device")
            return honest(*arguments, **others)

        with monkeypatch.context() as patched:
            patched.setattr(os, name, failing)
            try:
                port(root)
            except OSError as error:
                named.append(str(error.filename))
            else:
                assert state(root) == whole(AFTER)
                if left[0] >= 0:
                    break
            assert all(path.startswith(str(root)) for path in named), "the error does not say what was being written"
        recovered(root)
        assert state(root) in (whole(BEFORE), whole(AFTER))
        assert bool(generations(root)) == (state(root) == whole(AFTER))
        count += 1
    assert count


def test_a_file_that_somebody_changed_in_between_is_left_as_it_is(tmp_path: Path) -> None:
    """Killed while files are moved into place; then one that is still to come is edited by hand."""
    seen = 0
    for step in range(200):
        root = fresh(tmp_path / f"run{step}")
        if not killed_at(step, partial(port, root), half=False):
            break
        if not (root / ".rocmend" / "port" / "transaction" / "commit").exists():
            continue
        if (root / "mode.sh").read_bytes() == AFTER["mode.sh"]:
            continue
        (root / "mode.sh").write_bytes(b"by hand\n")
        assert "left unchanged" in recovered(root)
        assert state(root) == whole({**BEFORE, "mode.sh": b"by hand\n"})
        assert generations(root) == []
        seen += 1
    assert seen > 2


def test_a_file_that_is_not_what_it_was_refuses_all(tmp_path: Path) -> None:
    root = fresh(tmp_path / "root")
    (root / "deep" / "b.cu").write_bytes(b"other\n")
    with pytest.raises(UsageError, match=r"b\.cu.*was changed"):
        port(root)
    assert state(root)["a.py"] == BEFORE["a.py"]
    assert not (root / ".rocmend").exists()


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda path: path.unlink(), "was removed"),
        (lambda path: (path.unlink(), path.symlink_to("same.txt")), "no longer a regular file"),
        (lambda path: (path.unlink(), path.mkdir()), "no longer a regular file"),
    ],
)
def test_what_is_no_longer_that_file_refuses_all(tmp_path: Path, harm: Callable[[Path], object], words: str) -> None:
    root = fresh(tmp_path / "root")
    harm(root / "a.py")
    with pytest.raises(UsageError, match=words):
        port(root)
    assert not (root / ".rocmend").exists()


def test_a_file_that_appeared_is_not_overwritten(tmp_path: Path) -> None:
    root = fresh(tmp_path / "root")
    (root / "new" / "in").mkdir(parents=True)
    (root / "new" / "in" / "c.h").write_bytes(b"mine\n")
    with pytest.raises(UsageError, match="has appeared"):
        port(root)
    assert state(root)["new/in/c.h"] == b"mine\n"


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    root = fresh(tmp_path / "root")
    with locked(root):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                with locked(root):
                    pass
            except UsageError:
                status = 5
            finally:
                os._exit(status)
        _, code = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(code) == 5


def test_what_others_left_is_not_taken_for_ours(tmp_path: Path) -> None:
    root = fresh(tmp_path / "root")
    assert recovered(root) == ""
    assert not (root / ".rocmend").exists()
