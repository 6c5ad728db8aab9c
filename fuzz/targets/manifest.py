"""The record of a port that came with a project: undoing it never leads out of the project."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import zstandard

from fuzz.target import BrokenPromiseError, Target
from rocmend.core.errors import RocmendError
from rocmend.port import state
from rocmend.port.undo import undo

# Neither git, which is a process, nor the disk is waited for at each input: both have tests of their own.
state.tracked = lambda *_: []
os.fsync = lambda _: None

_BEFORE, _AFTER = b"before\n", b"after\n"
_DIGESTS = [hashlib.sha256(data).hexdigest() for data in (_BEFORE, _AFTER)]
_MARKS = ("", "commit", "finished", "rollback")


def take_back(data: bytes) -> None:
    """Put the input in the place of a manifest, of a port or of an interrupted run, and undo it."""
    if not data:
        return
    with tempfile.TemporaryDirectory(prefix="rocmend-fuzz-") as folder:
        project = Path(folder) / "outer" / "project"
        mark = _MARKS[data[0] % 4]
        record = project / ".rocmend" / "port" / ("transaction" if data[0] & 4 else "0001")
        (record / "originals").mkdir(parents=True)
        (record / "originals" / f"{_DIGESTS[0]}.zst").write_bytes(zstandard.ZstdCompressor().compress(_BEFORE))
        (record / "inverse.patch").write_bytes(b"")
        (record / "manifest.json").write_bytes(data[1:])
        if mark:
            (record / mark).write_bytes(b"")
        (project / "a.cu").write_bytes(_AFTER)
        for path in (Path(folder) / "a.cu", Path(folder) / "outer" / "a.cu"):
            path.write_bytes(_AFTER)
        with suppress(RocmendError):
            undo(project)
        _check(Path(folder))


def _check(folder: Path) -> None:
    """Raise where anything beside the project is not as it was, or a file has more than permissions."""
    outside = {folder / "a.cu", folder / "outer", folder / "outer" / "a.cu"}
    there = {path for path in folder.rglob("*") if "project" not in path.parts}
    if there != outside or any(path.read_bytes() != _AFTER for path in outside if path.is_file()):
        raise BrokenPromiseError(f"something beside the project was changed: {sorted(map(str, there))}")
    for path in folder.rglob("*"):
        if path.lstat().st_mode & 0o7000:
            raise BrokenPromiseError(f"{path} has mode {path.lstat().st_mode:o}")


def seeds() -> Iterator[bytes]:
    """Yield manifests, whole and hostile."""
    entry = {"path": "a.cu", "before": _DIGESTS[0], "after": _DIGESTS[1], "mode": 0o644}
    manifests = (
        {"entries": [entry]},
        {"entries": [entry | {"path": "../a.cu"}]},
        {"entries": [entry | {"path": "/tmp/a.cu"}], "made_folders": ["../made"]},  # noqa: S108  hostile on purpose
        {"entries": [entry | {"mode": 0o4755}], "drops": ["0001", "../.."], "keeps": ["a.cu"]},
        {"entries": [entry | {"before": "../../a"}], "made_folders": ["x", "x/y"]},
        {"entries": [entry | {"path": ".git/hooks/post-checkout"}, entry | {"path": "a.cu/b"}]},
        {"entries": [entry | {"before": ""}]},
    )
    for number, manifest in enumerate(manifests):
        for first in (number, number + 4):
            yield bytes([first % 8]) + msgspec.json.encode(manifest)


TARGET = Target(take_back, seeds, max_bytes=2048)
