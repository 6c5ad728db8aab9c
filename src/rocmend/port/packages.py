"""How a Python file of a project reaches the module that defines ``is_rocm``, or the project's own flag.

What can go wrong here breaks the NVIDIA path too: an import that fails. So a file imports only what is certain to be
found from where it stands, and defines the flag itself otherwise.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Collection
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from rocmend.core.beneath import Beneath
from rocmend.core.documents import PYTHON_BYTES
from rocmend.core.errors import DataError

__all__ = ["Reach", "Reaches"]

MODULE = "_rocm"
_RELATIVE = re.compile(rb"^[ \t]*from[ \t]+\.", re.MULTILINE)
_IMPORTED = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_IMPORTED_AT_TOP = re.compile(rb"^(?:from|import)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_OF_TESTS = re.compile(r"(?:^|/)(?:tests?|testing|unittests?)/|(?:^|/)(?:test_[^/]*|[^/]*_test)\.py\Z")
"""Modules that runners of tests import from their own folder, or as another package than their folders say."""
_FROM = re.compile(rb"^[ \t]*from[ \t]+([A-Za-z_]\w*)[ \t]+import[ \t]+\(?([^()#\r\n]+)", re.MULTILINE)
_DOTTED = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([A-Za-z_]\w*)\.(\w+)", re.MULTILINE)
_IS_SCRIPT = re.compile(rb"\A#!|^if[ \t]+\(?__name__[ \t]*==", re.MULTILINE)
_HIP = re.compile(rb"version\.hip\b|[\"']hip[\"']")
_LARGEST = 1 << 20  # bytes of a module that is looked at for what it imports
_MOST_FILES = 5000  # of a package that are looked at for what they import
_NO_MODULES = frozenset({"setup.py", "conftest.py", "noxfile.py", "conf.py"})
"""Files that tools execute with a search path of their own."""


class Reach(NamedTuple):
    """How a file reaches the support modules.

    Attributes:
        module: Of ``is_rocm``, as the file's import says it; empty where the file defines the flag itself;
            ``module:NAME`` where the project has a flag of its own.
        folder: The folder that holds the support modules, relative to the project.
    """

    module: str
    folder: str


def _flag_in(tree: Beneath, file: str) -> tuple[str, str] | None:
    """Return a module's name and its flag for ROCm, where it is proven to be one and safe to import."""
    path = PurePosixPath(file)
    if path.suffix != ".py" or path.name in {"__init__.py", f"{MODULE}.py"}:
        return None
    data = _read(tree, file, PYTHON_BYTES)
    if not data or not _HIP.search(data) or _RELATIVE.search(data):
        return None
    if (path.parent.name or tree.root.name).encode() in {match.group(1) for match in _IMPORTED.finditer(data)}:
        return None
    from rocmend.port.python.file import PythonFile
    from rocmend.port.python.flags import is_name, proven_names

    try:
        names = proven_names(PythonFile(path.name, data))
    except (DataError, RecursionError):
        return None
    own = [name for name, node in names.items() if isinstance(node, ast.Assign | ast.AnnAssign) and is_name(name)]
    return (path.stem, own[0]) if own else None


def _read(tree: Beneath, path: str, most: int) -> bytes:
    """Return a module's bytes; none where it cannot be read."""
    try:
        return tree.document(path, most)
    except (OSError, DataError):
        return b""


class Reaches:
    """The packages of one project, as its files lie.

    Args:
        root: The project's folder.
    """

    def __init__(self, root: Path) -> None:
        self._tree = Beneath(root)
        self._packages: dict[str, bool] = {}
        self._flags: dict[str, tuple[str, str] | None] = {}
        self._names: dict[str, dict[str, set[str]]] = {}

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
        imported = {match.group(1).decode("ascii", "replace") for match in _IMPORTED_AT_TOP.finditer(data)}
        depth = self._depth(folder)
        if depth == 0:
            return Reach(MODULE if self._finds_siblings(folder, data) else "", folder)
        parts = where.parent.parts
        if parts[-depth] not in imported or _RELATIVE.search(data):
            depth = self._sure_depth(parts, depth)
        top = parts[-depth]
        home = "/".join(parts[: len(parts) - depth + 1])
        own = self._own_flag(home) if set(needs) <= {"is_rocm"} else None
        module = MODULE
        if own is not None and path != f"{home}/{own[0]}.py":
            module = ":".join(own)
        relative = _RELATIVE.search(data) is not None
        if not relative and top in imported:
            return Reach(f"{top}.{module}", home)
        executed = not relative and (where.name == "__main__.py" or _IS_SCRIPT.search(data) is not None)
        alone = where.name != "__init__.py" and (executed or _OF_TESTS.search(path) is not None)
        return Reach("", folder) if alone else Reach("." * depth + module, home)

    def _own_flag(self, home: str) -> tuple[str, str] | None:
        """Return the module beside a package's ``__init__.py`` that defines a flag for ROCm, and the flag's name.

        Only one that can be imported from everywhere in the package: it imports nothing of the package itself.
        """
        if home not in self._flags:
            found = (_flag_in(self._tree, path) for path in self._tree.files(home))
            self._flags[home] = next((one for one in found if one is not None), None)
        return self._flags[home]

    def _sure_depth(self, parts: tuple[str, ...], depth: int) -> int:
        """Return how many of a file's folders are packages by the names that the project itself gives them.

        Where ``app/backend`` is put on the search path, what lies in ``app/backend/core`` is imported as ``core``, and
        a relative import that leads above ``core`` fails, whatever ``__init__.py`` there is.
        """
        names = self._imported_in("/".join(parts[: len(parts) - depth + 1]))
        for inner in range(1, depth):
            folder = "/".join(parts[: len(parts) - inner + 1])
            for module in names.get(parts[-inner], ()):
                if self._tree.is_file(f"{folder}/{module}.py") or self._tree.is_own_folder(f"{folder}/{module}"):
                    return inner
        return depth

    def _imported_in(self, home: str) -> dict[str, set[str]]:
        """Return the names that the files of a package import from the search path, each with the names in it."""
        if home not in self._names:
            found: dict[str, set[str]] = {}
            modules = (path for path in self._tree.files(home, deep=True) if path.endswith(".py"))
            for path in islice(modules, _MOST_FILES):
                data = _read(self._tree, path, _LARGEST)
                for name, rest in [*_DOTTED.findall(data), *_FROM.findall(data)]:
                    found.setdefault(name.decode(), set()).update(re.findall(r"\w+", rest.decode("ascii", "ignore")))
            self._names[home] = found
        return self._names[home]

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
            known = name.isidentifier() and self._tree.is_file(f"{folder}/__init__.py")
            self._packages[folder] = known
        return known

    def _finds_siblings(self, folder: str, data: bytes) -> bool:
        """Tell whether a file imports, by its bare name, a module that lies beside it, and names that this defines.

        The names matter: ``types.py`` beside a file does not make ``from types import GenericAlias`` mean it.
        """
        for module, names in _FROM.findall(data):
            name = module.decode("ascii", "replace")
            if name in sys.stdlib_module_names:
                continue
            there = _read(self._tree, f"{folder}/{name}.py".lstrip("/"), _LARGEST)
            if any(
                re.search(
                    rb"^(?:(?:async[ \t]+)?def|class)[ \t]+%b\b|^%b[ \t]*[:=]" % (item, item), there, re.MULTILINE
                )
                for item in re.findall(rb"[A-Za-z_]\w*", names)
            ):
                return True
        return False
