"""Files that a command writes for its user: where the user said, and nowhere that a link, a pipe or a mistake leads.

``check_named`` says before the work begins what ``write_named`` would refuse when it is done.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from pathlib import Path

from rocmend.core.beneath import Beneath, UnsafePathError
from rocmend.core.errors import UsageError
from rocmend.core.files import naming

__all__ = ["check_named", "try_place", "write_named"]

_STREAM = re.compile(r"/dev/(?P<name>stdout|stderr)|(?:/dev|/proc/self)/fd/(?P<number>\d{1,6})")
_HEAD_BYTES = 4096
_TRIED_BYTES = 64 * 1024
_OTHER = "Name another with -o."


def check_named(path: Path, *, project: Path | None = None, only: bytes = b"") -> None:
    """Refuse a file that is not to be written.

    Open streams (``/dev/stdout``, ``/dev/fd/N``) and character devices are written to. A regular file is replaced. Its
    folder has to be there.

    Args:
        path: The file.
        project: A stranger's folder: below it no component may be a link.
        only: Where something stands there already, it has to be a regular file that begins with something that holds
            this; for names that nobody gave.

    Raises:
        UnsafePathError: It is a link, or lies below one of the project's.
        UsageError: It cannot be, or is not to be, written.
        OSError: It cannot be looked at.
    """
    if _descriptor(path) is not None:
        return
    if not path.parent.is_dir():
        raise UsageError(str(path), f"the folder {path.parent} does not exist.", next_step="Make it, or name another.")
    status = _status(path)
    if status is not None and stat.S_ISLNK(status.st_mode):
        raise UnsafePathError(
            str(path),
            "is a symbolic link, which is not written through.",
            why="It can lead to any file, and may have come with the project.",
            next_step="Name the file that it leads to, or remove the link.",
        )
    inside = _inside(path, project)
    if inside is not None:
        with Beneath(inside[0]) as tree:
            tree.is_folder(inside[1])  # refuses a link on the way
    if status is not None:
        _check_what_is_there(path, status.st_mode, only)
    if (status is None or stat.S_ISREG(status.st_mode)) and not os.access(path.parent, os.W_OK | os.X_OK):
        raise UsageError(str(path), f"{path.parent} is not writable.", next_step="Name another place.")


def _check_what_is_there(path: Path, mode: int, only: bytes) -> None:
    if stat.S_ISCHR(mode) and not only:
        return
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket"}
        what = kinds.get(stat.S_IFMT(mode), "a device")
        raise UsageError(str(path), f"is {what}, which is not replaced or written to.", next_step=_OTHER)
    if only:
        with Beneath(path.parent) as tree, tree.opened(path.name) as handle:
            head = os.read(handle, _HEAD_BYTES)
        if only not in head:
            raise UsageError(
                str(path),
                "is there and is no report of rocmend, so it is not replaced.",
                why="Nobody named this file: it is the default.",
                next_step=_OTHER,
            )


def try_place(path: Path) -> None:
    """Write a little beside a file that ``check_named`` allows, and take it away again.

    A full disk, a quota and a share of the network refuse what the permissions allow.

    Args:
        path: The file; streams and devices are not tried.

    Raises:
        OSError: Nothing can be written there.
    """
    status = _status(path)
    if _descriptor(path) is not None or (status is not None and not stat.S_ISREG(status.st_mode)):
        return
    name = f".rocmend-{secrets.token_hex(8)}.part"
    with naming(path), Beneath(path.parent) as tree:
        try:
            tree.create(name, bytes(_TRIED_BYTES))
        finally:
            tree.unlink(name, missing_ok=True)


def write_named(path: Path, data: bytes | str, *, project: Path | None = None, only: bytes = b"") -> None:
    """Write a file that ``check_named`` allows: atomically, and through no link.

    Args:
        path: The file.
        data: Bytes, or text written as UTF-8.
        project: As for ``check_named``.
        only: As for ``check_named``.

    Raises:
        UnsafePathError: As ``check_named``.
        UsageError: As ``check_named``.
        OSError: It cannot be written.
    """
    payload = data.encode(errors="replace") if isinstance(data, str) else data
    check_named(path, project=project, only=only)
    with naming(path):
        descriptor = _descriptor(path)
        status = None if descriptor is not None else _status(path)
        if descriptor is None and status is not None and stat.S_ISCHR(status.st_mode):
            descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC)
        elif descriptor is not None:
            sys.stdout.flush()
            descriptor = os.dup(descriptor)  # shares its place in the file with what we print
        if descriptor is not None:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(payload)
            return
        root, name = _inside(path, project) or (path.parent, path.name)
        with Beneath(root) as tree:
            tree.put(name, payload)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _descriptor(path: Path) -> int | None:
    """Return the number of the open stream that a path names; None for other paths."""
    found = _STREAM.fullmatch(os.path.abspath(path))  # noqa: PTH100  resolve() would follow the links
    if found is None:
        return None
    return {"stdout": 1, "stderr": 2}[found["name"]] if found["name"] else int(found["number"])


def _inside(path: Path, project: Path | None) -> tuple[Path, str] | None:
    """Return the project's folder as the path has it, and the path below it; None where it is elsewhere."""
    if project is None or not project.is_dir():
        return None
    full = Path(os.path.abspath(path))  # noqa: PTH100  resolve() would follow the links
    root = next((folder for folder in full.parents if folder.is_dir() and folder.samefile(project)), None)
    return (root, str(full.relative_to(root))) if root else None
