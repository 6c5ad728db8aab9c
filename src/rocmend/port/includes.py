"""The C++ sources of a project, and which of them each includes."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from rocmend.port.records import Lanes
from rocmend.port.steady import NotReadError, read_steady

__all__ = ["Includes"]


class Includes:
    """What the files of a project include.

    Args:
        root: The project's folder.
        known: What each file says of what it includes, by path.
        max_file_bytes: Larger files are not read.
    """

    def __init__(self, root: Path, known: Mapping[str, Lanes], max_file_bytes: int) -> None:
        self.root = root
        self.known = known
        self.max_file_bytes = max_file_bytes
        self.by_name: dict[str, list[str]] = {}
        for path in known:
            self.by_name.setdefault(PurePosixPath(path).name, []).append(path)
        self.kept: dict[str, bytes] = {}

    def closure(self, path: str) -> set[str]:
        """Return a file and the project's files that it includes, however deep."""
        found: set[str] = set()
        waiting = [path]
        while waiting:
            at = waiting.pop()
            if at not in found:
                found.add(at)
                waiting += [other for name in self.known[at].includes for other in self.meant(at, name)]
        return found

    def meant(self, path: str, name: str) -> Iterable[str]:
        """Return the files that an include may mean: the one beside it, else all whose path ends so."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if beside in self.known:
            return (beside,)
        plain = posixpath.normpath(name).lstrip("./")
        fits = self.by_name.get(PurePosixPath(plain).name, ())
        return [one for one in fits if one == plain or one.endswith(f"/{plain}")]

    def bytes_of(self, path: str) -> bytes:
        """Return a file's bytes; nothing where it cannot be read."""
        if path not in self.kept:
            try:
                self.kept[path] = read_steady(self.root, path, self.max_file_bytes)[0]
            except NotReadError:
                self.kept[path] = b""
        return self.kept[path]
