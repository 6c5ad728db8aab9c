"""What a project's programs printed, kept so that other machines can compare: ``.rocmend/port/outputs``."""

from __future__ import annotations

import hashlib

import msgspec

from rocmend.core.beneath import Beneath
from rocmend.core.documents import decode_json
from rocmend.core.errors import DataError

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


def _path(unit: str) -> str:
    name = hashlib.sha256(unit.encode(errors="surrogateescape")).hexdigest()[:16]
    return f"{FOLDER}/{name}.json"


def keep(tree: Beneath, output: Output) -> None:
    """Keep what a program printed, in place of what was kept before."""
    tree.put(_path(output.unit), msgspec.json.format(msgspec.json.encode(output), indent=1) + b"\n")


def known(tree: Beneath, unit: str, original: bytes) -> Output | None:
    """Return what the program printed where it ran; None where nothing is kept, or it was another program.

    Args:
        tree: The project's folder.
        unit: The program's translation unit.
        original: Its source before the port.
    """
    try:
        found = decode_json(tree.read(_path(unit), _MAX_BYTES), Output, subject=_path(unit))
    except (OSError, DataError):
        return None
    return found if found.source == hashlib.sha256(original).hexdigest() and found.unit == unit else None
