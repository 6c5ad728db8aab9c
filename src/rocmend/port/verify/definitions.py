"""What a project's builds define for the compiler on ROCm: read, never executed."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import NamedTuple

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.port.verify.make_definitions import MAKEFILES, make_options

__all__ = ["MACRO", "Definitions", "definitions", "listed"]

MACRO = r"[A-Za-z_]\w*"
_MAX_BYTES = 4 << 20


class Definitions(NamedTuple):
    """Macros.

    Attributes:
        defined: Names and values.
        undefined: Names that are not defined, whoever else defines them.
        build: What compiles a source with them: ``setup.py, extension 'a'``; empty where that is not said.
    """

    defined: dict[str, str]
    undefined: frozenset[str] = frozenset()
    build: str = ""

    def over(self, macros: dict[str, str]) -> dict[str, str]:
        """Return macros with these definitions made, and those taken away that are undone."""
        kept = {name: value for name, value in macros.items() if name not in self.undefined}
        return {**kept, **{name: value for name, value in self.defined.items() if name not in self.undefined}}

    def __or__(self, other: object) -> Definitions:
        """Return both together; the second one's values count."""
        if not isinstance(other, Definitions):
            return NotImplemented
        return Definitions(self.defined | other.defined, self.undefined | other.undefined, self.build or other.build)


def definitions(tree: Beneath, unit: str) -> tuple[Definitions, ...]:
    """Return the macros that a project's builds compile a unit with on ROCm.

    Args:
        tree: The project's folder.
        unit: The unit's path.

    Returns:
        One for each extension and CMake target that lists the unit with macros of its own. One where none lists it:
        what the nearest Makefile or ``setup.py`` defines, and what CMake does for the unit's folder.
    """
    from rocmend.port.verify import cmake_definitions, setup_definitions

    ways, rest = setup_definitions.of_unit(tree, unit)
    more, folder = cmake_definitions.of_unit(tree, unit)
    found: list[Definitions] = []
    for way in (*ways, *more) or (folder | (_made(tree, unit) or rest),):
        if not any(one[:2] == way[:2] for one in found):
            found.append(way)
    return tuple(found)


def _made(tree: Beneath, unit: str) -> Definitions | None:
    """Read what the nearest Makefile defines, where no ``setup.py`` is as near; of two definitions the last holds."""
    for folder in PurePosixPath(unit).parents:
        if tree.is_file((folder / "setup.py").as_posix()):
            return None
        path = next((one for name in MAKEFILES if tree.is_file(one := (folder / name).as_posix())), "")
        if path:
            break
    else:
        return None
    try:
        data = tree.document(path, _MAX_BYTES)
    except (OSError, DataError):
        return None
    macros: dict[str, str | None] = {}
    options = iter(make_options(data, PurePosixPath(unit).relative_to(folder).as_posix()))
    for word in options:
        kind, rest = word[:2], word[2:] or (next(options, "") if word in {"-D", "-U"} else "")
        name, equals, value = rest.partition("=")
        if kind in {"-D", "-U"} and re.fullmatch(MACRO, name):
            macros[name] = None if kind == "-U" else (value if equals else "1")
    undefined = frozenset(name for name, value in macros.items() if value is None)
    return Definitions({name: value for name, value in macros.items() if value is not None}, undefined, path)


def listed(unit: str, sources: tuple[str, ...]) -> bool:
    """Tell whether a build that names sources compiles a unit.

    Args:
        unit: Relative to the folder of the build.
        sources: As the build names them; their beginning may be unknown, and parts may be ``*``.
    """
    path = PurePosixPath(unit)
    return any(path.match(one) for one in (source.lstrip("./") for source in sources) if one)
