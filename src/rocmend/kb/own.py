"""What rocmend itself printed, in a text that is explained: its reports quote errors, and its sentences name them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cached_property

from rocmend.kb.load import Knowledge

_REPORT = re.compile(
    rb"^(?P<report>\W*[\d,]+ known errors? (?:in [\d,]+ lines?|of which this may be a part)\.)"
    rb"|^(?P<json>\s*\{?\s*\"schema_version\": ?\d+,)"
    rb"|^(?P<ended>.?rocmend kb show ID.? prints an entry|\})",
    re.MULTILINE,
)
"""Where a report of ``rocmend explain``, or any of rocmend's in JSON, begins and ends."""
_HINTS = (b" known error", b'"schema_version"')
"""What stands in the beginnings; texts without are not looked at further."""
_QUOTED_JSON = re.compile(rb"\s*\"(?:line|raw)\": \"")
_QUOTED = re.compile(rb" {4}\S")
_QUOTED_MARKDOWN = b"\n```\n"

_WORD = re.compile(r"[^\W_]+")
_QUOTE = re.compile(r"\"[^\"]+(?:\"|$)|`[^`]+(?:`|$)")
"""What a sentence quotes is no sentence."""
_ID = re.compile(r"[a-z0-9]+(?:-[a-z0-9.]+)+")
_LEAST_TITLE = 15
_RUN = 4
"""Words in a row that are compared."""
_LEAST = 3
"""Runs that must be rocmend's,"""
_LEAST_QUOTING = 2
"""of a line with a quotation,"""
_SHARE = 0.5
"""and the share of a line's runs."""


class Place(StrEnum):
    """Where a line stands."""

    OUTSIDE = "outside"
    QUOTED = "quoted"
    """In a report, which quotes it."""
    OWN = "own"
    """In a report, whose own words it is."""


class Reports:
    """Tells which lines of a text are of rocmend's reports; its blocks are given in order."""

    def __init__(self) -> None:
        self._inside = ""
        self._spans: list[tuple[int, str]] = []
        self._block = b""

    def take(self, block: bytes) -> None:
        """Take in the next block of lines."""
        self._block = block
        self._spans = [(0, self._inside)] if self._inside else []
        if not self._inside and not any(hint in block for hint in _HINTS):
            return
        for start, kind in _edges(block):
            if kind != "ended":
                self._inside = self._inside or kind
            elif (block[start : start + 1] == b"}") == (self._inside == "json"):
                self._inside = ""
            self._spans.append((start, self._inside))

    def place(self, offset: int) -> Place:
        """Return where the line at an offset in the block stands."""
        inside = ""
        for start, kind in self._spans:
            if start > offset:
                break
            inside = kind
        if not inside:
            return Place.OUTSIDE
        if inside == "json":
            quoted = _QUOTED_JSON.match(self._block, offset) is not None
        else:
            before = self._block[max(0, offset - len(_QUOTED_MARKDOWN)) : offset]
            quoted = _QUOTED.match(self._block, offset) is not None or before == _QUOTED_MARKDOWN
        return Place.QUOTED if quoted else Place.OWN


def _edges(block: bytes) -> Iterator[tuple[int, str]]:
    for found in _REPORT.finditer(block):
        yield found.start(), found.lastgroup or ""


class OwnSentences:
    """Tells sentences of the entries from errors.

    Args:
        knowledge: The entries.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._entries = tuple(knowledge.entries.values())
        self._ids = knowledge.entries.keys()

    @cached_property
    def _text(self) -> str:
        """All words of the entries but what they quote."""
        parts: list[str] = []
        for entry in self._entries:
            parts += (entry.title, entry.headline, entry.body)
            parts += (one.meaning for one in entry.signature)
            parts += (text for one in entry.remedy for text in (one.text, one.risk_note))
        prose = (piece for part in parts for piece in _QUOTE.split(part))
        return f" {' | '.join(' '.join(_words(piece)) for piece in prose if piece)} "

    @cached_property
    def _titles(self) -> str:
        """The titles as they are written, a line each."""
        return "".join(f"\n{title}" for entry in self._entries for title in (entry.title, entry.headline) if title)

    def holds(self, line: str) -> bool:
        """Whether a line is a sentence of an entry, or a piece of one, rather than an error as it is printed."""
        if not self._ids.isdisjoint(_ID.findall(line)):
            return True
        plain = line.strip("#*>|- ")
        if '"' in plain and len(plain) >= _LEAST_TITLE and f"\n{plain}" in self._titles:
            return True
        pieces = [_words(piece) for piece in _QUOTE.split(line)]
        runs = [" ".join(piece[at : at + _RUN]) for piece in pieces for at in range(len(piece) - _RUN + 1)]
        own = sum(f" {run} " in self._text for run in runs)
        return own >= (_LEAST_QUOTING if _QUOTE.search(line) else _LEAST) and own >= _SHARE * len(runs)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
