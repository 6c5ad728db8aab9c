"""Results from before, by what they were computed from: a project that did not change is planned at once."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec
import zstandard

from rocmend.core.documents import MALFORMED, decompressed, read_document
from rocmend.core.errors import DataError, RocmendError
from rocmend.core.files import write_atomic
from rocmend.core.private import private_folder
from rocmend.port.cache import rules_fingerprint

__all__ = ["Memo"]

_DIGEST_BYTES = 32
_MAX_BYTES = 256 << 20
_MAX_PLAIN_BYTES = 1 << 30


class Memo:
    """What was computed for one project.

    Args:
        root: The project's folder.
    """

    def __init__(self, root: Path) -> None:
        name = hashlib.sha256(os.fsencode(os.path.realpath(root))).hexdigest()[:32]
        self._path: Path | None = None
        with contextlib.suppress(RocmendError, OSError):  # the cache of the analysis says why there is none
            self._path = private_folder("port") / f"{name}.plan"
        self._known = self._read()
        self._used: dict[bytes, bytes] = {}

    @staticmethod
    def key(*parts: object) -> bytes:
        """Return the key of a result: of all that it is computed from, the program included."""
        return hashlib.sha256(msgspec.msgpack.encode((rules_fingerprint(), *parts))).digest()

    def get(self, key: bytes) -> bytes | None:
        """Return a result; None where it has to be computed."""
        value = self._known.get(key)
        if value is not None:
            self._used[key] = value
        return value

    def put(self, key: bytes, value: bytes) -> None:
        """Keep a result."""
        self._used[key] = value

    def save(self) -> None:
        """Write what was used, for the next time. A cache that cannot be written costs time and nothing else."""
        if self._path is None or self._used.keys() == self._known.keys():
            return
        payload = zstandard.ZstdCompressor(level=1).compress(msgspec.msgpack.encode(self._used))
        try:
            write_atomic(self._path, hashlib.sha256(payload).digest() + payload, private=True)
        except OSError:
            return

    def _read(self) -> dict[bytes, bytes]:
        if self._path is None:
            return {}
        try:
            data = read_document(self._path, max_bytes=_MAX_BYTES)
            payload = data[_DIGEST_BYTES:]
            if hashlib.sha256(payload).digest() != data[:_DIGEST_BYTES]:
                return {}
            return msgspec.msgpack.decode(decompressed(payload, _MAX_PLAIN_BYTES), type=dict[bytes, bytes])
        except (OSError, DataError, *MALFORMED):
            return {}
