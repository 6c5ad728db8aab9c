"""The running machine is read without waiting, flooding or leaving a trace, and what is read is recorded."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rocmend.core.supervise import Ending
from rocmend.machine.live import LiveRoot
from rocmend.machine.root import AbsentError, DeniedError, ReadError

as_user = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


@pytest.fixture
def root() -> LiveRoot:
    return LiveRoot(recording=True)


@pytest.fixture
def denied(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the system refuse, which it never does for root."""

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        patch.setattr(os, "scandir", refuse)
        yield


def test_files_are_read_and_recorded(root: LiveRoot, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"hello \xff\n")
    assert root.read_text(str(path)) == "hello \ufffd\n"
    assert root.read_bytes(str(path), max_bytes=3) == b"hel"
    assert root.record is not None
    assert root.record.files == {str(path): b"hello \xff\n"}  # the longest read is kept


def test_recording_is_off_by_default(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    root = LiveRoot()
    root.read_text(str(tmp_path / "file"))
    assert root.record is None


def test_fifo_folder_and_device_are_refused_without_waiting(root: LiveRoot, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (str(tmp_path / "fifo"), str(tmp_path), "/dev/null", "/dev/zero"):
        with pytest.raises(ReadError, match="not a regular file"):
            root.read_text(path)
    assert root.record is not None
    assert str(tmp_path / "fifo") in root.record.errors


def test_absent_paths(root: LiveRoot, tmp_path: Path) -> None:
    path = str(tmp_path / "absent")
    (tmp_path / "file").touch()
    for missing in (path, f"{tmp_path}/file/below"):
        with pytest.raises(AbsentError):
            root.read_text(missing)
        assert root.read_or_none(missing) is None
        assert root.stat(missing) is None
        assert root.link(missing) is None
        assert not root.exists(missing)
    assert root.list_dir(path) == []
    assert root.record is not None
    assert not root.record.errors
    assert not root.record.denied


@pytest.mark.usefixtures("denied")
def test_refusals_are_kept_with_their_reason(root: LiveRoot) -> None:
    with pytest.raises(DeniedError, match="permission denied"):
        root.read_text("/secret")
    with pytest.raises(DeniedError):
        root.list_dir("/folder")
    assert root.record is not None
    assert root.record.denied == {"/secret": "permission denied.", "/folder": "permission denied."}


@as_user
def test_real_refusal(root: LiveRoot, tmp_path: Path) -> None:
    (tmp_path / "secret").touch(mode=0)
    with pytest.raises(DeniedError):
        root.read_text(str(tmp_path / "secret"))


def test_io_error_of_a_driver(root: LiveRoot, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "busy").touch()

    def fail(*_args: object) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "read", fail)
    with pytest.raises(ReadError, match="Input/output error"):
        root.read_text(str(tmp_path / "busy"))
    monkeypatch.undo()
    assert root.record is not None
    assert "Input/output" in root.record.errors[str(tmp_path / "busy")]


def test_listing(root: LiveRoot, tmp_path: Path) -> None:
    for name in ("b", "a10", "a2"):
        (tmp_path / name).touch()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).touch()
    assert root.list_dir(str(tmp_path)) == ["a10", "a2", "b", "\ufffd"]
    assert root.glob(str(tmp_path), "a*") == [f"{tmp_path}/a2", f"{tmp_path}/a10"]
    with pytest.raises(ReadError, match="not a directory"):
        root.list_dir(str(tmp_path / "b"))


def test_stat(root: LiveRoot, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("abc")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    found = root.stat(str(tmp_path / "link"))
    assert found is not None
    assert (found.kind, found.mode, found.size_bytes, found.readable) == ("file", 0o640, 3, True)
    assert found.uid == os.geteuid()
    assert root.link(str(tmp_path / "link")) == "file"
    null = root.stat("/dev/null")
    assert null is not None
    assert null.kind == "char"
    folder = root.stat("/proc")
    assert folder is not None
    assert folder.kind == "dir"
    assert stat.S_IMODE(Path("/proc").stat().st_mode) == folder.mode


def test_paths_that_are_none(root: LiveRoot) -> None:
    for path in ("relative", "", "/nul\0", "/" + "x" * 5000):
        with pytest.raises(ReadError):
            root.read_text(path)
        with pytest.raises(ReadError):
            root.list_dir(path)
        assert root.stat(path) is None
        assert root.link(path) is None
    with pytest.raises(AbsentError):
        root.read_text("/" + "x" * 300)


def test_tools_see_an_environment_of_our_making(root: LiveRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "/evil.so")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    monkeypatch.setenv("PATH", "/evil")
    monkeypatch.setenv("ROCM_PATH", "/opt/mine")
    result = root.run(["env"])
    values = dict(line.split("=", 1) for line in result.stdout.splitlines())
    assert values["LC_ALL"] == "C"
    assert values["PATH"].startswith("/opt/mine/bin:")
    assert values["PATH"].endswith("/opt/rocm/bin")
    assert "LD_PRELOAD" not in values
    assert "evil" not in result.stdout
    assert root.record is not None
    assert root.record.commands["env"] == result


def test_tools_that_are_not_there_are_not_recorded(root: LiveRoot) -> None:
    assert root.run(["no-such-tool"]).ending is Ending.NOT_FOUND
    assert root.record is not None
    assert not root.record.commands


def test_environment_records_only_what_is_kept(root: LiveRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HSA_ENABLE_SDMA", "0")
    monkeypatch.setenv("SOMETHING_PRIVATE", "x")
    monkeypatch.setenv("HIP_API_TOKEN", "x")
    assert root.environ()["SOMETHING_PRIVATE"] == "x"
    assert root.record is not None
    assert root.record.environ["HSA_ENABLE_SDMA"] == "0"
    assert "SOMETHING_PRIVATE" not in root.record.environ
    assert "HIP_API_TOKEN" not in root.record.environ


def test_environment_that_is_not_utf8(root: LiveRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HSA_ODD", os.fsdecode(b"a\xff"))
    assert root.environ()["HSA_ODD"] == "a\ufffd"


def test_user(root: LiveRoot) -> None:
    user = root.user()
    assert user.uid == os.geteuid()
    assert user.groups == tuple(sorted(user.groups))
    assert user.groups


def test_measure(root: LiveRoot, tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(1000))
    assert root.measure("size", str(tmp_path / "big"), lambda path: path.stat().st_size) == 1000
    assert root.record is not None
    assert root.record.measurements == {f"size|{tmp_path}/big": 1000}
    with pytest.raises(AbsentError):
        root.measure("size", str(tmp_path / "absent"), lambda _path: pytest.fail("called"))

    def refuse(_path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(DeniedError):
        root.measure("size", str(tmp_path / "big"), refuse)
