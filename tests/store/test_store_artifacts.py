from __future__ import annotations

import hashlib
import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmend.core.errors import DataError, UsageError
from rocmend.store.artifacts import LARGE_BYTES, ArtifactFolder
from rocmend.store.errors import StoreError
from rocmend.store.store import Store

Make = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> ArtifactFolder:
    return ArtifactFolder(tmp_path / "artifacts")


def read(folder: ArtifactFolder, sha256: str) -> bytes:
    pieces: list[bytes] = []
    assert folder.read(sha256, pieces.append) == len(b"".join(pieces))
    return b"".join(pieces)


def test_small_ones_lie_as_they_are_under_their_hash(folder: ArtifactFolder) -> None:
    sha256, size_bytes = folder.put(b"hello")
    assert sha256 == hashlib.sha256(b"hello").hexdigest()
    assert size_bytes == 5
    path = folder.path / sha256[:2] / sha256[2:]
    assert path.read_bytes() == b"hello"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == folder.path.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("from_file", [True, False])
@pytest.mark.parametrize("size_bytes", [LARGE_BYTES - 1, LARGE_BYTES, (3 << 20) + 17])
def test_large_ones_are_compressed(folder: ArtifactFolder, tmp_path: Path, size_bytes: int, from_file: bool) -> None:
    data = (b"step 12: loss 0.3\n" * (size_bytes // 10))[:size_bytes]
    source = tmp_path / "source"
    source.write_bytes(data)
    sha256, size = folder.put(source if from_file else data)
    path = folder.find(sha256)
    assert path is not None
    assert (path.suffix == ".zst") == (size_bytes >= LARGE_BYTES)
    assert size == size_bytes
    assert read(folder, sha256) == data
    if size_bytes >= LARGE_BYTES:
        assert path.stat().st_size < size_bytes / 50


def test_equal_ones_are_kept_once(folder: ArtifactFolder, tmp_path: Path) -> None:
    data = os.urandom(LARGE_BYTES * 3)
    source = tmp_path / "source"
    source.write_bytes(data)
    assert folder.put(data) == folder.put(source) == folder.put(data)
    assert len(list(folder.walk())) == 1


def test_a_file_that_grows_while_it_is_read_is_kept_as_it_was_read(folder: ArtifactFolder, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"a" * (LARGE_BYTES - 1))  # small when it was opened
    chunks = iter([log.read_bytes(), b"b" * 100_000])
    sha256, size_bytes = folder._write(chunks, compressed=False)
    assert size_bytes == LARGE_BYTES - 1 + 100_000
    assert hashlib.sha256(read(folder, sha256)).hexdigest() == sha256


def test_the_name_comes_only_when_the_contents_are_on_the_disk(
    folder: ArtifactFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"x" * 100
    sha256 = hashlib.sha256(data).hexdigest()
    synced: list[tuple[bool, bool]] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        real(handle)
        synced.append((Path(f"/proc/self/fd/{handle}").is_dir(), folder.find(sha256) is not None))

    monkeypatch.setattr(os, "fsync", fsync)
    folder.put(data)
    assert (False, False) in synced  # the contents, under no name yet
    assert synced[-1] == (True, True)  # then the folder with the name
    assert (False, True) not in synced


def test_a_pipe_is_refused_rather_than_waited_for(folder: ArtifactFolder, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StoreError, match="Only regular files"):
        folder.put(tmp_path / "pipe")


def test_a_file_that_is_not_there_says_which(store: Store, evidence: Make, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"No such file.*no\.log"):
        store.add(evidence(), artifacts={"output.log": tmp_path / "no.log"})
    assert list(store.query()) == []


def test_nothing_half_written_is_left_when_reading_the_source_fails(folder: ArtifactFolder) -> None:
    def broken() -> Any:
        yield b"first"
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        folder._write(broken(), compressed=False)
    assert list(folder.walk()) == []


@pytest.mark.parametrize("data", [b"small", b"large" * LARGE_BYTES], ids=["plain", "compressed"])
@pytest.mark.parametrize("harm", ["flip", "cut", "empty", "append"])
def test_a_changed_one_is_noticed(folder: ArtifactFolder, data: bytes, harm: str) -> None:
    sha256, _ = folder.put(data)
    path = folder.find(sha256)
    assert path is not None
    held = bytearray(path.read_bytes())
    if harm == "flip":
        held[len(held) // 2] ^= 1
    elif harm == "append":
        held = held * 2
    path.write_bytes(held[: {"cut": len(held) // 2, "empty": 0}.get(harm, len(held))])
    with pytest.raises(DataError, match="hash differs"):
        read(folder, sha256)


def test_one_that_is_gone_says_so(folder: ArtifactFolder) -> None:
    with pytest.raises(DataError, match="not in the store"):
        read(folder, "0" * 64)


@pytest.mark.parametrize("sha256", ["", "../../../etc/passwd", "A" * 64, "0" * 63])
def test_what_is_no_hash_is_not_looked_for(folder: ArtifactFolder, sha256: str) -> None:
    with pytest.raises(UsageError, match="not a SHA-256"):
        folder.find(sha256)


@pytest.mark.slow
def test_a_large_one_needs_little_memory(tmp_path: Path, evidence: Make, in_child: Callable[..., int]) -> None:
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(600 << 20)  # a hole: 600 MB of zeros that take no room

    def child() -> None:
        with Store.open(tmp_path / "s" / "evidence.sqlite") as store:
            store.add(evidence(), artifacts={"warm": b"x" * LARGE_BYTES})
            limit = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + (120 << 20)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            (artifact,) = store.get(store.add(evidence(), artifacts={"big": big})).evidence.artifacts
            with Path("/dev/null").open("wb") as null:
                assert store.copy_artifact(artifact.sha256, null) == 600 << 20

    assert in_child(child) == 0


class TestCollecting:
    def test_only_what_no_record_names_goes(self, store: Store, evidence: Make, machine: Make) -> None:
        first = store.add(evidence(), machine=machine(a=1), artifacts={"own": b"own", "shared": b"shared"})
        second = store.add(evidence(), machine=machine(a=2), artifacts={"shared": b"shared"})
        assert store.gc().artifacts == 0
        store.remove([first])
        planned = store.gc(dry_run=True)
        assert (planned.machines, planned.artifacts, planned.partial_files) == (1, 1, 0)
        assert planned.freed_bytes > 3
        assert store.gc() == planned
        assert store.gc().freed_bytes == 0
        (artifact,) = store.get(second).evidence.artifacts
        assert store.artifact(artifact.sha256) == b"shared"
        assert store.verify() == []
        assert len(list((store.path.parent / "artifacts").iterdir())) == 1  # the empty folder is gone too

    def test_partial_files_go_and_strangers_stay(self, store: Store, evidence: Make) -> None:
        store.add(evidence(), artifacts={"a": b"a"})
        folder = store.path.parent / "artifacts"
        (folder / ".part-0123").write_bytes(b"half")
        (folder / "README").write_text("mine")
        (folder / "ab").mkdir(exist_ok=True)
        (folder / "ab" / "notes.txt").write_text("mine")
        report = store.gc()
        assert (report.partial_files, report.artifacts, report.freed_bytes) == (1, 0, 4)
        assert (folder / "README").exists()
        assert (folder / "ab" / "notes.txt").exists()

    def test_the_file_shrinks(self, store: Store, evidence: Make) -> None:
        store.remove([store.add(evidence(detail={"x": "y" * 1_000_000}))])
        store.gc()
        assert store.path.stat().st_size < 200_000

    def test_two_stores_in_a_folder_leave_each_other_alone(self, tmp_path: Path, evidence: Make) -> None:
        with Store.open(tmp_path / "one.sqlite") as one, Store.open(tmp_path / "evidence.sqlite") as two:
            one.add(evidence(), artifacts={"a": b"1"})
            two.add(evidence(), artifacts={"a": b"2"})
            assert one.gc().artifacts == two.gc().artifacts == 0
            assert [*one.verify(), *two.verify()] == []


def test_verify_names_each_damage(store: Store, evidence: Make, machine: Make) -> None:
    record = store.get(store.add(evidence(), machine=machine(a=1), artifacts={"a": b"1", "b": b"2"})).evidence
    assert store.verify() == []
    for artifact, contents in zip(record.artifacts, (b"changed", None), strict=True):
        path = store.path.parent / "artifacts" / artifact.sha256[:2] / artifact.sha256[2:]
        path.write_bytes(contents) if contents else path.unlink()
    with store._session.transaction() as database:
        database.execute("UPDATE machine SET snapshot = x'00'")
        database.execute("UPDATE evidence SET verdict = 'hang'")
    assert len({damage.subject for damage in store.verify()}) == 4
