"""Code objects that were compiled before, in files below the user's cache folder."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import zstandard

from rocmend.codeobject.hip import dependencies
from rocmend.codeobject.hip.records import HipObject
from rocmend.core.documents import MALFORMED, decompressed, read_document
from rocmend.core.errors import DataError
from rocmend.core.files import write_atomic
from rocmend.core.private import cache_folder

__all__ = ["Cache", "Entry", "constants_file", "key_of"]

FORMAT = 1
"""Part of the cache's path: raise it when ``HipObject`` or how it is made changes."""

MAX_BYTES = 512 << 20
"""Beyond it, the entries that were not used for longest are removed."""

MAX_ENTRY_BYTES = 256 << 20


class Entry(msgspec.Struct, frozen=True):
    """A code object and what it was made of.

    Attributes:
        made: The code object.
        headers: SHA-256 of each header outside the toolchain, by path.
    """

    made: HipObject
    headers: dict[str, str]


def key_of(fingerprint: str, path: str, source: bytes, options: Sequence[str]) -> str:
    """Return the name that a compilation is found by."""
    digest = hashlib.sha256()
    for part in (fingerprint, path, *options):
        digest.update(part.encode(errors="surrogateescape") + b"\0")
    digest.update(source)
    return digest.hexdigest()


def constants_file(fingerprint: str, text: str) -> Path:
    """Return the file that holds the device libraries' constants as bitcode, whether it is there or not."""
    name = hashlib.sha256(f"{fingerprint}\n{text}".encode()).hexdigest()[:32]
    return cache_folder("code", "hip-constants") / f"{name}.bc"


class Cache:
    """Entries in files below a folder.

    Args:
        folder: None for ``code/hip`` in the user's cache folder.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = (folder or cache_folder("code", "hip")) / f"v{FORMAT}"

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key[2:40]}.zst"

    def find(self, key: str) -> HipObject | None:
        """Return what is known and still holds; a file that cannot be read counts as nothing known."""
        path = self._path(key)
        try:
            data = decompressed(read_document(path, max_bytes=MAX_ENTRY_BYTES), MAX_ENTRY_BYTES)
            entry = msgspec.msgpack.decode(data, type=Entry)
        except (OSError, DataError, *MALFORMED):
            return None
        if dependencies.changed(entry.headers):
            return None
        with contextlib.suppress(OSError):
            path.touch()
        return msgspec.structs.replace(entry.made, from_cache=True)

    def keep(self, key: str, entry: Entry) -> None:
        """Keep an entry; a folder that cannot be written costs only time."""
        path = self._path(key)
        with contextlib.suppress(OSError):
            data = zstandard.ZstdCompressor(level=3).compress(msgspec.msgpack.encode(entry))
            write_atomic(path, data, private=True)
            if path.parent.stat().st_mtime_ns % 16 == 0:  # looking at every file on every write would cost more
                self._prune()

    def _prune(self) -> None:
        files = [(path.stat().st_mtime_ns, path.stat().st_size, path) for path in self.folder.glob("*/*.zst")]
        over = sum(size for _, size, _ in files) - MAX_BYTES
        for _, size, path in sorted(files):
            if over <= 0:
                return
            path.unlink(missing_ok=True)
            over -= size
