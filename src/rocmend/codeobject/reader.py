"""Bytes by offset, from a file that can be sought in or from a stream that runs past once.

Parsers are written against ``Reader`` and ask for ascending offsets, so that the same code reads a library on disk and
one that is being inflated out of a wheel.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from rocmend.core.errors import DataError

BLOCK_BYTES = 1 << 18
HEAD_BYTES = 8 << 20
"""Kept of a stream's beginning: program headers, dynamic symbol names and the dynamic linker's strings stand there."""

WINDOW_BYTES = 16 << 20
"""Kept of what was read last: section headers and their names stand at the end of a library."""

MAX_KEPT = 16
MAX_KEPT_BYTES = 1 << 20

MAX_READ_BYTES = 64 << 20
"""No structure that is read in one piece is larger; a length field that says so is hostile."""


class PassedError(DataError):
    """A stream has already run past the offset asked for."""


class Reader(ABC):
    """Bytes by offset.

    Attributes:
        name: What messages call it.
        size: Length in bytes; of a stream what its container promises.
        seekable: Offsets can be asked for in any order.
    """

    name: str
    size: int
    seekable: bool

    @abstractmethod
    def block_at(self, offset: int) -> bytes:
        """Return some bytes that start at ``offset``; none at or beyond the end.

        Raises:
            PassedError: A stream no longer has them.
        """

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes at ``offset``, fewer where the data ends.

        Raises:
            DataError: More than ``MAX_READ_BYTES`` asked for.
            PassedError: A stream no longer has them.
        """
        if size > MAX_READ_BYTES:
            raise DataError(
                self.name,
                f"a field asks for {size} bytes in one piece at offset {offset}.",
                why="No valid file needs that; it is damaged or made to exhaust memory.",
            )
        parts: list[bytes] = []
        left = size
        while left > 0:
            block = self.block_at(offset)[:left]
            if not block:
                break
            parts.append(block)
            offset += len(block)
            left -= len(block)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_exactly(self, offset: int, size: int, what: str) -> bytes:
        """Return ``size`` bytes at ``offset``.

        Raises:
            DataError: The data ends before, or as ``read`` raises.
        """
        data = self.read(offset, size)
        if len(data) < size:
            raise DataError(
                self.name, f"ends inside {what}: {size} bytes expected at offset {offset}, {len(data)} there."
            )
        return data

    def keep(self, offset: int, size: int) -> None:  # noqa: B027  only a stream forgets what it has read
        """Keep these bytes readable even after the stream has moved on; those that are gone already are not."""


class FileReader(Reader):
    """A regular file on disk, read by ``pread``: no memory map that a shrinking file could turn into a crash.

    Attributes:
        bytes_read: How much of it was read.
    """

    seekable = True

    def __init__(self, path: Path, name: str = "") -> None:
        self.name = name or str(path)
        self.bytes_read = 0
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.size = os.fstat(self._handle).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)

    def block_at(self, offset: int) -> bytes:
        """See ``Reader``."""
        return self._pread(offset, BLOCK_BYTES)

    def read(self, offset: int, size: int) -> bytes:
        """See ``Reader``; reads no more than what is asked for."""
        if size > MAX_READ_BYTES:
            return super().read(offset, size)
        data = self._pread(offset, size)
        return data if len(data) in {0, size} else data + super().read(offset + len(data), size - len(data))

    def _pread(self, offset: int, size: int) -> bytes:
        if not 0 <= offset < self.size:
            return b""
        try:
            data = os.pread(self._handle, size, offset)
        except OSError as error:
            raise DataError(self.name, f"cannot be read at offset {offset}: {error.strerror}.") from error
        self.bytes_read += len(data)
        return data


class BytesReader(Reader):
    """Bytes in memory."""

    seekable = True

    def __init__(self, data: bytes, name: str = "data") -> None:
        self.name = name
        self.size = len(data)
        self._data = data

    def block_at(self, offset: int) -> bytes:
        """See ``Reader``."""
        return self._data[offset : offset + BLOCK_BYTES] if offset >= 0 else b""


