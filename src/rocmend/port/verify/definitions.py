"""What a project's builds define for the compiler on ROCm: read from ``setup.py`` and CMake files, never executed."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import NamedTuple

from rocmend.core.beneath import Beneath

__all__ = ["MACRO", "Definitions", "definitions", "listed"]

MACRO = r"[A-Za-z_]\w*"


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
        One for each extension and target that lists the unit with macros of its own; one where none lists it: what
        the nearest ``setup.py`` defines anywhere, and what CMake defines for the whole folder.
    """
    from rocmend.port.verify import cmake_definitions, setup_definitions

    ways, rest = setup_definitions.of_unit(tree, unit)
    more, folder = cmake_definitions.of_unit(tree, unit)
    found: list[Definitions] = []
    for way in (*ways, *more) or (rest | folder,):
        if not any(one[:2] == way[:2] for one in found):
            found.append(way)
    return tuple(found)


def listed(unit: str, sources: tuple[str, ...]) -> bool:
    """Tell whether a build that names sources compiles a unit.

    Args:
        unit: Relative to the folder of the build.
        sources: As the build names them; their beginning may be unknown, and parts may be ``*``.
    """
    path = PurePosixPath(unit)
    return any(path.match(one) for one in (source.lstrip("./") for source in sources) if one)
