"""Reading documents that a stranger may have written: each with a budget of size, nesting and numbers.

``tomllib`` has no limits of its own: 100 KB of ``a.a.a…=1`` take it a minute and several gigabytes, deep brackets and
long integers end in exceptions that are none of TOML. So a text is scanned once, in time linear in its length, before
it is parsed. ``msgspec`` decodes JSON in C, with memory linear in its length: a limit of size is enough there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import msgspec

from rocmend.core.errors import DataError

__all__ = [
    "LIMITS",
    "MALFORMED",
    "PYTHON_BYTES",
    "Limits",
    "check_toml",
    "decode_json",
    "decompressed",
    "kind_of",
    "open_regular",
    "parse_toml",
    "read_document",
    "read_json",
    "read_toml",
]

MALFORMED = (msgspec.MsgspecError, ValueError, RecursionError)
"""What decoding JSON or msgpack raises: text that is not UTF-8 is a ``ValueError``, and no ``msgspec.DecodeError``."""

PYTHON_BYTES = 512 << 10
"""Largest Python source that is parsed in our own process: its tree takes some 300 times its size."""

_CHUNK_BYTES = 1 << 16
_SHOWN_CHARS = 300

T = TypeVar("T")


class Limits(NamedTuple):
    """What a document may take. Real ones stay far below.

    Attributes:
        size_bytes: Of the file.
        depth: Of nesting: brackets and the parts of dotted keys together.
        keys: Parts of keys in the whole document.
        digits: Of a number.
    """

    size_bytes: int = 512 << 10
    depth: int = 32
    keys: int = 50_000
    digits: int = 64


LIMITS = Limits()


def read_document(path: Path, *, max_bytes: int, subject: str = "", follow: bool = True) -> bytes:
    """Return the bytes of a regular file, without ever waiting for a writer.

    Args:
        path: What to read.
        max_bytes: A larger file is refused before it is read.
        subject: Named in errors; the path where it is empty.
        follow: Whether a symbolic link as the last part is followed; not in a stranger's tree.

    Raises:
        FileNotFoundError: It is not there.
        NotADirectoryError: What should be its folder is a file.
        DataError: A folder, FIFO, device or link, too large, or not readable.
    """
    subject = subject or str(path)
    with _reasons(subject, follow=follow), open_regular(path, subject=subject, follow=follow) as file:
        return _bounded(file.fileno(), max_bytes, subject)


def open_regular(path: Path, *, subject: str = "", follow: bool = True) -> BinaryIO:
    """Open a regular file for reading, without ever waiting for a writer.

    Args:
        path: What to open.
        subject: Named in errors; the path where it is empty.
        follow: Whether a symbolic link as the last part is followed; not in a stranger's tree.

    Raises:
        FileNotFoundError: It is not there.
        NotADirectoryError: What should be its folder is a file.
        DataError: A folder, FIFO, device or link, or not readable.
    """
    subject = subject or str(path)
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    with _reasons(subject, follow=follow):
        handle = os.open(path, flags)
    mode = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode):
        os.close(handle)
        raise DataError(subject, f"is {kind_of(mode)}, expected a regular file.")
    return os.fdopen(handle, "rb")


@contextlib.contextmanager
def _reasons(subject: str, *, follow: bool) -> Iterator[None]:
    """Turn the system's errors about a file into ours."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        if not follow and error.errno == errno.ELOOP:
            raise DataError(
                subject,
                "is a symbolic link, expected a regular file.",
                why="A link in a project may lead out of it, so it is not followed.",
                next_step="Put a copy of the file in its place.",
            ) from error
        raise DataError(subject, f"cannot be read: {error.strerror}.") from error
    except ValueError as error:  # a NUL in the path
        raise DataError(subject, f"cannot be read: {error}.") from error


def _bounded(handle: int, max_bytes: int, subject: str) -> bytes:
    status = os.fstat(handle)
    if status.st_size > max_bytes:
        raise _too_large(subject, max_bytes)
    parts: list[bytes] = []
    left = max_bytes + 1  # a file may grow, or be of those in /proc that say nothing of their size
    while left > 0 and (part := os.read(handle, min(left, max(status.st_size, _CHUNK_BYTES)))):
        parts.append(part)
        left -= len(part)
    if not left:
        raise _too_large(subject, max_bytes)
    return b"".join(parts)


