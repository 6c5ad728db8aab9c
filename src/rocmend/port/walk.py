"""The files of a project that a port is about, and what was left out of it and why."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rocmend.core.beneath import Beneath, UnsafePathError
from rocmend.port.classify import kind, named
from rocmend.port.git import ignored_paths

__all__ = ["FoundFile", "LeftOut", "Walked", "walk"]

_NEVER = frozenset({
    ".git", ".hg", ".svn", ".rocmend", ".tox", ".nox", ".eggs", "__pycache__", "node_modules", "CMakeFiles",
    ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", "__pypackages__",
})  # fmt: skip
_BUILT = ("lib.", "temp.", "bdist.")


class FoundFile(NamedTuple):
    """A regular file that rules may read, with what tells whether it changed.

    Attributes:
        path: Relative to the project, with forward slashes.
        size: In bytes.
        stamp: Modification and change times in ns, and inode.
    """

    path: str
    size: int
    stamp: tuple[int, int, int]


class LeftOut(NamedTuple):
    """Something that is not read."""

    path: str
    reason: str


class Walked(NamedTuple):
    """What a walk found.

    Attributes:
        files: To be read, by path.
        left_out: Files of the port's kinds, and links, that are not read, and why.
        folders: Folders that are not entered, and why.
        submodules: Repositories within the project: each is ported on its own.
    """

    files: list[FoundFile]
    left_out: list[LeftOut]
    folders: list[LeftOut]
    submodules: list[str]


def walk(root: Path, *, exclude: tuple[str, ...] = ()) -> Walked:
    """Return the files under a folder that rules may read.

    Links are never followed: what they lead to inside the project is read under its own name.

    Args:
        root: The project's folder.
        exclude: Paths that are not looked at (endings or patterns, ``rocmend.port.classify.named``).
    """
    found = Walked([], [], [], [])
    inside = os.path.realpath(root)
    ignored = ignored_paths(root)
    pending = [""]
    with Beneath(root) as tree:
        while pending:
            folder = pending.pop()
            try:
                with tree.listed(folder) as entries:
                    below = list(_below(folder, entries, found, (inside, ignored, exclude)))
            except UnsafePathError:
                found.folders.append(LeftOut(_shown(folder), "it is now a link"))
            except OSError as error:
                found.folders.append(LeftOut(_shown(folder) or ".", f"cannot be listed: {error.strerror}"))
            else:
                pending.extend(reversed(below))
    found.files.sort()
    return found


def _below(
    folder: str,
    entries: list[os.DirEntry[str]],
    found: Walked,
    told: tuple[str, frozenset[str], tuple[str, ...]],
) -> Iterator[str]:
    """Take what a folder holds, and yield the folders in it that are to be entered."""
    inside, ignored, exclude = told
    if folder and (reason := _why_not(entries)):
        if reason is _REPOSITORY:
            found.submodules.append(folder)
        found.folders.append(LeftOut(_shown(folder), reason))
        return
    for entry in entries:
        path = f"{folder}/{entry.name}" if folder else entry.name
        if path in ignored:
            if _is_folder(entry):
                found.folders.append(LeftOut(_shown(path), "git ignores it"))
            continue
        if exclude and named(path, exclude):
            continue
        if entry.is_symlink():
            found.left_out.extend(_link(entry, path, inside))
        elif _is_folder(entry):
            if entry.name not in _NEVER and not entry.name.endswith(".egg-info"):
                yield path
        else:
            _take(entry, path, found)


_REPOSITORY = "a separate repository (a submodule)"


def _why_not(entries: list[os.DirEntry[str]]) -> str | None:
    """Tell by what a folder below the project's holds why it is not entered."""
    names = {entry.name for entry in entries}
    if ".git" in names:
        return _REPOSITORY
    if "pyvenv.cfg" in names:
        return "a virtual environment"
    if "CMakeCache.txt" in names or any(name.startswith(_BUILT) for name in names):
        return "build output"
    if "conda-meta" in names:
        return "a conda environment"
    return None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _shown(path: str) -> str:
    """Return a path that can be printed and stored: names on disk are bytes, and some are not UTF-8."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def _link(entry: os.DirEntry[str], path: str, inside: str) -> Iterator[LeftOut]:
    """Yield why a link is not followed, unless what it leads to is read anyway or is no matter of a port."""
    try:
        mode = entry.stat().st_mode
    except OSError as error:  # ELOOP for one that leads to itself
        if kind(path) != ():
            yield LeftOut(_shown(path), f"a broken link: {error.strerror}")
        return
    target = os.path.realpath(Path(inside) / path)
    if target == inside or target.startswith(inside + os.sep):
        return
    if stat.S_ISDIR(mode) or kind(path) != ():
        yield LeftOut(_shown(path), "a link to outside the project")


def _take(entry: os.DirEntry[str], path: str, found: Walked) -> None:
    if kind(path) == ():
        return
    if _shown(path) != path:
        found.left_out.append(LeftOut(_shown(path), "its name is not UTF-8"))
        return
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError as error:
        found.left_out.append(LeftOut(path, f"cannot be read: {error.strerror}"))
        return
    if not stat.S_ISREG(status.st_mode):
        found.left_out.append(LeftOut(path, "not a regular file"))
        return
    found.files.append(FoundFile(path, status.st_size, (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)))
