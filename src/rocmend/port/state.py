"""What a port leaves in a project's ``.rocmend/port``: what it changed, the originals and the way back.

Each port that wrote something is a *generation*, a folder ``0001``, ``0002`` …::

    0001/manifest.json      which files, with the digests from before and after
    0001/originals/….zst    the bytes from before, by their digest
    0001/inverse.patch      a patch for ``git apply`` that takes the port back

A folder ``transaction`` is a generation that is being written (``rocmend.port.transaction``).

A project can bring such a record along that no port here wrote. So nothing in it is believed: paths are checked when a
manifest is read, files are reached through ``rocmend.core.beneath``, sizes are limited, and a record that git keeps or
that another user owns is refused.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import zstandard

import rocmend
from rocmend.core.beneath import Beneath, why_unsafe
from rocmend.core.documents import MALFORMED, decompressed
from rocmend.core.errors import DataError, UsageError
from rocmend.port.git import tracked
from rocmend.port.records import Change, KeptFinding

__all__ = [
    "Entry",
    "Generation",
    "Manifest",
    "check_sizes",
    "digest",
    "digest_at",
    "entries_of",
    "first_and_last",
    "generations",
    "opened",
]

_VERSION = 1
STATE = ".rocmend/port"
WORK = f"{STATE}/transaction"
MANIFEST = "manifest.json"
ORIGINALS = "originals"
INVERSE = "inverse.patch"
MOST_GENERATIONS = 9999
MAX_FILE_BYTES = 256 << 20
"""Of a file that is changed; also when the original of one is unpacked."""
MAX_TOTAL_BYTES = 1 << 30
"""Of all originals that are held at once, and of an inverse patch."""
_MAX_MANIFEST_BYTES = 32 << 20
_MOST_ENTRIES = 100_000
_PERMISSIONS = 0o777

_NUMBER = re.compile(r"[0-9]{4}")
_RULE = re.compile(r"[A-Z]{2}[0-9]{2}")
_DIGEST = re.compile(r"(?:[0-9a-f]{64})?")
_NOT_OURS = re.compile(r"(?:\.git|\.rocmend|git~[0-9]+)[ .]*(?:::?.*)?", re.IGNORECASE | re.DOTALL)
"""Folders that a port never writes to, as file systems that fold names know them too."""
_RECORD = re.compile(r"\.rocmend(?:/port(?:/(?:transaction|[0-9]{4})(?:/.*)?)?)?", re.DOTALL)
"""What git has to know nothing of; ``cases`` and ``golden`` may be committed."""


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
        findings: What is left for a person and rules no longer see in the port.
    """

    entries: tuple[Entry, ...]
    schema_version: int = _VERSION
    program: str = rocmend.__version__
    made_folders: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    style: str = ""
    targets: tuple[str, ...] = ()
    findings: tuple[KeptFinding, ...] = ()


def digest(data: bytes | None) -> str:
    """Return the SHA-256 of bytes; empty where there are none."""
    return "" if data is None else hashlib.sha256(data).hexdigest()


def digest_at(tree: Beneath, path: str) -> str:
    """Return the SHA-256 of a file's bytes; empty where nothing is there, and no digest where a port cannot have it."""
    status = tree.stat(path)
    if status is None:
        return ""
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if status.st_size > MAX_FILE_BYTES:
        return "too large"
    return digest(tree.read(path, MAX_FILE_BYTES))


def entries_of(changes: Sequence[Change], modes: Sequence[int]) -> tuple[Entry, ...]:
    """Return the entries of a manifest for changes, each with its file's permissions."""
    return tuple(
        Entry(change.path, digest(change.before), digest(change.after), mode & _PERMISSIONS)
        for change, mode in zip(changes, modes, strict=True)
    )


