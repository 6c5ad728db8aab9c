"""Where a file is today that a port changed and that was moved or renamed since."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection
from functools import cached_property
from pathlib import Path, PurePosixPath

from rocmend.core.errors import DataError
from rocmend.port.state import Generation
from rocmend.port.steady import NotReadError, read_steady

__all__ = ["OF_HIP", "Moves"]

_SHARE = 0.5
"""Of the lines of a file that another one must have to be the same one, moved: as git has it."""
OF_HIP = (".hip", ".hip.cpp", ".hip.h")
"""Endings of sources for HIP, which rules do not read."""
_SOURCES = {".cu", ".cuh", ".hip", ".h", ".hpp", ".cc", ".cpp", ".cxx"}
"""Endings that a source may change with, when a person makes it one for HIP."""
_MOST_OF_HIP = 10_000
_MOST_MOVED = 64
_MOST_BYTES = 64 << 20
"""Of all files that are read to find those that were moved."""


class Moves:
    """Finds files by their content.

    Args:
        root: The project's folder.
        paths: Its files.
        max_file_bytes: Larger files are not read.
    """

    def __init__(self, root: Path, paths: Collection[str], max_file_bytes: int) -> None:
        self._root = root
        self._paths = paths
        self._max_file_bytes = max_file_bytes
        self._left = _MOST_BYTES
        self._known: dict[str, str] = {}
        self._lines: dict[str, frozenset[bytes]] = {}

    def new_path(self, port: Generation, path: str) -> str:
        """Return where a file is today; empty where it is where it was, is nowhere, or cannot be told.

        Args:
            port: The port that changed it.
            path: Where it was.
        """
        if path not in self._known:
            self._known[path] = self._find(port, path) if len(self._known) < _MOST_MOVED else ""
        return self._known[path]

    def is_gone(self, path: str) -> bool:
        """Tell whether there is no file any more where one was."""
        return not (self._root / path).is_symlink() and not (self._root / path).exists()

    def _find(self, port: Generation, path: str) -> str:
        if not self._paths or not self.is_gone(path):
            return ""
        entry = next((one for one in port.manifest.entries if one.path == path), None)
        try:
            lines = _lines_of((port.original(entry) if entry else None) or b"")
        except DataError:
            return ""
        old = PurePosixPath(path)
        shares: Counter[str] = Counter()
        for other in sorted({*self._paths, *self._for_hip}):
            name = PurePosixPath(other)
            same = name.suffix == old.suffix or {name.suffix, old.suffix} <= _SOURCES
            if same and (name.suffix or name.name == old.name):
                shares[other] = len(lines & self._of(other))
        best = max(shares, key=lambda one: (shares[one], PurePosixPath(one).name == old.name), default="")
        return best if lines and shares[best] >= _SHARE * len(lines) else ""

    @cached_property
    def _for_hip(self) -> list[str]:
        """Return the sources that are named for HIP: rules do not read them."""
        found = []
        for folder, names, files in os.walk(self._root):
            names[:] = [name for name in names if not name.startswith(".")]
            paths = (Path(folder) / name for name in files if name.endswith(OF_HIP))
            found += [path.relative_to(self._root).as_posix() for path in paths if not path.is_symlink()]
            if len(found) > _MOST_OF_HIP:
                break
        return found

    def _of(self, path: str) -> frozenset[bytes]:
        if path not in self._lines:
            self._lines[path] = frozenset()
            if self._left > 0:
                try:
                    data, _ = read_steady(self._root, path, self._max_file_bytes)
                except NotReadError:
                    data = b""
                self._left -= len(data)
                self._lines[path] = _lines_of(data)
        return self._lines[path]


def _lines_of(data: bytes) -> frozenset[bytes]:
    return frozenset(line for line in map(bytes.strip, data.splitlines()) if line)
