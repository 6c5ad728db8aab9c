"""What a project's build defines for the compiler on ROCm: its ``setup.py``, or its Makefile."""

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
from rocmend.port.verify.make_definitions import MAKEFILES, make_options

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
    """Return what the nearest ``setup.py`` or Makefile above a unit defines on ROCm; it is read, never executed.

    Args:
        tree: The project's folder.
        unit: The unit's path.
    """
    for folder in PurePosixPath(unit).parents:
        path = (folder / "setup.py").as_posix()
        makefile = next((one for name in MAKEFILES if tree.is_file(one := (folder / name).as_posix())), "")
        if not makefile and not tree.is_file(path):
            continue
        with contextlib.suppress(OSError, DataError, NestingError):
            if tree.is_file(path):
                return _read(PythonFile(path, tree.document(path, _MAX_BYTES)))
            return _made(tree.document(makefile, _MAX_BYTES), PurePosixPath(unit).relative_to(folder).as_posix())
        break
    return Definitions({}, frozenset())


def _made(makefile: bytes, unit: str) -> Definitions:
    """Read what a Makefile defines; of two definitions of a macro the last holds."""
    macros: dict[str, str | None] = {}
    options = iter(make_options(makefile, unit))
    for word in options:
        kind, rest = word[:2], word[2:] or (next(options, "") if word in {"-D", "-U"} else "")
        name, equals, value = rest.partition("=")
        if kind in {"-D", "-U"} and _NAME.fullmatch(name):
            macros[name] = None if kind == "-U" else (value if equals else "1")
    undefined = frozenset(name for name, value in macros.items() if value is None)
    return Definitions({name: value for name, value in macros.items() if value is not None}, undefined)


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
