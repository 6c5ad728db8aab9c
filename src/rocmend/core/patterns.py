"""Regular expressions of others, searched in time that grows with the text and no faster: by RE2.

A pattern in a knowledge entry, an experiment, a phase set or on the command line comes from whoever wrote it. Python's
``re`` backtracks: ``(?:.|.|.)`` twenty-one times over takes it minutes on one line. RE2 has no look-around and no back
references, and needs neither a checker nor a limit on the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

from rocmend.core.errors import UnitError

MAX_PATTERN_CHARS = 1000
MAX_PROGRAM = 2000
"""RE2's worst case is its program's size times the text's length; patterns that people write need some dozens."""

_EVERY_LINE = "(?m)"
_ESCAPED = re.compile(r"\\(?![1-9Z])(?s:.)")
_NOT_IN_RE2 = (
    ("(?=", "look-around"),
    ("(?!", "look-around"),
    ("(?<=", "look-around"),
    ("(?<!", "look-around"),
    ("(?P=", "back references"),
    ("(?>", "atomic groups"),
    (r"\Z", r"\Z (write \z)"),
    *((rf"\{digit}", "back references") for digit in range(1, 10)),
)


class PatternError(UnitError):
    """A regular expression that is malformed, or that RE2 does not have the syntax for."""

    code = "bad-pattern"

    def __init__(self, pattern: str, reason: str, *, next_step: str = "") -> None:
        super().__init__("regular expression", f"{pattern[:60]!r}: {reason}.", next_step=next_step)
        self.reason = reason


class Match(Protocol):
    """Where a pattern was found."""

    def group(self, group: int = 0, /) -> str | None:
        """Return the text of a group; None where it took no part."""


class Pattern:
    """A compiled pattern.

    Attributes:
        source: As it was written.
        groups: Number of its groups.
    """

    __slots__ = ("_compiled", "groups", "source")

    def __init__(self, source: str, compiled: Any) -> None:
        self.source = source
        self.groups: int = compiled.groups
        self._compiled = compiled

    def search(self, text: str) -> Match | None:
        """Return the first, leftmost match."""
        found: Match | None = self._compiled.search(_encodable(text))
        return found

    def finditer(self, text: str) -> Iterator[Match]:
        """Yield the matches, left to right, without overlaps."""
        yield from self._compiled.finditer(_encodable(text))


def _encodable(text: str) -> str:
    """Return text without lone surrogates, which stand for bytes that were no valid text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str, *, lines: bool = False) -> Pattern:
    r"""Compile a pattern.

    Args:
        pattern: RE2's syntax: Python's without look-around and back references; ``\d``, ``\w`` and ``\b`` are ASCII.
        lines: ``^`` and ``$`` match at every line.

    Raises:
        PatternError: It is malformed or too large.

    Source:
        https://github.com/google/re2/wiki/Syntax
    """
    import re2  # a command that searches nothing does not load it

    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError(pattern, f"{len(pattern)} characters; at most {MAX_PATTERN_CHARS} are allowed")
    options = re2.Options()
    options.log_errors = False
    try:
        compiled = re2.compile(f"{_EVERY_LINE}{pattern}" if lines else pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise PatternError(pattern, _reason(error, pattern), next_step=_hint(pattern)) from None
    if compiled.programsize > MAX_PROGRAM:
        raise PatternError(pattern, f"it is too large when it is compiled ({compiled.programsize} steps)")
    return Pattern(pattern, compiled)


def _reason(error: Exception, pattern: str) -> str:
    """Return RE2's message, which comes as bytes, of the pattern as it was written."""
    said = error.args[0] if error.args else ""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(error)
    return text.replace(f"{_EVERY_LINE}{pattern}", pattern)


def _hint(pattern: str) -> str:
    signs = _ESCAPED.sub("", pattern)
    for sign, name in _NOT_IN_RE2:
        if sign in signs:
            return f"RE2, which searches it, has no {name}: https://github.com/google/re2/wiki/Syntax."
    return ""
