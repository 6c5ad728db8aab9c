"""What comparisons mean on JSON values, versions and UNKNOWN: total functions that never raise."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from rocmend.core.errors import DataError
from rocmend.kb.reading import UNKNOWN, Reading, kind_of
from rocmend.kb.versions import Version, parse_version

_ORDERINGS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def truth(value: Any, reading: Reading) -> Any:
    """Return True, False or UNKNOWN; a value that is no boolean is unknown, with a note."""
    if value is True or value is False or value is UNKNOWN:
        return value
    return reading.note(f"{kind_of(value)} is neither true nor false; compare it with something")


def compare(comparison: str, left: Any, right: Any, reading: Reading) -> Any:
    """Return the outcome of one comparison; see docs/how-to/write-a-knowledge-entry.md for the rules."""
    if comparison in {"in", "not in"}:
        value = _contains(right, left, reading)
        return value if comparison == "in" or value is UNKNOWN else not value
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if comparison in {"==", "!="}:
        value = equal(left, right)
        return value if comparison == "==" or value is UNKNOWN else not value
    return _ordered(comparison, left, right, reading)


def equal(left: Any, right: Any) -> Any:
    """Return whether two values are the same; values of different kinds are not."""
    if isinstance(left, Version) != isinstance(right, Version):
        left, right = _as_version(left), _as_version(right)
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, list) and isinstance(right, list) and any(item is UNKNOWN for item in (*left, *right)):
        return UNKNOWN
    try:
        return bool(left == right)
    except RecursionError:
        return UNKNOWN


def is_number(value: Any) -> bool:
    """Whether a value is a number (a boolean is none)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_version(value: Any) -> Any:
    """Read a text that is compared with a version as one; leave what is none."""
    if not isinstance(value, str):
        return value
    try:
        return parse_version(value)
    except DataError:
        return value


def _ordered(comparison: str, left: Any, right: Any, reading: Reading) -> Any:
    if left is None or right is None:
        return False
    if isinstance(left, Version) or isinstance(right, Version):
        left, right = _as_version(left), _as_version(right)
        comparable = isinstance(left, Version) and isinstance(right, Version)
    else:
        comparable = is_number(left) and is_number(right)
    if not comparable:
        hint = "; use version()" if isinstance(left, str) and isinstance(right, str) else ""
        return reading.note(f"{kind_of(left)} {comparison} {kind_of(right)} cannot be compared{hint}")
    return bool(_ORDERINGS[comparison](left, right))


def _contains(container: Any, item: Any, reading: Reading) -> Any:
    if container is UNKNOWN or (item is UNKNOWN and container != []):
        return UNKNOWN
    if container is None:
        return False
    if isinstance(container, list | tuple):
        results = [UNKNOWN if other is UNKNOWN else equal(item, other) for other in container]
        return True if True in results else (UNKNOWN if UNKNOWN in results else False)
    if isinstance(container, str | dict) and (item is None or isinstance(item, str)):
        return item is not None and item in container
    return reading.note(f"{kind_of(item)} cannot be in {kind_of(container)}")
