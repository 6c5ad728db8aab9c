"""What a project's programs printed, kept so that other machines can compare: ``.rocmend/port/outputs``."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from rocmend.core.documents import read_json
from rocmend.core.errors import DataError
from rocmend.core.files import write_atomic

__all__ = ["FOLDER", "Output", "keep", "known"]

FOLDER = ".rocmend/port/outputs"
_MAX_BYTES = 64 << 20


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a program printed.

    Attributes:
        unit: Its translation unit, relative to the project.
        source: SHA-256 of the original source of that unit.
        arguments: What it was called with.
        stdout: What it printed.
        device: Where it ran.
    """

    unit: str
    source: str
    arguments: tuple[str, ...]
    stdout: str
    device: str


def _path(root: Path, unit: str) -> Path:
    name = hashlib.sha256(unit.encode(errors="surrogateescape")).hexdigest()[:16]
    return root / FOLDER / f"{name}.json"


def keep(root: Path, output: Output) -> None:
    """Keep what a program printed, in place of what was kept before."""
    write_atomic(_path(root, output.unit), msgspec.json.format(msgspec.json.encode(output), indent=1) + b"\n")


def known(root: Path, unit: str, original: bytes) -> Output | None:
    """Return what the program printed where it ran; None where nothing is kept, or it was another program.

    Args:
        root: The project's folder.
        unit: The program's translation unit.
        original: Its source before the port.
    """
    try:
        found: Output = read_json(_path(root, unit), Output, max_bytes=_MAX_BYTES, follow=False)
    except (OSError, DataError):
        return None
    return found if found.source == hashlib.sha256(original).hexdigest() and found.unit == unit else None
