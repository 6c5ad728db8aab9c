"""Lines of a text with their places, and text whose characters are the file's bytes."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

__all__ = ["Line", "Lines", "shown"]


class Line(NamedTuple):
    """A line: its first byte, the byte after its last one, and the first byte of the next line."""

    start: int
    end: int
    next: int


def shown(text: str) -> str:
    """Return text as a reader knows it: views hold one character for each byte of the file."""
    return text.encode("latin-1").decode("utf-8", "replace")


class Lines:
    """The lines of a file.

    Attributes:
        data: The file's bytes.
        text: The same with one character for each byte, so that places in it are places in the file.
        all: The lines, in order.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.text = data.decode("latin-1")
        self.all = tuple(_split(self.text))
        self._starts = [line.start for line in self.all]

    def number(self, at: int) -> int:
        """Return the index of the line that holds a place, from 0."""
        return max(0, bisect_right(self._starts, at) - 1)

    def at(self, at: int) -> Line:
        """Return the line that holds a place."""
        return self.all[self.number(at)]

    def covering(self, start: int, end: int) -> Line:
        """Return the whole lines that hold ``start`` up to ``end`` as one."""
        last = self.at(max(start, end - 1))
        return Line(self.at(start).start, last.end, last.next)

    def indent(self, at: int) -> str:
        """Return the blanks that the line of a place begins with."""
        line = self.at(at)
        text = self.text[line.start : line.end]
        return text[: len(text) - len(text.lstrip(" \t"))]

    @property
    def newline(self) -> str:
        """Return how the file ends its lines, by its first one."""
        return "\r\n" if self.all and self.text[self.all[0].end : self.all[0].next] == "\r\n" else "\n"


def _split(text: str) -> list[Line]:
    made: list[Line] = []
    start = 3 if text.startswith("\xef\xbb\xbf") else 0
    while start < len(text):
        at = text.find("\n", start)
        if at < 0:
            made.append(Line(start, len(text), len(text)))
            break
        made.append(Line(start, at - 1 if at > start and text[at - 1] == "\r" else at, at + 1))
        start = at + 1
    return made or [Line(0, 0, 0)]
