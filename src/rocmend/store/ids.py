"""Ids that sort by time and that a person can read."""

from __future__ import annotations

import datetime as dt
import re
import secrets

from rocmend.core.errors import DataError

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Crockford's base 32: no letter that reads as a digit, and in ASCII order, so that ids sort as their numbers do."""

_RANDOM_BITS = 30

_ID = re.compile(r"\d{8}-\d{6}-[0-9a-hjkmnp-tv-z]{8}\Z")


def is_id(text: str) -> bool:
    """Return whether a text is a whole id."""
    return _ID.match(text) is not None


def utc_time(text: str, what: str) -> dt.datetime:
    """Read an ISO time; one without a zone is UTC.

    Args:
        text: The time.
        what: Whose time it is, for the message.

    Raises:
        DataError: Not an ISO time.
    """
    try:
        time = dt.datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        raise DataError("store", f"{what} {text!r} is not an ISO time such as 2026-01-31T12:00:00Z.") from None


def lowest_id(time: dt.datetime) -> str:
    """Return the smallest text that an id of this time, in UTC, can begin with: ``20260131-120000-00``."""
    second = f"{time.year:04d}{time:%m%d-%H%M%S}"
    return f"{second}-{_base32(time.microsecond // 1000, 2)}"


def id_of(time: dt.datetime, content: str, attempt: int) -> str:
    """Return the id that follows from a record's start (UTC) and content, in place of a random one.

    Args:
        time: Its start.
        content: Its hash, in hexadecimal digits.
        attempt: How many ids that follow from it others have.
    """
    return lowest_id(time) + _base32((int(content[:16], 16) + attempt) % (1 << _RANDOM_BITS), _RANDOM_BITS // 5)


def _base32(number: int, length: int) -> str:
    return "".join(_DIGITS[number >> 5 * place & 31] for place in reversed(range(length)))


class IdMaker:
    """Makes ids: the second, two digits for the millisecond, six at random; those of one millisecond ascend."""

    def __init__(self) -> None:
        self._last = ("", 0)

    def make(self, time: dt.datetime) -> str:
        """Return a new id for a run that started at this time (UTC)."""
        start = lowest_id(time)
        before, number = self._last
        top = 1 << _RANDOM_BITS
        # a random step leaves other makers room, and half the range at first leaves this one room to ascend
        number = number + 1 + secrets.randbelow(1 << 12) if start == before else secrets.randbelow(top >> 1)
        if number >= top:
            number = secrets.randbelow(top)
        self._last = (start, number)
        return start + _base32(number, _RANDOM_BITS // 5)
