"""Output of an attempt: kept within bounds, split into lines, searched for lines that mean something.

Everything here works on the chunks that reads return, not on lines: a run that prints ten thousand lines a second costs
its supervisor next to nothing.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from rocmend.core.files import naming, open_private

MAX_LINE_BYTES = 1 << 16
"""A line longer than this is looked at in pieces."""

_TEXT_BYTES = 1 << 15
_HIT_BYTES = 2000
_MAX_HITS = 64
_DIGITS = b"0123456789"
_MAX_SHAPES = 4096
_MAX_SHAPE_BYTES = 512


class OutputSummary(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an attempt printed.

    Attributes:
        bytes: How much, of both streams.
        lines: How many lines.
        dropped_bytes: What was not kept, between the head and the tail.
        head: The first 32 KiB of what was printed, both streams in order of arrival.
        tail: The last 32 KiB; empty where the head is everything.
        log: File with the kept output, each line with its time and stream; empty where none was asked for.
    """

    bytes: int = 0
    lines: int = 0
    dropped_bytes: int = 0
    head: str = ""
    tail: str = ""
    log: str = ""


class OutputKeeper:
    """Keeps the head and the tail of what comes, and counts the rest.

    Args:
        max_bytes: Kept in all, in memory no more than half of it.
        log: File to write to; its head as it comes, its tail at the end. None for no file.
    """

    def __init__(self, max_bytes: int, log: Path | None = None) -> None:
        self._half = max(1, max_bytes // 2)
        self._head_left = self._half
        self._tail: collections.deque[tuple[float, str, bytes]] = collections.deque()
        self._tail_bytes = 0
        self._text_head = bytearray()
        self._dropped = self.bytes = self.lines = 0
        self._log = log
        self._file = None
        self._open_line = ""
        if log is not None:
            self._file = os.fdopen(open_private(log, os.O_WRONLY | os.O_TRUNC), "wb")

    def add(self, time_ms: float, stream: str, data: bytes) -> None:
        """Take in what a read returned."""
        self.bytes += len(data)
        self.lines += data.count(b"\n")
        if len(self._text_head) < _TEXT_BYTES:
            self._text_head += data[: _TEXT_BYTES - len(self._text_head)]
        if self._head_left > 0:
            part, data = data[: self._head_left], data[self._head_left :]
            self._head_left -= len(part)
            self._write(time_ms, stream, part)
        if data:
            self._tail.append((time_ms, stream, data))
            self._tail_bytes += len(data)
            while self._tail_bytes > self._half:
                time_0, stream_0, first = self._tail.popleft()
                over = min(self._tail_bytes - self._half, len(first))
                self._dropped += over
                self._tail_bytes -= over
                if over < len(first):
                    self._tail.appendleft((time_0, stream_0, first[over:]))

    def _write(self, time_ms: float, stream: str, data: bytes) -> None:
        """Write a chunk to the log, each line behind its time and stream."""
        if self._file is None or self._log is None or not data:
            return
        prefix = f"[{time_ms / 1000:11.3f} {stream[3:4]}] ".encode()
        if self._open_line != stream:
            data = (b"\n" if self._open_line else b"") + prefix + data
        ends = data.endswith(b"\n")
        body = data[:-1] if ends else data
        lead = 1 if body.startswith(b"\n" + prefix) else 0
        with naming(self._log):
            self._file.write(body[:lead] + body[lead:].replace(b"\n", b"\n" + prefix) + (b"\n" if ends else b""))
        self._open_line = "" if ends else stream

    def finish(self) -> OutputSummary:
        """Write the tail, close the file, and return what was seen."""
        self._finish_log()
        tail = b"".join(data for _, _, data in self._tail)[-_TEXT_BYTES:] if self.bytes > len(self._text_head) else b""
        if self.bytes > len(self._text_head) and len(tail) < _TEXT_BYTES and not self._dropped:
            tail = self._last_bytes(tail)
        return OutputSummary(
            self.bytes,
            self.lines,
            self._dropped,
            bytes(self._text_head).decode(errors="replace"),
            tail.decode(errors="replace"),
            "" if self._log is None else str(self._log),
        )

    def _finish_log(self) -> None:
        if self._file is None or self._log is None:
            return
        file = self._file
        try:
            with naming(self._log):
                if self._dropped:
                    file.write(b"\n" if self._open_line else b"")
                    file.write(f"[… {self._dropped} bytes were not kept …]\n".encode())
                    self._open_line = ""
                for chunk in self._tail:
                    self._write(*chunk)
                file.flush()
                with contextlib.suppress(OSError):
                    os.fsync(file.fileno())
        finally:
            self._file = None
            with naming(self._log):
                file.close()

    def _last_bytes(self, tail: bytes) -> bytes:
        """Complete a short tail from the log's end, where there is one (the tail began inside the kept head)."""
        if self._log is None:
            return tail
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - 2 * _TEXT_BYTES))
            return file.read()[-_TEXT_BYTES:]