def check_sizes(tree: Beneath, changes: Sequence[Change]) -> None:
    """Raise where a port is larger than what is read back to undo it."""
    sizes = [len(change.before or b"") for change in changes]
    if max(sizes, default=0) > MAX_FILE_BYTES or sum(sizes) > MAX_TOTAL_BYTES or len(changes) > _MOST_ENTRIES:
        raise UsageError(
            str(tree.root),
            f"the files to change are too large: {MAX_FILE_BYTES:,} bytes each, {MAX_TOTAL_BYTES:,} bytes and "
            f"{_MOST_ENTRIES:,} files together are the limits.",
            why="Their originals are kept for an undo.",
            next_step="Port parts of the project, or exclude files with [tool.rocmend.port] exclude.",
        )


def compressed(data: bytes) -> bytes:
    """Return bytes as they are kept."""
    return zstandard.ZstdCompressor(level=6).compress(data)


class Generation:
    """One port as it is kept in a project.

    Args:
        tree: The project's folder.
        name: Of its folder in ``.rocmend/port``.

    Raises:
        DataError: Its manifest cannot be read, or says what none that a port wrote does.
    """

    def __init__(self, tree: Beneath, name: str) -> None:
        self.tree = tree
        self.name = name
        self.folder = f"{STATE}/{name}"
        self.path = tree.root / self.folder
        try:
            data = tree.read(f"{self.folder}/{MANIFEST}", _MAX_MANIFEST_BYTES)
            self.manifest = msgspec.json.decode(data, type=Manifest)
        except (OSError, *MALFORMED) as error:
            raise DataError(
                str(self.path / MANIFEST),
                f"the record of the port cannot be read: {error}.",
                next_step="Restore the folder, or revert the project with git.",
            ) from error
        if self.manifest.schema_version != _VERSION:
            raise DataError(
                str(self.path / MANIFEST),
                f"is of version {self.manifest.schema_version}; this program reads {_VERSION}.",
                next_step="Use the rocmend that wrote it.",
            )
        wrong = fault_of(self.manifest)
        if wrong:
            raise DataError(
                str(self.path / MANIFEST),
                f"is not a record written by a port: {wrong}.",
                why="An undo replaces and deletes the files that it names.",
                next_step=f"Delete {tree.root / STATE}, and revert the project with git if it was ported.",
            )

    def original(self, entry: Entry) -> bytes | None:
        """Return a file's bytes from before; None where there was no such file.

        Raises:
            DataError: They are not there, or are not what they were.
        """
        if not entry.before:
            return None
        path = f"{self.folder}/{ORIGINALS}/{entry.before}.zst"
        shown = str(self.tree.root / path)
        try:
            data = decompressed(self.tree.read(path, MAX_FILE_BYTES), MAX_FILE_BYTES)
        except (OSError, ValueError) as error:
            raise DataError(
                shown, f"the original of {entry.path} cannot be read: {error}.", next_step="Restore it from git."
            ) from error
        if digest(data) != entry.before:
            raise DataError(shown, f"the original of {entry.path} was changed.", next_step="Restore the file with git.")
        return data


def fault_of(manifest: Manifest) -> str:
    """Return what of a manifest no port writes; empty where all is as it should be."""
    counts = [len(part) for part in (manifest.entries, manifest.made_folders, manifest.drops, manifest.keeps)]
    if max(*counts, len(manifest.findings)) > _MOST_ENTRIES:
        return f"it names more than {_MOST_ENTRIES:,} files or findings"
    paths = [entry.path for entry in manifest.entries]
    if len(set(paths)) < len(paths):
        return "it names a file twice"
    for path in (*paths, *manifest.made_folders, *manifest.keeps, *{one.path for one in manifest.findings}):
        reason = why_unsafe(path) or ("" if path else "is empty")
        if not reason and any(_NOT_OURS.fullmatch(part) for part in path.split("/")):
            reason = "is within .git or .rocmend"
        if reason:
            return f"the path {path[:200]!r} {reason}"
    for one in (text for entry in manifest.entries for text in (entry.before, entry.after)):
        if not _DIGEST.fullmatch(one):
            return f"{one[:80]!r} is not a SHA-256"
    rule = next((one.rule for one in manifest.findings if not _RULE.fullmatch(one.rule)), None)
    if rule is not None:
        return f"{rule[:80]!r} is not the id of a rule"
    dropped = next((name for name in manifest.drops if not _NUMBER.fullmatch(name)), None)
    return "" if dropped is None else f"{dropped[:80]!r} is not the name of a port"


