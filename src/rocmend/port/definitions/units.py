"""The macros that a project's builds compile a unit with on ROCm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.port.definitions import setup
from rocmend.port.definitions.cmake import CMake
from rocmend.port.definitions.files import build_files
from rocmend.port.definitions.macros import Definitions, Unknown
from rocmend.port.definitions.make import MAKEFILES, Makefile

__all__ = ["Builds"]

_OTHERS = ("BUILD.bazel", "BUILD", "meson.build")
_MAX_BYTES = 4 << 20


class Builds:
    """A project's builds.

    Args:
        tree: The project's folder.

    Attributes:
        paths: The CMake files and Makefiles that were read.
    """

    def __init__(self, tree: Beneath) -> None:
        self.paths: set[str] = set()
        self._tree = tree
        self._cmake = CMake(self._read)
        self._makefiles: dict[str, Makefile] = {}

    def of_unit(self, unit: str) -> tuple[Definitions, ...]:
        """Return the macros that a unit is compiled with.

        Args:
            unit: The unit's path.

        Returns:
            One for each extension and CMake target that lists the unit with macros of its own. One where none lists it:
            what the nearest Makefile or ``setup.py`` defines, and what CMake does for the unit's folder.
        """
        others = [path for path in build_files(self._tree) if PurePosixPath(path).name == "CMakeLists.txt"]
        ways, rest = setup.of_unit(self._tree, unit)
        more, folder = self._cmake.of_unit(unit, others)
        untold = Definitions({}, unknown=tuple(self._others(unit)))
        found: list[Definitions] = []
        for way in (*ways, *more) or (folder | (self._made(unit) or rest),):
            made = way | untold
            if not any(one._replace(build="") == made._replace(build="") for one in found):
                found.append(made)
        return tuple(found)

    def _others(self, unit: str) -> Iterator[Unknown]:
        """Yield the builds that are not read and may compile a unit."""
        path = PurePosixPath(unit)
        name, ending = re.escape(path.name.encode()), re.escape(path.suffix.encode())
        names = re.compile(rb"\b%b\b|\*%b\b|[\"' ]-D" % (name, ending))
        for folder in path.parents:
            for other in _OTHERS:
                data = self._read((folder / other).as_posix())
                if data is not None and (found := names.search(data)):
                    line = data.count(b"\n", 0, found.start()) + 1
                    yield Unknown("", f"{folder / other}, line {line}: builds of this kind are not read")

    def _made(self, unit: str) -> Definitions | None:
        """Return what the nearest Makefile defines; None where there is none, or a ``setup.py`` is as near."""
        for folder in PurePosixPath(unit).parents:
            if self._tree.is_file((folder / "setup.py").as_posix()):
                return None
            paths = ((folder / name).as_posix() for name in MAKEFILES)
            path = next(filter(self._tree.is_file, paths), "")
            if path:
                return self._makefile(path).definitions(PurePosixPath(unit).relative_to(folder).as_posix())
        return None

    def _makefile(self, path: str) -> Makefile:
        if path not in self._makefiles:
            self._makefiles[path] = Makefile(path, self._read)
        return self._makefiles[path]

    def _read(self, path: str) -> bytes | None:
        try:
            data = self._tree.document(path, _MAX_BYTES) if self._tree.is_file(path) else None
        except (OSError, DataError):
            return None
        self.paths.update([path] if data is not None else [])
        return data
