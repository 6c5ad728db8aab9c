"""Macros that a build defines, and those of which it cannot be told whether it does."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

__all__ = ["MACRO", "Definitions", "Unknown", "listed", "of_options"]

MACRO = r"[A-Za-z_]\w*"
_OPTION = re.compile(rf"-([DU])[ ]?({MACRO})(?:\([^)]*\))?(?:=(.*))?", re.DOTALL)
_PLAIN = re.compile(rf"(?:-D)?({MACRO})(?:\([^)]*\))?(?:=(.*))?", re.DOTALL)
_WITHIN = re.compile(rf"-D[ ]?({MACRO})")
_UNREAD = re.compile(r"\$[{<(]|[\0\2]")
"""A part of a value that the reader of a build left as it stands, for it does not know what it comes to."""
_ANYTHING = re.compile(r"\$[{<(]|\0")
_FILES = re.compile(r"--?(?:include|imacros)\b|@")
"""An option that brings macros of a file."""


class Unknown(NamedTuple):
    """A macro that may be defined.

    Attributes:
        name: Its name; empty where it may be any.
        why: Why that is not known, with the file and line.
    """

    name: str
    why: str


class Definitions(NamedTuple):
    """Macros.

    Attributes:
        defined: Names and values.
        undefined: Names that are not defined, whoever else defines them.
        build: What compiles a source with them: ``setup.py, extension 'a'``; empty where that is not said.
        unknown: What else may be defined, or defined otherwise.
    """

    defined: dict[str, str]
    undefined: frozenset[str] = frozenset()
    build: str = ""
    unknown: tuple[Unknown, ...] = ()

    def over(self, macros: dict[str, str]) -> dict[str, str]:
        """Return macros with these definitions made, and those taken away that are undone."""
        kept = {name: value for name, value in macros.items() if name not in self.undefined}
        return {**kept, **{name: value for name, value in self.defined.items() if name not in self.undefined}}

    def __or__(self, other: object) -> Definitions:
        """Return both together; the second one's values count."""
        if not isinstance(other, Definitions):
            return NotImplemented
        unknown = tuple(dict.fromkeys((*self.unknown, *other.unknown)))
        return Definitions(
            self.defined | other.defined, self.undefined | other.undefined, self.build or other.build, unknown
        )

    def doubted(self, why: str) -> Definitions:
        """Return the same as what may be so."""
        names = sorted(self.defined.keys() | self.undefined)
        return Definitions({}, unknown=(*self.unknown, *(Unknown(name, why) for name in names)))


def of_options(words: Iterable[str], why: str, *, plain: bool = False) -> Definitions:
    """Return the macros of a compiler's options.

    Args:
        words: The options, each as the compiler gets it.
        why: Where they stand, for those that are not known.
        plain: They are macros, with ``-D`` or without.
    """
    made = Definitions({})
    waiting = ""
    for word in words:
        one, waiting = waiting + word, ""
        if one in {"-D", "-U"} and not plain:
            waiting = one
            continue
        found = _PLAIN.fullmatch(one) if plain else None
        option = _OPTION.fullmatch(one)
        kind, name, value = ("D", *found.groups()) if found else option.groups() if option else ("", "", None)
        if kind == "U":
            made |= Definitions({}, frozenset((name,)))
        elif name and not _UNREAD.search(value or ""):
            made |= Definitions({name: "1" if value is None else value})
        elif name:
            made |= Definitions({}, unknown=(Unknown(name, why),))
        elif names := _WITHIN.findall(one):
            made |= Definitions({}, unknown=tuple(Unknown(each, why) for each in names))
        elif one and (plain or one.startswith(("-D", "-U")) or _ANYTHING.match(one) or _FILES.match(one)):
            made |= Definitions({}, unknown=(Unknown("", why),))
    return made


def listed(unit: str, sources: Iterable[str]) -> bool:
    """Tell whether a build that names sources compiles a unit.

    Args:
        unit: Relative to the folder of the build.
        sources: As the build names them; their beginning may be unknown, and parts may be ``*``.
    """
    path = PurePosixPath(unit)
    return any(path.match(one) for one in (source.lstrip("./") for source in sources) if one)
