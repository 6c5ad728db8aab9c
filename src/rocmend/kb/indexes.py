"""Where packages are installed from: the dated table that entries and ``rocmend wheel choose`` read."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from rocmend.core.documents import parse_toml, read_document
from rocmend.core.records import Source

TABLE = Path(__file__).with_name("indexes.toml")
MAX_AGE_DAYS = 45
"""After this many days a row is still shown, with its age, and the lint asks for a review."""

_MAX_BYTES = 256 * 1024
_PLACEHOLDER = re.compile(r"\{index:([a-z0-9.-]+?)(?:\.(\w+))?\}")
_FIELDS = ("name", "url", "rocm", "targets", "python", "os", "ended", "read")


class Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An index that packages are installed from.

    Attributes:
        name: What it is called, in a few words.
        url: Its address, as pip takes it.
        channel: stable or nightly.
        serves: Package to its newest version there.
        rocm: The ROCm versions that its packages are for, oldest first.
        read: The day the sources were last read.
        source: Release notes and pages that the row was read from.
        targets: gfx targets that its builds have code for; empty where that was not looked up.
        python: Python versions it has wheels for; empty where that was not looked up.
        os: linux, windows.
        replaces: The index whose place it took.
        ended: The day of its last new build; None while it gets builds.
        successor: The index to use instead, where it has ended.
        note: What else one should know.
    """

    name: str
    url: str
    channel: str
    serves: dict[str, str]
    rocm: tuple[str, ...]
    read: dt.date
    source: tuple[Source, ...]
    targets: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    os: tuple[str, ...] = ()
    replaces: str = ""
    ended: dt.date | None = None
    successor: str = ""
    note: str = ""

    def age_days(self, today: dt.date) -> int:
        """Return how many days ago it was read."""
        return (today - self.read).days

    def is_due(self, today: dt.date) -> bool:
        """Whether its sources should be read again."""
        return self.age_days(today) > MAX_AGE_DAYS


class UnknownIndexError(ValueError):
    """A placeholder that names no index or none of its fields.

    Args:
        reason: What is wrong.
        position: Where the placeholder stands in the text.
    """

    def __init__(self, reason: str, position: int = 0) -> None:
        self.position = position
        super().__init__(reason)


def read_indexes(path: Path = TABLE) -> dict[str, Index]:
    """Return the table's rows by id.

    Raises:
        OSError: The file cannot be read.
        DataError: It is not TOML.
        msgspec.ValidationError: A row is not one.
    """
    raw = parse_toml(read_document(path, max_bytes=_MAX_BYTES).decode(), "indexes")
    return msgspec.convert(raw, dict[str, Index], strict=True)


def fill_indexes(text: str, indexes: Mapping[str, Index]) -> str:
    """Return a text with the table's values in place of ``{index:ID}`` and ``{index:ID.FIELD}``.

    ``{index:ID}`` is the address. FIELD is a field of the row, or a package that the index serves: its newest version.

    Raises:
        UnknownIndexError: There is no such row or field.
    """

    def value(match: re.Match[str]) -> str:
        name, field = match[1], match[2] or "url"
        if name not in indexes and f"{name}.{match[2]}" in indexes:  # an id with a version in it: whl/rocm7.14
            name, field = f"{name}.{match[2]}", "url"
        row = indexes.get(name)
        if row is None:
            raise UnknownIndexError(f"no index has the id {name!r}; known: {', '.join(indexes)}", match.start())
        if field in row.serves:
            return row.serves[field]
        if field not in _FIELDS:
            raise UnknownIndexError(f"the index {name!r} has no field or package {field!r}", match.start())
        found = getattr(row, field)
        if field == "rocm":
            return str(found[-1])
        return ", ".join(found) if isinstance(found, tuple) else str(found)

    return _PLACEHOLDER.sub(value, text) if "{index:" in text else text
