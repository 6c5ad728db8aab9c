"""YAML read by lines: keys, values and items with places, and nothing lost or moved.

This is no YAML parser: block mappings and sequences are told by their indentation, flow collections and scalars are
values as they are written, block scalars are places. Templates within YAML do not disturb it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rocmend.port.build.lines import Line

__all__ = ["Entry", "entries"]


class Entry(NamedTuple):
    """A line's key, item or both.

    Attributes:
        keys: The keys of the mappings around it and its own, outermost first; items of a sequence add ``[]``.
        key: Its own key; empty for an item that is a plain value.
        value: Without quotes and comment; empty where a block follows.
        start: Of the value, without a quote; where it is empty, the end of the key's colon.
        end: After the value.
        indent: Columns before the key, or before the dash of a plain item.
        line: Index of its line, from 0.
        last: Index of the last line that belongs to it: its block, or its own line.
        block: Whether the value is a block scalar (``|`` or ``>``), whose text lies from ``start`` to ``end``.
        key_start: Where the key begins; the value's start for a plain item.
        item: Whether a dash stands before it.
    """

    keys: tuple[str, ...]
    key: str
    value: str
    start: int
    end: int
    indent: int
    line: int
    last: int
    block: bool
    key_start: int
    item: bool


_DASH = re.compile(r"-(?:[ \t]+|$)")
_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s#:,\[\]{}"'&*!|>%@`-][^:#\r\n]*?|-[^\s:#][^:#\r\n]*?)[ \t]*:(?=[ \t]|$)"""
)
_BLOCK = re.compile(r"[|>][+-]?[0-9]?[+-]?[ \t]*(?:#.*)?$")
_COMMENT = re.compile(r"(?:^|[ \t])#")


def entries(text: str, lines: tuple[Line, ...]) -> tuple[Entry, ...]:
    """Return the entries of a file, in order."""
    found: list[Entry] = []
    stack: list[tuple[int, str]] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        written = text[line.start : line.end]
        bare = written.strip()
        if not bare or bare.startswith("#"):
            at += 1
            continue
        if bare.startswith(("---", "...", "%")):
            stack.clear()
            at += 1
            continue
        at = _line(text, lines, at, stack, found)
    return tuple(_with_last(found))


def _line(text: str, lines: tuple[Line, ...], at: int, stack: list[tuple[int, str]], found: list[Entry]) -> int:
    """Read one line into entries; return the index of the next line to read."""
    line = lines[at]
    column = len(text[line.start : line.end]) - len(text[line.start : line.end].lstrip(" \t"))
    item = False
    outer = column
    while dash := _DASH.match(text, line.start + column, line.end):
        # A sequence may stand at its key's own column.
        while stack and (stack[-1][0] > column or (stack[-1][0] == column and stack[-1][1] == "[]")):
            stack.pop()
        stack.append((column, "[]"))
        item = True
        outer = column
        column += len(dash.group())
    key = _KEY.match(text, line.start + column, line.end)
    if key is None:
        if item:
            start, end, value = _scalar(text, line.start + column, line.end)
            names = tuple(name for _, name in stack)
            block = bool(_BLOCK.match(text, line.start + column, line.end))
            if block:
                last = _block_end(text, lines, at, outer)
                found.append(
                    Entry(names, "", "", line.next, lines[last].end, outer, at, last, True, line.start + column, True)
                )
                return last + 1
            found.append(Entry(names, "", value, start, end, outer, at, at, False, start, True))
        return at + 1
    while stack and (
        stack[-1][0] >= column
        if stack[-1][1] != "[]"
        else stack[-1][0] > column or (stack[-1][0] == column and not item)
    ):
        stack.pop()
    name = key.group(1).strip("\"'")
    stack.append((column, name))
    names = tuple(one for _, one in stack)
    after = key.end()
    while after < line.end and text[after] in " \t":
        after += 1
    if _BLOCK.match(text, after, line.end):
        last = _block_end(text, lines, at, column)
        found.append(Entry(names, name, "", line.next, lines[last].end, column, at, last, True, key.start(), item))
        return last + 1
    start, end, value = _scalar(text, after, line.end)
    found.append(Entry(names, name, value, start, end, column, at, at, False, key.start(), item))
    return at + 1


def _scalar(text: str, start: int, end: int) -> tuple[int, int, str]:
    """Return the place and the text of a value that ends on its line."""
    written = text[start:end]
    for quote in "\"'":
        if written.startswith(quote):
            close = written.find(quote, 1)
            while close > 0 and (
                (quote == '"' and written[close - 1] == "\\")
                or (quote == "'" and written[close + 1 : close + 2] == "'")
            ):
                close = written.find(quote, close + (2 if quote == "'" else 1))
            if close > 0:
                return start + 1, start + close, written[1:close]
    comment = _COMMENT.search(written)
    bare = (written[: comment.start()] if comment else written).rstrip()
    return start, start + len(bare), bare


def _block_end(text: str, lines: tuple[Line, ...], at: int, column: int) -> int:
    """Return the index of the last line of a block scalar under a key at a column."""
    last = at
    for number in range(at + 1, len(lines)):
        written = text[lines[number].start : lines[number].end]
        if written.strip() and len(written) - len(written.lstrip(" ")) <= column:
            break
        if written.strip():
            last = number
    return last


def _with_last(found: list[Entry]) -> list[Entry]:
    """Give each entry the last line of its block."""
    made: list[Entry] = []
    for number, entry in enumerate(found):
        last = entry.last
        for at in range(number + 1, len(found)):
            other = found[at]
            deeper = other.indent > entry.indent or (other.item and not entry.item and other.indent == entry.indent)
            following = entry.item and other.item and other.keys == entry.keys
            if other.line != entry.line and (following or not deeper):
                break
            last = max(last, other.last)
        made.append(entry._replace(last=last))
    return made
