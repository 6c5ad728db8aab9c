"""Taking ports back: every file gets the bytes that it had."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from rocmend.core.beneath import Beneath
from rocmend.core.errors import UsageError
from rocmend.port.by_hand import is_out, ways_out
from rocmend.port.patch import patch
from rocmend.port.records import Change
from rocmend.port.state import (
    MAX_FILE_BYTES,
    Generation,
    Manifest,
    digest,
    digest_at,
    entries_of,
    first_and_last,
    generations,
)
from rocmend.port.transaction import commit, locked, modes_of, not_written, recover, restored_mode

__all__ = ["Undone", "undo"]

_SHOWN = 5


class Undone(msgspec.Struct, frozen=True):
    """What was taken back.

    Attributes:
        restored: Files that have the bytes from before the first port, by path.
        removed: Files that ports had made, by path.
        kept: Files that were changed by hand since, and left as they are.
        commands: Shell commands that take the port out of these, one a file.
        notes: What else there is to say, in sentences.
    """

    restored: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


def undo(root: Path, *, keep_changed: bool = False) -> Undone:
    """Take every port of a project back: all of it or nothing.

    Args:
        root: The project's folder.
        keep_changed: Whether files that were changed by hand since stay as they are, and the others are taken back.

    Raises:
        UsageError: The project has no port, or a file was changed by hand since (and ``keep_changed`` is not set).
            Nothing was changed then.
        DataError: What a port left to take it back with is damaged, or leads out of the project.
        RocmendError: The disk is full, or a folder is not writable.
    """
    with locked(root) as tree:
        try:
            return _undone(tree, recover(tree), keep_changed=keep_changed)
        except OSError as error:
            raise not_written(tree, error) from error


def _undone(tree: Beneath, told: str, *, keep_changed: bool) -> Undone:
    ports = generations(tree)
    if not ports:
        if told:
            return Undone((), (), notes=(told,))
        raise UsageError(
            str(tree.root), "no port is recorded here.", next_step="Name the folder that was ported; see .rocmend/port."
        )
    changes, by_hand, out = _back(tree, ports)
    if by_hand and not keep_changed:
        raise _refused(tree.root, by_hand, ports)
    modes = modes_of(tree, changes)
    before = {entry.path: entry.mode for port in reversed(ports) for entry in port.manifest.entries}
    restored_modes = [restored_mode(before[change.path], mode) for change, mode in zip(changes, modes, strict=True)]
    made = tuple(sorted({path for port in ports for path in port.manifest.made_folders}))
    drops = tuple(port.name for port in ports)
    manifest = Manifest(entries_of(changes, restored_modes), made_folders=made, drops=drops, keeps=tuple(by_hand))
    if out:
        told = f"{told} The port was already removed by hand; these files are unchanged: {_some(out)}.".strip()
    again = [Change(change.path, change.after, change.before) for change in changes]
    commit(tree, changes, manifest, patch(again))
    return Undone(
        restored=tuple(change.path for change in changes if change.after is not None),
        removed=tuple(change.path for change in changes if change.after is None),
        kept=tuple(by_hand),
        notes=(told,) if told else (),
        commands=tuple(ways_out(tree.root, by_hand, ports)),
    )


def _back(tree: Beneath, ports: list[Generation]) -> tuple[list[Change], list[str], list[str]]:
    """Return the changes that take ports back, the files that are not as a port left them, and those without one.

    The last hold work of a person's, and nothing of the ports any more.
    """
    first, last, by_hand = first_and_last(ports)
    changes = []
    for path, original in sorted(first.items()):
        found = digest_at(tree, path)
        if found == digest(original):
            by_hand.discard(path)
        elif found != last[path]:
            by_hand.add(path)
        elif path not in by_hand:
            changes.append(Change(path, tree.read(path, MAX_FILE_BYTES) if found else None, original))
    out = [path for path in sorted(by_hand) if is_out(tree, path, first[path], ports)]
    return changes, sorted(by_hand.difference(out)), out


def _some(paths: list[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")


def _refused(root: Path, by_hand: list[str], ports: list[Generation]) -> UsageError:
    again = shlex.join(["rocmend", "port", "undo", str(root)])
    lines = [
        "Remove the port from them, then undo again; if a patch does not apply, edit the file:",
        *(f"  {command}" for command in ways_out(root, by_hand[:_SHOWN], ports)),
        f"  {again}",
        "Or keep them as they are, with the port, and restore all others:",
        f"  {again} --keep-changed",
    ]
    return UsageError(
        str(root),
        f"changed by hand since the port: {_some(by_hand)}; nothing was restored.",
        why="Restoring the originals would overwrite that work.",
        next_step="\n  ".join(lines),
    )