class Hit(msgspec.Struct, frozen=True):
    """A line that holds one of the words searched for."""

    offset: int
    line: str


class LineScanner:
    """Gathers whole lines of one stream.

    Args:
        max_line_bytes: A line longer than this is given in pieces.
    """

    def __init__(self, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._rest = b""

    def feed(self, data: bytes) -> bytes:
        """Take in a chunk; return the whole lines that are there now."""
        data = self._rest + data if self._rest else data
        cut = data.rfind(b"\n") + 1
        if len(data) - cut > self._max:
            cut = len(data)
        self._rest = data[cut:]
        return data[:cut]

    def rest(self) -> bytes:
        """Return, and forget, the line that has not ended."""
        rest, self._rest = self._rest, b""
        return rest

    @property
    def unfinished(self) -> bytes:
        """The line that has not ended."""
        return self._rest


class Sieve:
    """Takes out the lines that hold none of some words, fast where lines are alike but for their digits.

    What is left of a line without its digits is remembered once it is known to hold no word; a talkative program has
    few such shapes, so that most of its lines are never searched.

    Args:
        words: What later searches look for.
    """

    def __init__(self, words: Iterable[bytes]) -> None:
        self._words = tuple({word.translate(None, _DIGITS) for word in words})
        self._clear: set[bytes] = set()

    def keep(self, block: bytes) -> bytes:
        """Return the lines of a block that may hold a word, in order."""
        shapes = block.translate(None, _DIGITS).split(b"\n")
        fresh = set(shapes) - self._clear
        if not fresh:
            return b""
        joined = b"\n".join(fresh)
        found = [word for word in self._words if word in joined]
        holding = {shape for shape in fresh if any(word in shape for word in found)} if found else set()
        self._remember(fresh - holding)
        if not holding:
            return b""
        return b"".join(
            line + b"\n" for line, shape in zip(block.split(b"\n"), shapes, strict=True) if shape in holding
        )

    def _remember(self, shapes: set[bytes]) -> None:
        if len(self._clear) + len(shapes) > _MAX_SHAPES:
            self._clear.clear()
        for shape in itertools.islice(shapes, _MAX_SHAPES):
            if len(shape) <= _MAX_SHAPE_BYTES:
                self._clear.add(shape)


def find_lines(block: bytes, words: Sequence[bytes], max_hits: int = _MAX_HITS) -> list[Hit]:
    """Return the lines of a block that hold a word, in order, each once; of many with one word the first and the last.

    Args:
        block: Whole lines.
        words: What to look for, exactly.
        max_hits: Lines looked at for each word.
    """
    starts: dict[int, int] = {}
    for word in words:
        for at in _positions(block, word, max_hits):
            start = max(block.rfind(b"\n", 0, at), block.rfind(b"\r", 0, at)) + 1
            starts.setdefault(max(start, at - _HIT_BYTES), at)
    return [Hit(start, _line(block, start, starts[start])) for start in sorted(starts)]


def _positions(block: bytes, word: bytes, max_hits: int) -> Iterator[int]:
    at = block.find(word)
    count = 0
    while at >= 0 and count < max_hits:
        yield at
        count += 1
        end = block.find(b"\n", at)
        at = block.find(word, end) if end >= 0 else -1
    if at >= 0:
        yield block.rfind(word)


def _line(block: bytes, start: int, at: int) -> str:
    end = block.find(b"\n", at)
    end = len(block) if end < 0 else end
    return block[start : min(end, at + _HIT_BYTES)].decode(errors="replace").strip()
