"""What a port leaves in a project's ``.rocmend/port``: what it changed, the originals and the way back.

Each port that wrote something is a *generation*, a folder ``0001``, ``0002`` …::

    0001/manifest.json      which files, with the digests from before and after
    0001/originals/….zst    the bytes from before, by their digest
    0001/inverse.patch      a patch for ``git apply`` that takes the port back

A folder ``transaction`` is a generation that is being written (``rocmend.port.transaction``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import zstandard

import rocmend
from rocmend.core.errors import DataError
from rocmend.port.records import Change

__all__ = ["Entry", "Generation", "Manifest", "digest", "digest_at", "entries_of", "folder", "generations"]

_VERSION = 1
MANIFEST = "manifest.json"
ORIGINALS = "originals"
INVERSE = "inverse.patch"


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that was changed.

    Attributes:
        path: Relative to the project, with forward slashes.
        before: SHA-256 of its bytes before; empty where there was no such file.
        after: SHA-256 of its bytes after; empty where it was removed.
        mode: Its permissions before; 0 where there was no such file.
    """

    path: str
    before: str = ""
    after: str = ""
    mode: int = 0


class Manifest(msgspec.Struct, frozen=True):
    """What one port, or its undoing, changed.

    Attributes:
        entries: The files, by path.
        schema_version: Of the file.
        program: The version of rocmend that wrote it.
        made_folders: Folders that it made, the outermost first.
        drops: Generations that are undone by it; empty for a port.
        keeps: Files that stay as they are: what is known of them stays in the generations that are undone.
        style: How CUDA sources were written: ``inplace`` or ``tree``.
        targets: The gfx targets that the port was for.
    """

    entries: tuple[Entry, ...]
    schema_version: int = _VERSION
    program: str = rocmend.__version__
    made_folders: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    style: str = ""
    targets: tuple[str, ...] = ()


def digest(data: bytes | None) -> str:
    """Return the SHA-256 of bytes; empty where there are none."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def digest_at(path: Path) -> str:
    """Return the SHA-256 of a file's bytes; empty where nothing is there, and no digest at all for a folder."""
    try:
        return digest(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except IsADirectoryError:
        return "a folder"


def folder(root: Path) -> Path:
    """Return the folder in which a project's ports are kept."""
    return root / ".rocmend" / "port"


def entries_of(changes: Sequence[Change], modes: Sequence[int]) -> tuple[Entry, ...]:
    """Return the entries of a manifest for changes, each with its file's permissions."""
    return tuple(
        Entry(change.path, digest(change.before), digest(change.after), mode)
        for change, mode in zip(changes, modes, strict=True)
    )


def compressed(data: bytes) -> bytes:
    """Return bytes as they are kept."""
    return zstandard.ZstdCompressor(level=6).compress(data)


class Generation:
    """One port as it is kept in a project.

    Args:
        path: Its folder.

    Raises:
        DataError: Its manifest cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.name
        try:
            self.manifest = msgspec.json.decode((path / MANIFEST).read_bytes(), type=Manifest)
        except (OSError, msgspec.DecodeError) as error:
            raise DataError(
                str(path / MANIFEST),
                f"the record of the port cannot be read: {error}.",
                next_step="Restore the folder, or take the project back with git.",
            ) from error
        if self.manifest.schema_version != _VERSION:
            raise DataError(
                str(path / MANIFEST),
                f"is of version {self.manifest.schema_version}; this program reads {_VERSION}.",
                next_step="Use the rocmend that wrote it.",
            )

    def original(self, entry: Entry) -> bytes | None:
        """Return a file's bytes from before; None where there was no such file.

        Raises:
            DataError: They are not there, or are not what they were.
        """
        if not entry.before:
            return None
        path = self.path / ORIGINALS / f"{entry.before}.zst"
        try:
            data = zstandard.ZstdDecompressor().decompress(path.read_bytes(), max_output_size=1 << 31)
        except (OSError, zstandard.ZstdError) as error:
            raise DataError(
                str(path), f"the original of {entry.path} cannot be read: {error}.", next_step="Take it from git."
            ) from error
        if digest(data) != entry.before:
            raise DataError(
                str(path), f"the original of {entry.path} was changed.", next_step="Take the file back with git."
            )
        return data


def generations(root: Path) -> list[Generation]:
    """Return the ports that a project has, the oldest first.

    Raises:
        DataError: One of them cannot be read.
    """
    try:
        names = sorted(path.name for path in folder(root).iterdir() if path.name.isdigit())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [Generation(folder(root) / name) for name in names]
