"""What a project's ``setup.py`` defines for the compiler on ROCm: options and ``define_macros``."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.port.nesting import NestingError
from rocmend.port.python.file import PythonFile

__all__ = ["Definitions", "definitions"]

_OPTION = re.compile(r"-([DU])[ ]?([A-Za-z_]\w*)(?:=([\w.+-]*))?")
_NAME = re.compile(r"[A-Za-z_]\w*")
_ASKS = re.compile(r"environ|getenv|argv|debug|profil|verbose|win32|windows|darwin|\bnt\b", re.IGNORECASE)
"""What a test asks that decides about options which a plain build does not have."""
_MAX_BYTES = 4 << 20


class Definitions(NamedTuple):
    """Macros.

    Attributes:
        defined: Names and values.
        undefined: Names that are not defined, whoever else defines them.
    """

    defined: dict[str, str]
    undefined: frozenset[str]

    def over(self, macros: dict[str, str]) -> dict[str, str]:
        """Return macros with these definitions made, and those taken away that are undone."""
        kept = {name: value for name, value in macros.items() if name not in self.undefined}
        return {**kept, **{name: value for name, value in self.defined.items() if name not in self.undefined}}


def definitions(tree: Beneath, unit: str) -> Definitions:
    """Return what the nearest ``setup.py`` above a unit defines on ROCm; it is read, never executed.

    Args:
        tree: The project's folder.
        unit: The unit's path.
    """
    for folder in PurePosixPath(unit).parents:
        path = (folder / "setup.py").as_posix()
        if not tree.is_file(path):
            continue
        with contextlib.suppress(OSError, DataError, NestingError):
            return _read(PythonFile(path, tree.document(path, _MAX_BYTES)))
        break
    return Definitions({}, frozenset())


def _read(file: PythonFile) -> Definitions:
    defined: dict[str, str] = {}
    undefined: set[str] = set()
    for text in file.on_rocm(file.of(ast.Constant)):
        if isinstance(text.value, str) and (option := _OPTION.fullmatch(text.value)) and _always(file, text):
            kind, name, value = option.groups()
            if kind == "D":
                defined[name] = "1" if value is None else value
            else:
                undefined.add(name)
    defined |= dict(_pairs(file))
    return Definitions(defined, frozenset(undefined))


def _pairs(file: PythonFile) -> Iterator[tuple[str, str]]:
    """Yield ``("NAME", None)`` and ``("NAME", "1")`` of lists that are called macros."""
    for pair in file.on_rocm(file.of(ast.Tuple)):
        match pair.elts:
            case [ast.Constant(value=str(name)), ast.Constant(value=str() | None as value)] if _NAME.fullmatch(name):
                statement = file.source(file.statement(pair)).split("\n", 1)[0]
                if "macro" in statement and _always(file, pair):
                    yield name, value or ""
            case _:
                pass


def _always(file: PythonFile, node: ast.AST) -> bool:
    """Tell whether no test around a node asks for a variable, an argument or another system."""
    at: ast.AST | None = node
    while at is not None:
        above = file.parent(at)
        if isinstance(above, ast.If | ast.IfExp) and at is not above.test and _ASKS.search(file.source(above.test)):
            return False
        at = above
    return True
