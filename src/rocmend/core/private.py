"""Folders that nobody else can write to, and what is loaded from them.

A file that another user can change, or a folder on the way to it that another user can replace, makes their code ours.
So a cache is used only where every folder on its path belongs to us or to root and no one else may write to it. A
sticky folder such as ``/tmp`` may lie on the way: there others can neither remove nor replace what is ours.

In a user namespace that does not map root (rootless Apptainer, ``unshare -U --map-user``), ``/`` belongs to the user
that stands for all that are not mapped. A folder of theirs may lie on the way too, but for one that anybody could have
made: in a folder that all may write to.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import stat
from pathlib import Path

from rocmend.core.errors import RocmendError
from rocmend.core.files import make_private
from rocmend.core.places import CACHE_VARIABLE, cache_home
from rocmend.core.scratch import ScratchFolder

__all__ = ["UntrustedError", "cache_folder", "is_own_file", "private_folder", "untrusted"]

log = logging.getLogger("rocmend")

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40


class UntrustedError(RocmendError):
    """Another user could have put something into a folder that code is loaded from."""

    code = "untrusted"


def untrusted(folder: Path) -> str:
    """Say who else can write to a folder or put another in its place; empty where nobody can.

    Links on the way are followed where they belong to us or to root. What is not there yet counts as nobody's.
    """
    current, left = Path("/"), [*reversed(folder.absolute().parts)]
    links = 0
    while left:
        name = left.pop()
        if name == "..":
            current = current.parent
            continue
        current /= name  # the first is "/", which replaces everything before it
        try:
            found = current.lstat()
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{current} cannot be looked at ({error.strerror})"
        if problem := _problem(current, found, last=not left):
            return problem
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS:
                return f"{folder} leads through too many links"
            left += reversed(current.readlink().parts)
            current = current.parent
    return ""


def _problem(path: Path, found: os.stat_result, *, last: bool) -> str:
    if found.st_uid not in {0, os.geteuid()} and (last or not _may_be_roots(path, found)):
        return f"{path} belongs to {_user(found.st_uid)}"
    if stat.S_ISLNK(found.st_mode):
        return ""
    if not stat.S_ISDIR(found.st_mode):
        return f"{path} is no folder"
    if not found.st_mode & _OTHERS_WRITE or (found.st_mode & stat.S_ISVTX and not last):
        return ""
    if not found.st_mode & stat.S_IWOTH and _only_ours(found.st_gid):
        return ""
    return f"other users can write to {path} (mode {stat.S_IMODE(found.st_mode):04o})"


def _may_be_roots(path: Path, found: os.stat_result) -> bool:
    """Tell whether something belongs to a root that is not mapped here, and lies where only root could have put it."""
    if found.st_uid != _unmapped_root():
        return False
    parent = path.parent.lstat()  # no link: the path to it has been followed
    return not parent.st_mode & _OTHERS_WRITE


@functools.cache
def _unmapped_root() -> int | None:
    """Return the user that root's files seem to belong to in this user namespace; None where root is mapped.

    Source: user_namespaces(7), "Unmapped user and group IDs"
    """
    try:
        maps = [line.split() for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()]
        if any(first == "0" for first, *_ in maps):
            return None
        return int(Path("/proc/sys/kernel/overflowuid").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _only_ours(group: int) -> bool:
    """Tell whether a group is the user's private one, with which many systems make folders (umask 002)."""
    import grp
    import pwd

    user = os.geteuid()
    if user == 0:
        return False
    try:
        own, entry = pwd.getpwuid(user), grp.getgrgid(group)
    except KeyError:
        return False
    return own.pw_gid == group and entry.gr_name == own.pw_name and set(entry.gr_mem) <= {own.pw_name}


def _user(number: int) -> str:
    import pwd

    try:
        return f"{pwd.getpwuid(number).pw_name} (uid {number})"
    except KeyError:
        return f"uid {number}"


def private_folder(*parts: str) -> Path:
    """Return a folder of the cache that only we can write to; it is made where it is not there.

    Args:
        parts: Its name below ``cache_home()``.

    Raises:
        UntrustedError: Another user could have put something there.
        OSError: It cannot be made.
    """
    current = cache_home()
    make_private(current)
    for part in parts:
        current /= part
        if current.is_symlink():
            raise _refused(current, f"{current} is a link")
        current.mkdir(mode=0o700, exist_ok=True)
    if problem := untrusted(current):
        raise _refused(current, problem)
    return current


def _refused(folder: Path, problem: str) -> UntrustedError:
    return UntrustedError(
        str(folder),
        f"This folder is not used: {problem}.",
        why="Another user could have put code there that would run as you.",
        next_step=f"Remove it, take the right to write from others (chmod go-w), or name a folder of your own with "
        f"{CACHE_VARIABLE}.",
    )


def cache_folder(*parts: str) -> Path:
    """Return a folder of the cache that only we can write to; where there is none, one that ends with this process.

    Args:
        parts: Its name below ``cache_home()``.
    """
    try:
        return private_folder(*parts)
    except (RocmendError, OSError) as error:
        folder = _temporary().path.joinpath(*parts)
        _tell(str(error))
        make_private(folder)
        return folder


@functools.cache
def _tell(problem: str) -> None:
    log.warning("%s What is compiled or read now is not kept for the next time.", problem)


@functools.cache
def _temporary() -> ScratchFolder:
    """Return a folder of this process's own, which goes when it ends."""
    return ScratchFolder("cache")


def is_own_file(path: Path) -> bool:
    """Tell whether a path is a file with something in it, no link, that only we or root could have written."""
    with contextlib.suppress(OSError):
        found = path.lstat()
        return (
            stat.S_ISREG(found.st_mode)
            and found.st_size > 0
            and found.st_uid in {0, os.geteuid()}
            and not found.st_mode & _OTHERS_WRITE
        )
    return False
