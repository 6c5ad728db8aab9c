"""How a Python file of a project reaches the module that defines ``is_rocm``.

What can go wrong here breaks the NVIDIA path too: an import that fails. So a file imports only what is certain to be
found from where it stands, and defines the flag itself otherwise.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import Path, PurePosixPath
from typing import NamedTuple

__all__ = ["Reach", "Reaches"]

MODULE = "_rocm"
_RELATIVE = re.compile(rb"^[ \t]*from[ \t]+\.", re.MULTILINE)
_IMPORTED = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_FROM = re.compile(rb"^[ \t]*from[ \t]+([A-Za-z_]\w*)[ \t]+import[ \t]+\(?([^()#\r\n]+)", re.MULTILINE)
_IS_SCRIPT = re.compile(rb"\A#!|^if[ \t]+\(?__name__[ \t]*==", re.MULTILINE)
_NO_MODULES = frozenset({"setup.py", "conftest.py", "noxfile.py", "conf.py"})
"""Files that tools execute with a search path of their own."""


class Reach(NamedTuple):
    """How a file reaches the support modules.

    Attributes:
        module: Of ``is_rocm``, as the file's import says it; empty where the file defines the flag itself.
        folder: The folder that holds the support modules, relative to the project.
    """

    module: str
    folder: str


class Reaches:
    """The packages of one project, as its files lie.

    Args:
        root: The project's folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._packages: dict[str, bool] = {}

    def of(self, path: str, data: bytes, needs: Collection[str] = ()) -> Reach:
        """Return how a file reaches the support modules.

        Args:
            path: Relative to the project.
            data: The file's bytes: what it imports already says what it can import.
            needs: Support units that its rewrites use.
        """
        where = PurePosixPath(path)
        folder = "" if str(where.parent) == "." else str(where.parent)
        if where.name in _NO_MODULES:
            return Reach("", folder)
        imported = {match.group(1).decode("ascii", "replace") for match in _IMPORTED.finditer(data)}
        depth = self._depth(folder)
        if depth == 0:
            more = any(need != "is_rocm" for need in needs) and _IS_SCRIPT.search(data) is not None
            return Reach(MODULE if more or self._finds_siblings(folder, data) else "", folder)
        parts = where.parent.parts
        top = parts[len(parts) - depth :][0]
        home = "/".join(parts[: len(parts) - depth + 1])
        relative = _RELATIVE.search(data) is not None
        if not relative and top in imported:
            return Reach(f"{top}.{MODULE}", home)
        alone = not relative and where.name != "__init__.py" and _IS_SCRIPT.search(data)
        return Reach("" if alone else "." * depth + MODULE, home)

    def _depth(self, folder: str) -> int:
        """Return how many folders, from a file's own upwards, are packages."""
        depth = 0
        while folder and self._is_package(folder):
            depth += 1
            folder = folder.rpartition("/")[0]
        return depth

    def _is_package(self, folder: str) -> bool:
        known = self._packages.get(folder)
        if known is None:
            name = folder.rpartition("/")[2]
            known = name.isidentifier() and (self._root / folder / "__init__.py").is_file()
            self._packages[folder] = known
        return known

    def _finds_siblings(self, folder: str, data: bytes) -> bool:
        """Tell whether a file imports, by its bare name, a module that lies beside it, and names that this defines.

        The names matter: ``types.py`` beside a file does not make ``from types import GenericAlias`` mean it.
        """
        for module, names in _FROM.findall(data):
            beside = self._root / folder / f"{module.decode('ascii', 'replace')}.py"
            if module.decode("ascii", "replace") in sys.stdlib_module_names or not beside.is_file():
                continue
            try:
                there = beside.read_bytes()
            except OSError:
                continue
            if any(
                re.search(
                    rb"^(?:(?:async[ \t]+)?def|class)[ \t]+%b\b|^%b[ \t]*[:=]" % (name, name), there, re.MULTILINE
                )
                for name in re.findall(rb"[A-Za-z_]\w*", names)
            ):
                return True
        return False
