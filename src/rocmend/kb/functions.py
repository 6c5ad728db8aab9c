"""The functions that a predicate may call.

Each takes the reading (for notes) and its arguments' values, none of them unknown, and returns a value or UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rocmend.core.errors import DataError
from rocmend.core.patterns import compile_pattern
from rocmend.kb.reading import UNKNOWN, Reading, kind_of
from rocmend.kb.values import equal, is_number
from rocmend.kb.versions import Version, parse_version

MAX_NUMBER_CHARS = 40


def version(reading: Reading, value: Any) -> Any:
    """Return the version that a text writes; null stays null."""
    if value is None or isinstance(value, Version):
        return value
    if not isinstance(value, str):
        return reading.note(f"version() takes a text, not {kind_of(value)}")
    try:
        return parse_version(value)
    except DataError as error:
        return reading.note(error.message)


def matches(reading: Reading, value: Any, pattern: str) -> Any:
    """Return whether a regular expression occurs in a text; in null nothing does."""
    if value is None:
        return False
    if not isinstance(value, str):
        return reading.note(f"matches() takes a text, not {kind_of(value)}")
    return compile_pattern(pattern).search(value) is not None


def length(reading: Reading, value: Any) -> Any:
    """Return the length of a text, list or mapping; of null, null."""
    if value is None:
        return None
    if isinstance(value, str | list | tuple | dict):
        return len(value)
    return reading.note(f"len() takes a text, list or mapping, not {kind_of(value)}")


def any_in(reading: Reading, items: Any, container: Any) -> Any:
    """Return whether an element of the first list is in the second; of mappings, the keys count."""
    if items is None or container is None:
        return False
    if not (isinstance(items, list | tuple | dict) and isinstance(container, list | tuple | dict)):
        return reading.note("any_in() takes two lists")
    unknown = False
    for item in items:
        for other in container:
            value = UNKNOWN if item is UNKNOWN or other is UNKNOWN else equal(item, other)
            if value is True:
                return True
            unknown = unknown or value is UNKNOWN
    return UNKNOWN if unknown else False


def lower(reading: Reading, value: Any) -> Any:
    """Return a text in lower case; null stays null."""
    if value is None or isinstance(value, str):
        return None if value is None else value.lower()
    return reading.note(f"lower() takes a text, not {kind_of(value)}")


def starts(reading: Reading, value: Any, prefix: str) -> Any:
    """Return whether a text starts with a prefix; null does not."""
    if value is None or isinstance(value, str):
        return False if value is None else value.startswith(prefix)
    return reading.note(f"starts() takes a text, not {kind_of(value)}")


def integer(reading: Reading, value: Any) -> Any:
    """Return the whole number that a text writes (``0x83`` too); a fraction is cut; null stays null."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    try:
        if is_number(value):
            return int(value)
        if isinstance(value, str) and len(value) <= MAX_NUMBER_CHARS:
            text = value.strip().lower()
            return int(text, 0 if text.lstrip("+-").startswith(("0x", "0o", "0b")) else 10)
    except (ValueError, OverflowError):
        pass
    shown = repr(value[:MAX_NUMBER_CHARS]) if isinstance(value, str) else kind_of(value)
    return reading.note(f"int() finds no number in {shown}")


Function = Callable[..., Any]
FUNCTIONS: dict[str, tuple[Function, int]] = {
    "version": (version, 1),
    "matches": (matches, 2),
    "len": (length, 1),
    "any_in": (any_in, 2),
    "lower": (lower, 1),
    "starts": (starts, 2),
    "int": (integer, 1),
}
"""Name to (function, number of arguments); ``known`` is a node of its own, as it takes unknowns."""

TEXT_ARGUMENT = {"matches": 1, "starts": 1}
"""Functions whose argument at this place must be a literal text, checked when the predicate is compiled."""