class SliceReader(Reader):
    """A part of another reader, with offsets of its own."""

    def __init__(self, reader: Reader, start: int, size: int, name: str) -> None:
        self.name = name
        self.size = size
        self.seekable = reader.seekable
        self._reader, self._start = reader, start

    def block_at(self, offset: int) -> bytes:
        """See ``Reader``."""
        return self._reader.block_at(self._start + offset)[: self.size - offset] if 0 <= offset < self.size else b""

    def read(self, offset: int, size: int) -> bytes:
        """See ``Reader``."""
        return self._reader.read(self._start + offset, min(size, self.size - offset)) if offset < self.size else b""


class StreamReader(Reader):
    """Blocks that come once; the beginning, the last megabytes and pinned pieces stay readable.

    Args:
        blocks: Yields the data in order; what it raises passes through.
        size: Length that the container promises (0 where unknown).
        name: What messages call it.
        head_bytes: Kept of the beginning.
        window_bytes: Kept of what was read last.
    """

    seekable = False

    def __init__(
        self,
        blocks: Iterator[bytes],
        size: int,
        name: str = "stream",
        *,
        head_bytes: int = HEAD_BYTES,
        window_bytes: int = WINDOW_BYTES,
    ) -> None:
        self.name = name
        self.size = size
        self.position = 0
        self._blocks = blocks
        self._head_bytes = head_bytes
        self._window_bytes = window_bytes
        self._head: list[tuple[int, bytes]] = []
        self._window: deque[tuple[int, bytes]] = deque()
        self._window_held = 0
        self._kept_ranges: list[tuple[int, int]] = []
        self._kept: list[tuple[int, bytes]] = []

    def _pull(self) -> bytes:
        block = next(self._blocks, b"")
        if not block:
            return b""
        start = self.position
        self.position += len(block)
        if start < self._head_bytes:
            self._head.append((start, block))
        elif any(start < last and first < self.position for first, last in self._kept_ranges):
            self._kept.append((start, block))
        self._window.append((start, block))
        self._window_held += len(block)
        while self._window_held > self._window_bytes and len(self._window) > 1:
            self._window_held -= len(self._window.popleft()[1])
        return block

    def block_at(self, offset: int) -> bytes:
        """See ``Reader``."""
        if offset < 0:
            return b""
        while offset >= self.position:
            start = self.position
            block = self._pull()
            if not block:
                return b""
            if offset < self.position:
                return block[offset - start :] if offset > start else block
        for contiguous in (self._window, self._head):
            found = _covering(contiguous, offset)
            if found:
                return found
        for start, block in self._kept:
            if start <= offset < start + len(block):
                return block[offset - start :]
        raise PassedError(self.name, f"offset {offset} has already gone by (at {self.position}).")

    def keep(self, offset: int, size: int) -> None:
        """See ``Reader``; at most ``MAX_KEPT`` ranges of ``MAX_KEPT_BYTES`` each."""
        if len(self._kept_ranges) >= MAX_KEPT or size > MAX_KEPT_BYTES:
            return
        self._kept_ranges.append((offset, offset + size))
        for start, block in self._window:
            if start < offset + size and offset < start + len(block) and (start, block) not in self._kept:
                self._kept.append((start, block))

    def drain(self, most: int | None = None) -> int:
        """Run to the end, or beyond ``most``, and return the number of bytes there were."""
        while (most is None or self.position <= most) and self._pull():
            pass
        return self.position


def _covering(pieces: Sequence[tuple[int, bytes]], offset: int) -> bytes:
    """Return the rest of the piece that holds ``offset``; the pieces follow each other without gaps."""
    if not pieces or offset < pieces[0][0]:
        return b""
    start, data = pieces[bisect_right(pieces, offset, key=lambda piece: piece[0]) - 1]
    return data[offset - start :]
