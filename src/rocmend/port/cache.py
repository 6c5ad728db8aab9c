"""What is known of files from before, so that an unchanged project is not read again."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from functools import cache
from pathlib import Path

import msgspec

import rocmend
from rocmend.core.documents import MALFORMED, read_document
from rocmend.core.errors import DataError, RocmendError
from rocmend.core.files import write_atomic
from rocmend.core.private import private_folder
from rocmend.port.look import Look
from rocmend.port.settings import Settings
from rocmend.port.walk import FoundFile

__all__ = ["Cache", "rules_fingerprint"]

_MAGIC = b"rocmend port cache 1\n"
_DIGEST_BYTES = 32
_MAX_BYTES = 512 << 20
_RACY_NS = 2_000_000_000
"""A file written this shortly before it was read may be written again with the same time: its stamp says too little."""
_MOST_PROJECTS = 64


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    look: Look
    read_at_ns: int


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    fingerprint: str
    entries: dict[str, _Entry]


@cache
def rules_fingerprint() -> str:
    """Return what an analysis depends on beside the files: the program, its rules, and the Python that parses."""
    digest = hashlib.sha256(f"{rocmend.__version__} {sys.version_info[:2]}".encode())
    room = Path(__file__).parent
    for path in sorted(room.rglob("*")):
        if "__pycache__" not in path.parts and path.is_file():
            digest.update(f"{path.relative_to(room)}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


class Cache:
    """The cache of one project.

    Args:
        root: The project's folder.
        settings: Its settings: what was skipped under other limits is looked at again.

    Attributes:
        notes: What went wrong with it, in sentences: it is then built anew, or not kept.
    """

    def __init__(self, root: Path, settings: Settings) -> None:
        self.notes: list[str] = []
        limits = (settings.max_file_bytes, settings.time_limit_s, settings.memory_limit_bytes)
        self._fingerprint = f"{rules_fingerprint()} {limits}"
        name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
        self._path: Path | None = None
        try:
            self._path = private_folder("port") / f"{name}.bin"
        except RocmendError as error:
            self.notes.append(f"{error} All files are read.")
        except OSError as error:
            self.notes.append(
                f"The cache folder {error.filename} cannot be used: {error.strerror}; all files are read."
            )
        self._entries = self._read()
        self._next: dict[str, _Entry] = {}

    @property
    def empty(self) -> bool:
        """Whether nothing is known."""
        return not self._entries

    def unchanged(self, file: FoundFile) -> Look | None:
        """Return what is known of a file whose size and times are what they were; None where it has to be read."""
        entry = self._entries.get(file.path)
        if entry is None or entry.look.stamp != file.stamp or entry.look.size_bytes != file.size:
            return None
        if max(file.stamp[0], file.stamp[1]) + _RACY_NS > entry.read_at_ns:
            return None
        self._next[file.path] = entry
        return entry.look

    def known_sha256(self, path: str) -> str:
        """Return the digest of the content that is known under a name; empty where none is."""
        entry = self._entries.get(path)
        return entry.look.sha256 if entry else ""

    def take(self, seen: Look) -> Look:
        """Keep what was found, and return it: from before, where the content is the same."""
        if seen.same:
            seen = msgspec.structs.replace(self._entries[seen.path].look, stamp=seen.stamp)
        if any(seen.stamp):
            self._next[seen.path] = _Entry(seen, time.time_ns())
        return seen

    def save(self) -> None:
        """Write what was found, for the next time; without the files that are no longer there."""
        if self._path is None or self._next == self._entries:
            return
        payload = msgspec.msgpack.encode(_Stored(self._fingerprint, self._next))
        try:
            write_atomic(self._path, _MAGIC + hashlib.sha256(payload).digest() + payload, private=True)
            kept = sorted(self._path.parent.glob("*.bin"), key=lambda path: path.stat().st_mtime)
            for old in kept[:-_MOST_PROJECTS]:
                old.unlink(missing_ok=True)
                old.with_suffix(".plan").unlink(missing_ok=True)
        except OSError as error:
            self.notes.append(
                f"The cache {self._path} cannot be written: {error.strerror}; the next run reads all files."
            )

    def _read(self) -> dict[str, _Entry]:
        if self._path is None:
            return {}
        try:
            data = read_document(self._path, max_bytes=_MAX_BYTES)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except DataError as error:
            self.notes.append(f"The cache {self._path} {error.message.removesuffix('.')}; all files are read.")
            return {}
        payload = data[len(_MAGIC) + _DIGEST_BYTES :]
        if data[: len(_MAGIC)] == _MAGIC and data[len(_MAGIC) :][:_DIGEST_BYTES] == hashlib.sha256(payload).digest():
            try:
                stored = msgspec.msgpack.decode(payload, type=_Stored)
            except MALFORMED:  # whole, but of another version's shape
                return {}
            return stored.entries if stored.fingerprint == self._fingerprint else {}
        self.notes.append(f"The cache {self._path} was damaged and is rebuilt.")
        return {}
