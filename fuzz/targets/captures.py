"""A captured machine that somebody else made: the input replaces one file of a small capture."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fuzz.target import BrokenPromiseError, Target
from rocmend.core.errors import RocmendError
from rocmend.machine.captured import CapturedRoot
from rocmend.machine.root import ReadError

_COMMAND = ("rocminfo",)
FILES = {
    "machine.json": b'{"captured_at": "2026-01-02T03:04:05+00:00", "name": "m", "schema_version": 1}',
    "tree.json": b'{"stats": {"/dev/kfd": {"kind": "char", "mode": 432}}, "links": {"/a": "../b"}, '
    b'"lists": {"/sys": ["x"]}, "denied": {"/c": "no"}, "errors": {"/d": "no"}}',
    "environ.json": b'{"PATH": "/usr/bin"}',
    "user.json": b'{"uid": 1000, "gid": 1000, "groups": []}',
    "measurements.json": b'{"probe|/dev/kfd": 1.5}',
    "commands/rocminfo.json": b'{"argv": ["rocminfo"], "ending": "exited", "exit_code": 0, "stdout": "x"}',
}
_NAMES = sorted(FILES)
_SECRET = "not part of any capture"  # noqa: S105  a mark to look for


def read(data: bytes) -> None:
    """Read everything that a capture holds; nothing outside of it may be among it."""
    if not data:
        return
    with tempfile.TemporaryDirectory(prefix="rocmend-fuzz-") as folder:
        (Path(folder) / "outside").write_text(_SECRET)
        capture = Path(folder) / "capture"
        (capture / "commands").mkdir(parents=True)
        (capture / "root").mkdir()
        (capture / "root" / "b").write_text("inside")
        for number, name in enumerate(_NAMES):
            (capture / name).write_bytes(data[1:] if number == data[0] % len(_NAMES) else FILES[name])
        with suppress(RocmendError):
            _read_all(CapturedRoot(capture))


def _read_all(root: CapturedRoot) -> None:
    for part in (root.environ, root.user, lambda: root.run(_COMMAND), lambda: root.measure("probe", "/dev/kfd", len)):
        with suppress(RocmendError):
            part()
    for path in ("/", "/a", "/b", "/c", "/d", "/e", "/f", "/sys", "/dev/kfd", "/../outside", "/a/../../outside"):
        with suppress(ReadError):
            root.list_dir(path)
        root.stat(path)
        root.link(path)
        with suppress(ReadError):
            if _SECRET.encode() in root.read_bytes(path):
                raise BrokenPromiseError(f"{path} leads out of the capture")


def seeds() -> Iterator[bytes]:
    """Yield each file of the small capture, and links that lead out of it."""
    for number, name in enumerate(_NAMES):
        yield bytes([number]) + FILES[name]
    tree = _NAMES.index("tree.json")
    yield bytes([tree]) + b'{"links": {"/a": "../../outside", "/e": "/proc/self/root/outside", "/f": "/f"}}'


TARGET = Target(read, seeds)