def opened(root: Path) -> Beneath:
    """Open a project.

    Raises:
        UsageError: The folder cannot be opened.
    """
    try:
        return Beneath(root)
    except OSError as error:
        raise UsageError(
            str(root), f"cannot be opened: {error.strerror}.", next_step="Name the project's folder."
        ) from error


def numbers(tree: Beneath) -> list[str]:
    """Return the names of the ports that a project has, the oldest first."""
    return [name for name in tree.names(STATE) if _NUMBER.fullmatch(name)] if tree.is_folder(STATE) else []


def generations(project: Path | Beneath) -> list[Generation]:
    """Return the ports that a project has, the oldest first.

    Args:
        project: Its folder.

    Raises:
        DataError: One of them cannot be read, or leads out of the project.
        UsageError: They were not made here: git keeps them, or another user owns them.
    """
    if isinstance(project, Path):
        if not project.is_dir():
            return []
        project = opened(project)
    try:
        names = numbers(project)
    except OSError as error:
        raise DataError(str(error.filename), f"cannot be read: {error.strerror}.") from error
    if not names:
        return []
    refuse_foreign(project, names)
    return [Generation(project, name) for name in names]


def refuse_foreign(tree: Beneath, names: Iterable[str]) -> None:
    """Raise where the record of ports came with the project: it would say which files are replaced and deleted.

    Args:
        tree: The project's folder.
        names: The folders of the record.

    Raises:
        UsageError: Git keeps it, or it belongs to another user. Root uses that of the project's owner too.
    """
    ours = {os.geteuid(), 0}
    if os.geteuid() == 0:
        ours.add(tree.stat("").st_uid)  # type: ignore[union-attr]  # the folder itself is held open
    for path in (".rocmend", STATE, *(f"{STATE}/{name}{part}" for name in names for part in ("", f"/{MANIFEST}"))):
        status = tree.stat(path)
        if status is not None and status.st_uid not in ours:
            raise UsageError(
                str(tree.root / path),
                f"belongs to another user (uid {status.st_uid}), and says which files of the project to replace.",
                why="Only its owner and root may use a record of a port.",
                next_step=f"Run it as that user, or delete {tree.root / STATE} if nothing is to be undone.",
            )
    kept = next((path for path in tracked(tree.root, ".rocmend") if _RECORD.fullmatch(path)), None)
    if kept is not None:
        raise UsageError(
            str(tree.root / kept),
            "is kept by git: this record of a port came with the project and is not used.",
            why="It says which files of the project to replace and to delete.",
            next_step=(
                f"If the port is your own, `git rm -r --cached {STATE}` and run it again; "
                f"else delete {tree.root / STATE}."
            ),
        )


def first_and_last(ports: Sequence[Generation]) -> tuple[dict[str, bytes | None], dict[str, str], set[str]]:
    """Return what files were before the first port, their digests after the last, and those changed in between.

    Raises:
        DataError: An original cannot be read, or they are too much to be held at once.
    """
    first: dict[str, bytes | None] = {}
    last: dict[str, str] = {}
    between: set[str] = set()
    unpacked: dict[str, bytes | None] = {}
    total = 0
    for port in ports:
        for entry in port.manifest.entries:
            if entry.path not in first:
                if entry.before not in unpacked:
                    unpacked[entry.before] = port.original(entry)
                    total += len(unpacked[entry.before] or b"")
                first[entry.path] = unpacked[entry.before]
                if total > MAX_TOTAL_BYTES:
                    raise DataError(
                        str(port.path),
                        f"the originals have more than {MAX_TOTAL_BYTES:,} bytes.",
                        next_step="Revert the project with git.",
                    )
            elif last[entry.path] != entry.before:
                between.add(entry.path)
            last[entry.path] = entry.after
    return first, last, between
