"""Taking ports back: every file gets the bytes that it had."""

from __future__ import annotations

from pathlib import Path

import msgspec

from rocmend.core.errors import UsageError
from rocmend.port.patch import patch
from rocmend.port.records import Change
from rocmend.port.state import Generation, Manifest, digest, entries_of, folder, generations
from rocmend.port.transaction import commit, locked, modes_of, not_written, recover

__all__ = ["Undone", "undo"]


class Undone(msgspec.Struct, frozen=True):
    """What was taken back.

    Attributes:
        restored: Files that have the bytes from before the first port, by path.
        removed: Files that ports had made, by path.
        kept: Files that were changed by hand since, and left as they are.
        notes: What else there is to say, in sentences.
    """

    restored: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def undo(root: Path, *, keep_changed: bool = False) -> Undone:
    """Take every port of a project back: all of it or nothing.

    Args:
        root: The project's folder.
        keep_changed: Whether files that were changed by hand since stay as they are, and the others are taken back.

    Raises:
        UsageError: The project has no port, or a file was changed by hand since (and ``keep_changed`` is not set).
            Nothing was changed then.
        DataError: What a port left to take it back with is damaged.
        RocmendError: The disk is full, or a folder is not writable.
    """
    with locked(root):
        try:
            return _undone(root, recover(root), keep_changed=keep_changed)
        except OSError as error:
            raise not_written(root, error) from error


def _undone(root: Path, told: str, *, keep_changed: bool) -> Undone:
    ports = generations(root)
    if not ports:
        if told:
            return Undone((), (), notes=(told,))
        raise UsageError(
            str(root), "no port is recorded here.", next_step="Name the folder that was ported; see .rocmend/port."
        )
    changes, by_hand = _back(root, ports)
    if by_hand and not keep_changed:
        raise _refused(root, by_hand, ports)
    modes = modes_of(root, changes)
    before = {entry.path: entry.mode for port in reversed(ports) for entry in port.manifest.entries}
    restored_modes = [before[change.path] or mode for change, mode in zip(changes, modes, strict=True)]
    made = tuple(sorted({path for port in ports for path in port.manifest.made_folders}))
    drops = tuple(port.name for port in ports)
    manifest = Manifest(entries_of(changes, restored_modes), made_folders=made, drops=drops, keeps=tuple(by_hand))
    told = " ".join(
        part
        for part in (
            told,
            f"How they were stays in {folder(root)}: `git apply --3way` takes an inverse.patch there."
            if by_hand
            else "",
        )
        if part
    )
    again = [Change(change.path, change.after, change.before) for change in changes]
    commit(root, changes, manifest, patch(again))
    return Undone(
        restored=tuple(change.path for change in changes if change.after is not None),
        removed=tuple(change.path for change in changes if change.after is None),
        kept=tuple(by_hand),
        notes=(told,) if told else (),
    )


def _back(root: Path, ports: list[Generation]) -> tuple[list[Change], list[str]]:
    """Return the changes that take ports back, and the files that are not as a port left them."""
    first: dict[str, bytes | None] = {}
    last: dict[str, str] = {}
    by_hand: set[str] = set()
    for port in ports:
        for entry in port.manifest.entries:
            if entry.path not in first:
                first[entry.path] = port.original(entry)
            elif last[entry.path] != entry.before:
                by_hand.add(entry.path)
            last[entry.path] = entry.after
    changes = []
    for path, original in sorted(first.items()):
        try:
            now: bytes | None = (root / path).read_bytes()
        except FileNotFoundError:
            now = None
        if now == original:
            by_hand.discard(path)
        elif digest(now) != last[path]:
            by_hand.add(path)
        elif path not in by_hand:
            changes.append(Change(path, now, original))
    return changes, sorted(by_hand)


def _refused(root: Path, by_hand: list[str], ports: list[Generation]) -> UsageError:
    shown = ", ".join(by_hand[:5]) + (f" and {len(by_hand) - 5} more" if len(by_hand) > 5 else "")
    inverse = folder(root) / ports[-1].name / "inverse.patch"
    return UsageError(
        str(root),
        f"changed by hand since the port: {shown}; nothing was taken back.",
        why="Their original bytes would replace that work.",
        next_step=(
            f"Take the port out of them with `git apply --3way --include=PATH {inverse}`, or move the work elsewhere; "
            "with --keep-changed they stay as they are and all others are taken back."
        ),
    )
