"""Files kept by what they hold: ``ab/cdef…``, compressed with zstd where they are large."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from rocmend.core.errors import DataError, UsageError
from rocmend.core.scratch import PartialFile
from rocmend.store.errors import StoreError

LARGE_BYTES = 16 << 10
"""From this size on files are compressed."""

_CHUNK_BYTES = 1 << 20
_PARTIAL = ".part-"
_COMPRESSED = ".zst"
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_FOLDER = re.compile(r"[0-9a-f]{2}\Z")
_FILE = re.compile(r"([0-9a-f]{62})(?:\.zst)?\Z")


class Held(NamedTuple):
    """A file of the folder: its path, and the hash of what it holds; None for one left half-written."""

    path: Path
    sha256: str | None


class ArtifactFolder:
    """Writes, reads and lists artifacts.

    Args:
        path: The folder; it is made when the first artifact is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, source: bytes | Path) -> tuple[str, int]:
        """Keep a file; on return it is on the disk under its hash.

        Args:
            source: Its contents, or a file to copy them from.

        Returns:
            SHA-256 and size in bytes.

        Raises:
            StoreError: The source is not a regular file.
            OSError: It can't be read, or there is no room.
        """
        if isinstance(source, bytes):
            sha256 = hashlib.sha256(source).hexdigest()
            if self.find(sha256) is None:
                self._write(iter((source,)), compressed=len(source) >= LARGE_BYTES)
            else:
                _sync_folder(self._folder(sha256))  # whoever wrote it may not have come to that yet
            return sha256, len(source)
        with _regular(source) as file:
            size_bytes = os.fstat(file.fileno()).st_size
            chunks = iter(lambda: file.read(_CHUNK_BYTES), b"")
            return self._write(chunks, compressed=size_bytes >= LARGE_BYTES)

    def _write(self, chunks: Iterator[bytes], *, compressed: bool) -> tuple[str, int]:
        """Write, flush, and only then give the file the name that promises what it holds."""
        if not self.path.is_dir():
            self.path.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(self.path.parent)
        with PartialFile(self.path / _PARTIAL[1:]) as partial:
            with os.fdopen(partial.descriptor, "wb", closefd=False) as file:
                sha256, size_bytes = _copy(chunks, file, compressed=compressed)
            os.fsync(partial.descriptor)
            folder = self._folder(sha256)
            if not folder.is_dir():
                folder.mkdir(mode=0o700, exist_ok=True)
                _sync_folder(self.path)
            if self.find(sha256) is None:
                partial.path.rename(folder / (sha256[2:] + (_COMPRESSED if compressed else "")))
            _sync_folder(folder)
        return sha256, size_bytes

    def _folder(self, sha256: str) -> Path:
        return self.path / sha256[:2]

    def find(self, sha256: str) -> Path | None:
        """Return the file that holds an artifact, or None.

        Raises:
            UsageError: Not a SHA-256.
        """
        if not _SHA256.match(sha256):
            raise UsageError("store", f"{sha256!r} is not a SHA-256 (64 digits 0-9a-f).")
        plain = self._folder(sha256) / sha256[2:]
        for path in (plain, plain.with_name(plain.name + _COMPRESSED)):
            if path.is_file():
                return path
        return None

    def read(self, sha256: str, write: Callable[[bytes], object]) -> int:
        """Hand an artifact's contents on in pieces, and check them.

        Args:
            sha256: Which one.
            write: Takes the pieces in order.

        Returns:
            Its size in bytes.

        Raises:
            DataError: It is not there, or it does not hold what it was kept for; the pieces were handed on already.
        """
        path = self.find(sha256)
        if path is None:
            raise DataError(
                sha256, "The artifact is not in the store.", why="Its file was removed by something other than rocmend."
            )
        digest, size_bytes = hashlib.sha256(), 0
        with path.open("rb") as file:
            for chunk in _contents(file, path):
                digest.update(chunk)
                size_bytes += len(chunk)
                write(chunk)
        if digest.hexdigest() != sha256:
            raise _altered(path)
        return size_bytes

    def walk(self) -> Iterator[Held]:
        """Yield what is in the folder; files that are not ours are left out."""
        with contextlib.suppress(FileNotFoundError):
            for entry in sorted(self.path.iterdir()):
                if entry.name.startswith(_PARTIAL):
                    yield Held(entry, None)
                elif _FOLDER.match(entry.name) and entry.is_dir():
                    for path in sorted(entry.iterdir()):
                        if match := _FILE.match(path.name):
                            yield Held(path, entry.name + match[1])


def count_artifacts(path: Path) -> tuple[int, int] | None:
    """Return how many artifacts a folder holds, and their bytes on the disk; None where there are none."""
    if not path.is_dir():
        return None
    sizes = [held.path.stat().st_size for held in ArtifactFolder(path).walk() if held.sha256 is not None]
    return (len(sizes), sum(sizes)) if sizes else None


@contextlib.contextmanager
def _regular(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; a pipe or a device could keep us waiting for ever."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise StoreError(str(path), "Only regular files can be kept as artifacts.")
        yield file


def _copy(chunks: Iterator[bytes], file: BinaryIO, *, compressed: bool) -> tuple[str, int]:
    digest, size_bytes = hashlib.sha256(), 0
    squeeze: Callable[[bytes], bytes] = bytes
    rest: Callable[[], bytes] = bytes
    if compressed:
        import zstandard

        compressor = zstandard.ZstdCompressor(level=3, write_checksum=True).compressobj()
        squeeze, rest = compressor.compress, compressor.flush
    for chunk in chunks:
        digest.update(chunk)
        size_bytes += len(chunk)
        file.write(squeeze(chunk))
    file.write(rest())
    return digest.hexdigest(), size_bytes


def _contents(file: BinaryIO, path: Path) -> Iterator[bytes]:
    if path.suffix != _COMPRESSED:
        yield from iter(lambda: file.read(_CHUNK_BYTES), b"")
        return
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(file) as reader:
            yield from iter(lambda: reader.read(_CHUNK_BYTES), b"")
    except zstandard.ZstdError as error:
        raise _altered(path) from error


def _altered(path: Path) -> DataError:
    return DataError(
        str(path),
        "The artifact's content has changed: its hash differs.",
        why="The file was changed by something other than rocmend, or the disk is failing.",
    )


def _sync_folder(path: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