def kind_of(mode: int) -> str:
    """Return what something that is no regular file is, in words, by its mode."""
    kinds = ((stat.S_ISDIR, "a directory"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"))
    return next((words for test, words in kinds if test(mode)), "a device")


def _too_large(subject: str, max_bytes: int) -> DataError:
    return DataError(subject, f"is larger than {max_bytes:,} bytes.", why="A document of its kind is far smaller.")


# -- TOML


def read_toml(path: Path, *, subject: str = "", limits: Limits = LIMITS, follow: bool = True) -> dict[str, Any]:
    """Return the document in a TOML file.

    Raises:
        FileNotFoundError: It is not there.
        NotADirectoryError: What should be its folder is a file.
        DataError: See ``read_document`` and ``parse_toml``.
    """
    data = read_document(path, max_bytes=limits.size_bytes, subject=subject, follow=follow)
    return parse_toml(data, subject or str(path), limits=limits)


def parse_toml(data: bytes | str, subject: str, *, limits: Limits = LIMITS) -> dict[str, Any]:
    """Return the document in a TOML text.

    Raises:
        DataError: It is not UTF-8 or not TOML, with its line; or over a limit.
    """
    if len(data) > limits.size_bytes:
        raise _too_large(subject, limits.size_bytes)
    try:
        text = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError as error:
        raise DataError(subject, f"is not UTF-8 text: {error.reason} at byte {error.start}.") from error
    check_toml(text, subject, limits=limits)
    import tomllib  # start-up time counts where nothing is parsed

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # an impossible date is a plain ValueError
        raise DataError(
            subject, f"is not TOML: {_short(error)}.", next_step="See https://toml.io for the syntax."
        ) from error


_GRAMMAR = r'''
      (?P<multi>"""(?:[^"\\]|\\(?s:.)|"(?!""))*+"{3,5}|\'\'\'(?:[^\']|\'(?!\'\'))*+\'{3,5})
    | (?P<text>"(?:[^"\\\n]|\\[^\n])*+"|\'[^\'\n]*+\')
    | (?P<skip>\#[^\n]*+|[ \t]++)
    | (?P<word>[A-Za-z0-9_+\-:]++)
    | (?P<mark>[\[\]{}=.,\n])
    '''
"""The tokens of TOML. Where none fits, the text is not TOML, and a parser stops there, too."""


def check_toml(text: str, subject: str, *, limits: Limits = LIMITS) -> None:
    """Refuse a TOML text that a parser would take too much time, memory or recursion for.

    Nothing is said of a text that is no TOML: the parser stops where this does.

    Raises:
        DataError: It is over a limit; the line is named.
    """
    match = re.compile(_GRAMMAR, re.VERBOSE).match  # re keeps what it compiled
    at, keys, nesting = 0, 0, _Nesting()
    size = len(text)
    while at < size:
        token = match(text, at)
        if token is None:
            if text[at] == "\r":
                at += 1
                continue
            return
        kind = token.lastgroup
        if kind == "mark":
            keys += nesting.read(text[at])
            if nesting.depth > limits.depth:
                raise _over(subject, text, at, f"nests deeper than {limits.depth} tables, arrays and parts of keys")
            if keys > limits.keys:
                raise _over(subject, text, at, f"has more than {limits.keys:,} keys")
        elif kind == "word" and text[at] in "+-0123456789" and not nesting.key and token.end() - at > limits.digits:
            raise _over(subject, text, at, f"has a number of more than {limits.digits} digits")
        at = token.end()


class _Nesting:
    """How deep a place lies: in brackets, in the parts of the keys before them, and in a table's header.

    Attributes:
        depth: At this place.
        key: Whether a key is read here, not a value.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.key = True
        self._table = 0  # depth of the table that the lines belong to
        self._in_header = False
        self._open: list[tuple[str, int]] = []  # brackets of values, with the depth within each

    def read(self, mark: str) -> int:
        """Go past a mark and return how many parts of keys it stands for."""
        if mark == "." and self.key:
            self.depth += 1
            return 1
        if mark == "=":
            self.key = False
            return 1
        if mark == "[" and self.key and not self._open:
            if self._in_header:  # the second bracket of [[name]]
                return 0
            self._in_header = True
            self.depth = 1
            return 1
        if mark in "[{":
            self.depth += 1
            self._open.append((mark, self.depth))
            self.key = mark == "{"
        elif mark in "]}" and self._open:
            self.depth = self._open.pop()[1] - 1
            self.key = False
        elif mark == "," and self._open:
            bracket, self.depth = self._open[-1]
            self.key = bracket == "{"
        elif mark == "\n" and not self._open:
            if self._in_header:
                self._table, self._in_header = self.depth, False
            self.depth = self._table
            self.key = True
        return 0


def _over(subject: str, text: str, at: int, what: str) -> DataError:
    return DataError(
        subject,
        f"line {text.count(chr(10), 0, at) + 1} {what}.",
        why="No real document does, and reading it could take all of the memory.",
    )


def _short(error: Exception) -> str:
    words = str(error)
    return words if len(words) <= _SHOWN_CHARS else f"{words[:_SHOWN_CHARS]}…"


# -- JSON


def read_json(path: Path, kind: type[T], *, max_bytes: int, what: str = "JSON", follow: bool = True) -> T:
    """Return the document in a JSON file.

    Args:
        path: What to read.
        kind: The type that it must have.
        max_bytes: A larger file is refused before it is read.
        what: The kind of document, for errors.
        follow: Whether a symbolic link as the last part is followed.

    Raises:
        FileNotFoundError: It is not there.
        NotADirectoryError: What should be its folder is a file.
        DataError: See ``read_document`` and ``decode_json``.
    """
    data = read_document(path, max_bytes=max_bytes, follow=follow)
    return decode_json(data, kind, subject=str(path), what=what)


def decode_json(data: bytes | str, kind: type[T], *, subject: str, what: str = "JSON") -> T:
    """Return the value that a JSON text of bounded size holds.

    Raises:
        DataError: It is not JSON, is nested too deeply, holds a number of thousands of digits or is not of the type.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except MALFORMED as error:
        raise DataError(subject, f"is no {what}: {_short(error)}.") from error


# -- zstd

_WINDOW_BYTES = 128 << 20


def decompressed(data: bytes, max_bytes: int) -> bytes:
    """Return what was compressed with zstd. The size that a frame says it has is not believed.

    Raises:
        ValueError: It is damaged, or unpacks to more than ``max_bytes``.
    """
    import zstandard  # start-up time counts where nothing is unpacked

    parts: list[bytes] = []
    left = max_bytes
    try:
        with zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES).stream_reader(data) as stream:
            while part := stream.read(1 << 20):
                left -= len(part)
                if left < 0:
                    raise ValueError(f"it unpacks to more than {max_bytes:,} bytes")
                parts.append(part)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    return b"".join(parts)
