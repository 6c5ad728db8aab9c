"""Where ``#ifdef USE_ROCM`` may stand around an edit, and how far a gated region must reach.

A gate is made of whole lines. It may not stand inside a comment, a string, a directive that is continued, a line that a
backslash continues, or the arguments of a macro (directives there are undefined in the language, and MSVC refuses
them); and what it holds has to be balanced: a conditional is either inside the region whole, or the region is inside
one of its branches.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rocmend.core.errors import UnitError
from rocmend.port.cuda.file import CudaFile
from rocmend.port.cuda.lexer import Kind
from rocmend.port.cuda.structure import call_at
from rocmend.port.edits import compatible
from rocmend.port.records import Edit

__all__ = ["Region", "cut_before", "regions"]

NEAR_LINES = 2
"""Regions with this many lines between them, or fewer, become one."""
_SPLICED = re.compile(rb"\\[ \t]*\r?\n\Z")
_MACRO = re.compile(rb"[A-Z][A-Z0-9_]{2,}")


class Region(NamedTuple):
    """Whole lines, and the edits of their ROCm side.

    Attributes:
        start: Offset of the first line's first byte.
        end: Offset after the last line's end; equal to ``start`` where lines are only added.
        edits: In order.
    """

    start: int
    end: int
    edits: tuple[Edit, ...]


class _Lines:
    """Where lines begin, and where a directive may be put between them."""

    def __init__(self, file: CudaFile) -> None:
        self.file = file
        self.starts = file.lexed.line_starts
        self.size = len(file.data)
        self.closed = _closed(file)
        self._closed_starts = [start for start, _ in self.closed]
        self._directives = _directives(file)

    def start(self, offset: int) -> int:
        return self.starts[bisect.bisect_right(self.starts, offset) - 1]

    def after(self, offset: int) -> int:
        """Return where the line after an offset's line begins."""
        index = bisect.bisect_right(self.starts, offset)
        return self.starts[index] if index < len(self.starts) else self.size

    def holder(self, cut: int) -> tuple[int, int] | None:
        """Return the widest piece that a cut at a line's start would fall into; None where it may be made."""
        if cut in (0, self.size):
            return None
        index = bisect.bisect_left(self._closed_starts, cut) - 1
        if index >= 0 and cut < self.closed[index][1]:
            return self.closed[index]
        if _SPLICED.search(self.file.data, max(0, cut - 64), cut):
            before = self.start(cut - 1)
            return before, self.after(cut)
        return None

    def widened(self, start: int, end: int) -> tuple[int, int]:
        """Return the smallest whole lines around bytes between which directives may stand on both sides."""
        start, end = self.start(start), self.after(max(start, end - 1))
        while True:
            held = self.holder(start) or self.holder(end)
            if held is None:
                return start, end
            start, end = min(start, self.start(held[0])), max(end, self.after(max(held[0], held[1] - 1)))

    def balanced(self, start: int, end: int) -> tuple[int, int]:
        """Return the smallest gateable lines around bytes that hold a conditional whole or nothing of its lines.

        Raises:
            UnitError: They hold a line of a conditional that never ends.
        """
        start, end = self.widened(start, end)
        while True:
            grown = start, end
            for number, group in enumerate(self.file.groups):
                if group.start >= end or group.end <= start or (start <= group.start and group.end <= end):
                    continue
                if any(start <= at < end for at in self._directives[number]):
                    if group.last < 0:
                        line = self.file.directives[group.first].line
                        raise UnitError(
                            "port gate",
                            f"the conditional that line {line} of {self.file.path} opens never ends.",
                            next_step="Close it in this file, or port the file by hand.",
                        )
                    grown = min(grown[0], group.start), max(grown[1], group.end)
            if grown == (start, end):
                return start, end
            start, end = self.widened(*grown)


@lru_cache(maxsize=2)
def _lines(file: CudaFile) -> _Lines:
    """Return a file's lines: asked for once for each comment, made once."""
    return _Lines(file)


def _directives(file: CudaFile) -> list[list[int]]:
    """Return where each conditional group's own directives begin."""
    found = [[file.directives[number].start for number in (one.first, one.last) if number >= 0] for one in file.groups]
    for branch in file.branches:
        found[branch.group].append(file.directives[branch.directive].start)
    return found


def _closed(file: CudaFile) -> list[tuple[int, int]]:
    """Return the pieces over several lines that a directive may not cut, merged where they overlap, in order."""
    data = file.data
    found = [(one.start, one.end) for one in file.comments if b"\n" in data[one.start : one.end]]
    found += [
        (one.start, one.end)
        for one in file.tokens
        if one.kind in (Kind.STRING, Kind.CHARACTER) and b"\n" in data[one.start : one.end]
    ]
    found += [(one.start, one.end) for one in file.directives if data.count(b"\n", one.start, one.end) > 1]
    found += _macro_calls(file)
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _macro_calls(file: CudaFile) -> Iterable[tuple[int, int]]:
    tokens, partner = file.tokens, file.partner
    for name in file.all_names:
        if not _MACRO.fullmatch(name) and not any(one.parameters is not None for one in file.macros.get(name, ())):
            continue
        for index in file.names(name, shared=False):
            if tokens[index].directive >= 0:
                continue
            call = call_at(tokens, partner, index)
            if call is not None and tokens[call.opened].line != tokens[call.closed].line:
                yield call.start, call.end


def regions(file: CudaFile, edits: Iterable[Edit]) -> list[Region]:
    """Return the regions that hold a file's edits, in order; those that are near are one.

    Raises:
        UnitError: Edits contradict each other, or stand in a conditional that never ends.
    """
    ordered = compatible(edits)
    if not ordered:
        return []
    lines = _lines(file)
    made: list[Region] = []
    for edit in ordered:
        if edit.start == edit.end and _adds_lines(file, lines, edit):
            made.append(Region(edit.start, edit.start, (edit,)))
            continue
        start, end = lines.balanced(edit.start, edit.end)
        made.append(Region(start, end, (edit,)))
    return _merged(file, lines, made)


def _adds_lines(file: CudaFile, lines: _Lines, edit: Edit) -> bool:
    at_line = edit.start == lines.size or lines.start(edit.start) == edit.start
    whole = edit.text.endswith(b"\n") and (edit.start < lines.size or file.data.endswith(b"\n") or not file.data)
    return at_line and whole and lines.holder(edit.start) is None


def _merged(file: CudaFile, lines: _Lines, made: Sequence[Region]) -> list[Region]:
    result: list[Region] = []
    for region in sorted(made):
        now = region
        while result:
            last = result[-1]
            if now.start >= last.end and _apart(file, last, now):
                break
            result.pop()
            start, end = lines.balanced(min(last.start, now.start), max(last.end, now.end))
            now = Region(start, end, last.edits + now.edits)
        result.append(now)
    return result


def _apart(file: CudaFile, one: Region, other: Region) -> bool:
    """Return whether two regions stay two: far from each other, or with a directive between them."""
    if one.start == one.end and other.start == other.end:
        return one.end < other.start  # lines that are only added are no reason to repeat what stands between them
    between = file.data[one.end : other.start]
    if between.count(b"\n") > NEAR_LINES:
        return True
    return any(one.end <= directive.start < other.start for directive in file.directives)


def cut_before(file: CudaFile, offset: int) -> int:
    """Return the start of the first line at or before an offset's line before which a directive may stand."""
    lines = _lines(file)
    start = lines.start(offset)
    while (held := lines.holder(start)) is not None:
        start = lines.start(held[0])
    return start
