"""The entries that come with rocmend, kept in parsed form as Python keeps its modules.

Parsing TOML takes most of the time of a short command. The parsed entries are therefore kept in ``__pycache__`` beside
this module, by the same rules as byte code: used only while every file is the one it was made from (path, size, time of
change), not written where ``PYTHONDONTWRITEBYTECODE`` is set, placed under ``PYTHONPYCACHEPREFIX`` where that is set,
and done without where the folder cannot be written.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from rocmend.core import records
from rocmend.core.documents import MALFORMED, read_document
from rocmend.core.errors import DataError
from rocmend.core.files import write_atomic
from rocmend.kb import action as action_module
from rocmend.kb import entry as entry_module
from rocmend.kb.action import Action
from rocmend.kb.entry import Entry

_MAX_BYTES = 64 << 20

Stamp = tuple[str, int, int]
"""Path, size in bytes and time of change in ns."""


class Compiled(msgspec.Struct, frozen=True, array_like=True):
    """Parsed entries and actions, by path, and the files that they were made from."""

    stamps: tuple[Stamp, ...]
    entries: dict[str, Entry]
    actions: dict[str, Action] = {}


def stamps_of(paths: Sequence[str]) -> tuple[Stamp, ...]:
    """Return the state of the files that parsed entries depend on: theirs and those that say what an entry is.

    Raises:
        OSError: One of them cannot be looked at.
    """
    code = (entry_module.__file__, action_module.__file__, records.__file__, __file__)
    found = ((path, os.stat(path)) for path in (*code, *paths))  # noqa: PTH116  pathlib doubles the time
    return tuple((path, stat.st_size, stat.st_mtime_ns) for path, stat in found)


def read_compiled(stamps: tuple[Stamp, ...]) -> Compiled | None:
    """Return what was kept, or None where nothing was or a file has changed since."""
    try:
        data = read_document(_place(), max_bytes=_MAX_BYTES)
        kept = msgspec.msgpack.decode(data, type=Compiled)
    except (OSError, DataError, *MALFORMED):
        return None
    return kept if kept.stamps == stamps else None


def write_compiled(made: Compiled) -> None:
    """Keep parsed entries for the next time, where that is allowed and possible; stamps are taken before reading."""
    if sys.dont_write_bytecode:
        return
    try:
        write_atomic(_place(), msgspec.msgpack.encode(made))
    except (OSError, OverflowError, TypeError):
        return  # a folder that cannot be written, or a value that the format has no room for: parse again next time


def _place() -> Path:
    return Path(importlib.util.cache_from_source(__file__)).with_suffix(".entries")
