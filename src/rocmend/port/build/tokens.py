"""Strings of TOML and JSON files with the keys that they stand under, and their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rocmend.core.documents import LIMITS
from rocmend.port.nesting import MOST_NESTED, NestingError

__all__ = ["Value", "json_values", "toml_values"]


class Value(NamedTuple):
    """A value.

    Attributes:
        keys: The keys that it stands under, tables first: ``("project", "dependencies")``; items of arrays share them.
        text: A string without its quotes, escapes as they are written; another value as it is written.
        start: Of the text.
        end: After it.
        string: Whether it is a string.
    """

    keys: tuple[str, ...]
    text: str
    start: int
    end: int
    string: bool


_TOML = re.compile(
    r"""(?P<skip>[ \t\r]+|\#[^\n]*)|(?P<line>\n)
    |(?P<long>\"{3}(?:[^\\]|\\.)*?\"{3,5}|'{3}.*?'{3,5})
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'[^'\n]*')
    |(?P<sign>\[\[|\]\]|[\[\]{}=,.])
    |(?P<bare>[^\s\[\]{}=,."'\#]+(?:\.[0-9][^\s\[\]{}=,"'\#]*)?)""",
    re.VERBOSE | re.DOTALL,
)


def toml_values(text: str) -> Iterator[Value]:
    """Yield the values of a TOML file; what follows something that is no TOML is left out.

    Raises:
        RecursionError: Arrays and tables nest deeper than any real file's.
    """
    table: tuple[str, ...] = ()
    at = 3 if text.startswith("\xef\xbb\xbf") else 0
    while at < len(text):
        match = _TOML.match(text, at)
        if match is None:
            return
        if match.lastgroup in {"skip", "line"}:
            at = match.end()
        elif match.group() in {"[", "[["}:
            closing = text.find("]", match.end())
            if closing < 0:
                return
            table = tuple(
                part.strip().strip("\"'")
                for part in re.findall(r'"[^"]*"|\'[^\']*\'|[^.\s]+', text[match.end() : closing])
            )
            at = closing + len(match.group())
        else:
            names, at = _toml_key(text, at)
            if at < 0:
                return
            found: list[Value] = []
            at = _toml_value(text, at, (*table, *names), found)
            yield from found
            if at < 0:
                return


def _toml_key(text: str, at: int) -> tuple[tuple[str, ...], int]:
    names: list[str] = []
    while match := _TOML.match(text, at):
        at = match.end()
        if match.lastgroup == "skip" or match.group() == ".":
            continue
        if match.group() == "=":
            return tuple(names), at
        if match.lastgroup not in {"string", "bare"}:
            break
        names += [match.group().strip("\"'")] if match.lastgroup == "string" else match.group().split(".")
    return (), -1


def _toml_value(text: str, at: int, keys: tuple[str, ...], found: list[Value], depth: int = 0) -> int:
    """Read a value; return the place after it, -1 where there is none."""
    if depth > LIMITS.depth:
        raise RecursionError("arrays and tables nest too deeply")
    while match := _TOML.match(text, at):
        at = match.end()
        if match.lastgroup in {"skip", "line"}:
            continue
        sign = match.group()
        if sign in {"[", "[["}:
            return _toml_array(text, match.start() + 1, keys, found, depth + 1)
        if sign == "{":
            return _toml_inline(text, at, keys, found, depth + 1)
        if match.lastgroup in {"string", "long"}:
            width = 3 if match.lastgroup == "long" else 1
            start, end = match.start() + width, match.end() - width
            found.append(Value(keys, text[start:end], start, end, string=True))
            return at
        if match.lastgroup == "bare":
            found.append(Value(keys, sign, match.start(), match.end(), string=False))
            return at
        return -1
    return -1


def _toml_array(text: str, at: int, keys: tuple[str, ...], found: list[Value], depth: int) -> int:
    while match := _TOML.match(text, at):
        if match.lastgroup in {"skip", "line"} or match.group() == ",":
            at = match.end()
        elif match.group()[0] == "]":
            return match.start() + 1
        else:
            at = _toml_value(text, at, keys, found, depth)
            if at < 0:
                return -1
    return -1


def _toml_inline(text: str, at: int, keys: tuple[str, ...], found: list[Value], depth: int) -> int:
    while match := _TOML.match(text, at):
        if match.lastgroup in {"skip", "line"} or match.group() == ",":
            at = match.end()
        elif match.group() == "}":
            return match.end()
        else:
            names, at = _toml_key(text, at)
            at = _toml_value(text, at, (*keys, *names), found, depth) if at >= 0 else -1
            if at < 0:
                return -1
    return -1


_JSON = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<sign>[\[\]{}:,])|(?P<bare>[^\s\[\]{}:,"]+)',
    re.DOTALL,
)


def json_values(text: str) -> Iterator[Value]:
    """Yield the values of a JSON file, comments allowed."""
    stack: list[str] = []  # the keys of what is open
    key = ""
    pending: tuple[str, int, int] | None = None
    at = 3 if text.startswith("\xef\xbb\xbf") else 0
    while match := _JSON.match(text, at):
        at = match.end()
        sign = match.group()
        if match.lastgroup == "skip":
            continue
        if sign == ":" and pending is not None:
            key, pending = pending[0], None
            continue
        if pending is not None:
            yield Value(_path(stack, key), pending[0], pending[1], pending[2], string=True)
            pending = None
        if match.lastgroup == "string":
            pending = (sign[1:-1], match.start() + 1, match.end() - 1)
        elif sign in "[{":
            stack.append(key)
            if len(stack) > MOST_NESTED:
                raise NestingError("lists and objects")
            key = ""
        elif sign in "]}":
            key = ""
            if stack:
                stack.pop()
        elif sign == ",":
            key = ""
        elif match.lastgroup == "bare":
            yield Value(_path(stack, key), sign, match.start(), match.end(), string=False)


def _path(stack: list[str], key: str) -> tuple[str, ...]:
    return tuple(name for name in (*stack, key) if name)
