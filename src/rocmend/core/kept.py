"""What takes long to parse, kept beside a module as Python keeps its byte code.

By the same rules: used only while every file is the one it was made from (path, size, time of change), not written
where ``PYTHONDONTWRITEBYTECODE`` is set, placed under ``PYTHONPYCACHEPREFIX`` where that is set, and done without where
the folder cannot be written.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rocmend.core.documents import MALFORMED, read_document
from rocmend.core.errors import DataError
from rocmend.core.files import write_atomic

_MAX_BYTES = 64 << 20

Stamp = tuple[str, int, int]
"""Path, size in bytes and time of change in ns."""

_Made = TypeVar("_Made")


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    stamps: tuple[Stamp, ...]
    made: msgspec.Raw


def place_of(module_file: str) -> Path:
    """Return where the things that a module makes are kept."""
    return Path(importlib.util.cache_from_source(module_file)).with_suffix(".kept")


def stamps_of(paths: Iterable[str]) -> tuple[Stamp, ...]:
    """Return the state of files.

    Raises:
        OSError: One of them cannot be looked at.
    """
    found = ((path, os.stat(path)) for path in paths)  # noqa: PTH116  pathlib doubles the time
    return tuple((path, stat.st_size, stat.st_mtime_ns) for path, stat in found)


def read_kept(place: Path, stamps: tuple[Stamp, ...], kind: type[_Made]) -> _Made | None:
    """Return what was kept, or None where nothing was or a file has changed since."""
    try:
        kept = msgspec.msgpack.decode(read_document(place, max_bytes=_MAX_BYTES), type=_Kept)
        return msgspec.msgpack.decode(kept.made, type=kind) if kept.stamps == stamps else None
    except (OSError, DataError, *MALFORMED):
        return None


def write_kept(place: Path, stamps: tuple[Stamp, ...], made: Any) -> None:
    """Keep something for the next time, where that is allowed and possible; stamps are taken before reading."""
    if sys.dont_write_bytecode:
        return
    try:
        write_atomic(place, msgspec.msgpack.encode(_Kept(stamps, msgspec.Raw(msgspec.msgpack.encode(made)))))
    except (OSError, OverflowError, TypeError):
        return  # a folder that cannot be written, or a value that the format has no room for: parse again next time
