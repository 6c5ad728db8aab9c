"""Finding marks in data that passes once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from rocmend.codeobject.reader import Reader


class Scanner:
    """Finds byte strings in ascending order; the caller can jump ahead over what it has understood.

    Args:
        reader: Where to look.
        marks: What to look for.
    """

    def __init__(self, reader: Reader, marks: Sequence[bytes]) -> None:
        self._reader = reader
        self._marks = marks
        self._overlap = max(len(mark) for mark in marks) - 1
        self._start = self._end = 0
        self._hits: list[tuple[int, bytes]] = []

    def find(self, offset: int, end: int) -> tuple[int, bytes] | None:
        """Return the first mark that begins in ``[offset, end)`` and its offset, or None."""
        while offset < end:
            if not self._start <= offset < self._end and not self._load(offset):
                return None
            index = bisect_left(self._hits, (offset, b""))
            if index < len(self._hits):
                hit = self._hits[index]
                return hit if hit[0] < end else None
            offset = self._end
        return None

    def _load(self, offset: int) -> bool:
        block = self._reader.block_at(offset)
        self._start, self._end = offset, offset + len(block)
        following = self._reader.read(self._end, self._overlap) if block else b""
        data = block + following
        self._hits = sorted(
            (offset + at, mark) for mark in self._marks for at in _occurrences(data, mark) if at < len(block)
        )
        return bool(block)


def _occurrences(data: bytes, mark: bytes) -> list[int]:
    found = []
    at = data.find(mark)
    while at >= 0:
        found.append(at)
        at = data.find(mark, at + 1)
    return found
