"""The files of a captured machine.

```text
DIR/machine.json        Manifest
DIR/root/<path>         plain files at the absolute paths they were read from
DIR/tree.json           Tree: what plain files cannot say (devices, owners, links, refusals)
DIR/commands/*.json     one CommandResult a file, named by command_slug
DIR/environ.json        {name: value}
DIR/user.json           User
DIR/measurements.json   {"name|path": value}
```

`rocmend machine capture` writes all of it (``user.json`` and ``commands`` where there is something to keep); a command
that reads a machine refuses a folder that lacks a part that is always written.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError
from rocmend.core.records import SCHEMA_VERSION
from rocmend.machine.root import ChosenPython, Stat

MANIFEST = "machine.json"
ROOT = "root"
TREE = "tree.json"
COMMANDS = "commands"
ENVIRON = "environ.json"
USER = "user.json"
MEASUREMENTS = "measurements.json"

ALWAYS = (TREE, ENVIRON, MEASUREMENTS)
"""Documents that every capture has, beside the manifest."""

MAX_JSON_BYTES = 16 << 20
"""A document larger than this is not one of ours: a tool may print 8 MiB, which JSON escapes."""
MAX_MEASURED_BYTES = 2 << 20

T = TypeVar("T")


class Manifest(msgspec.Struct, frozen=True):
    """What a folder holds.

    Attributes:
        captured_at: ISO time of the capture (UTC).
        name: What the machine is called; a placeholder where it was redacted.
        rocmend_version: What wrote it.
        redacted: Whether names and serial numbers were replaced.
        python: The Python environment that was read; None where there was none, or an older rocmend wrote it.
        schema_version: Version of the layout.
    """

    captured_at: str
    name: str
    rocmend_version: str = ""
    redacted: bool = False
    python: ChosenPython | None = None
    schema_version: int = SCHEMA_VERSION


class Tree(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known of paths beyond the plain files under ``root/``; each part is optional.

    Attributes:
        stats: Path to what ``stat`` says (links followed). A path here exists, captured or not.
        links: Path to where a symbolic link points, as written; reads follow it inside the capture.
        lists: Path to all names in a directory; without it the names under ``root/`` and in the parts here count.
        denied: Path to why it may not be read or listed.
        errors: Path to why reading it fails in another way.
    """

    stats: dict[str, Stat] = {}
    links: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    denied: dict[str, str] = {}
    errors: dict[str, str] = {}


def command_slug(argv: Sequence[str]) -> str:
    """Return the file name, without ``.json``, under which a command's result is kept: ``amd-smi-static---json``."""
    line = " ".join(argv)
    slug = re.sub(r"[^A-Za-z0-9._+=-]", "-", line)
    if len(slug) <= 80 and slug.strip(".-"):
        return slug
    import hashlib

    return f"{slug[:60]}-{hashlib.sha256(line.encode(errors='replace')).hexdigest()[:12]}"


def measurement_key(name: str, path: str) -> str:
    """Return the key under which a measurement is kept."""
    return f"{name}|{path}"


def load_json(directory: Path, name: str, kind: type[T] | Any, *, max_bytes: int | None = None) -> T | None:
    """Decode and validate one document of a capture; None where it is absent.

    Raises:
        DataError: Not JSON, of the wrong types, too large, or not a plain file inside the folder.
    """
    path = directory / name
    try:
        value: T = read_json(
            path, kind, max_bytes=max_bytes or MAX_JSON_BYTES, what="JSON of the capture layout", follow=False
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except DataError as error:
        next_step = "Correct the file or capture the machine again."
        raise DataError(f"capture {path}", error.message, next_step=next_step) from None
    return value
