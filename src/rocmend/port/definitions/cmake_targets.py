"""Targets and folders of a CMake project, and what each defines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from rocmend.port.definitions.cmake_words import Doubt, Word
from rocmend.port.definitions.macros import Definitions

__all__ = ["PROPERTIES", "Folder", "Target", "reached", "wants"]

PROPERTIES = {"COMPILE_DEFINITIONS": True, "COMPILE_OPTIONS": False, "COMPILE_FLAGS": False}
"""Properties that define macros, each with whether it holds macros and not options."""

_MOST_STARS = 8


def _nothing() -> Definitions:
    return Definitions({})


@dataclass
class Folder:
    """A folder with a ``CMakeLists.txt``.

    Attributes:
        path: Of its file.
        variables: What is set in it.
        made: What is defined for all its sources.
        options: Options of the targets that are made from here on.
        within: The doubtful blocks that it is read in.
        parent: The folder that adds it.
    """

    path: str
    variables: dict[str, list[Word]]
    made: Definitions = field(default_factory=_nothing)
    options: Definitions = field(default_factory=_nothing)
    within: tuple[Doubt, ...] = ()
    parent: Folder | None = None


@dataclass
class Target:
    """A target.

    Attributes:
        folder: That makes it; None where nothing did that was read.
        within: The doubtful blocks that it is made in.
        sources: Patterns of paths within the project.
        untold: Where its sources are named that are not known; empty where all are known.
        own: What is defined for its own sources.
        given: What is defined for those that are linked with it.
        links: What it is linked with, each with the scope.
    """

    folder: Folder | None = None
    within: tuple[Doubt, ...] = ()
    sources: list[str] = field(default_factory=list)
    untold: str = ""
    own: Definitions = field(default_factory=_nothing)
    given: Definitions = field(default_factory=_nothing)
    links: list[tuple[str, str]] = field(default_factory=list)

    def lists(self, unit: str) -> bool:
        """Tell whether it is made of a source."""
        return wants(self.sources, unit)


def wants(patterns: Iterable[str], path: str) -> bool:
    """Tell whether one of the patterns is for a path."""
    return any(_pattern(one).fullmatch(path) for one in patterns)


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    if text.count("*") > _MOST_STARS:  # a stranger's: it would take for ever
        text = "**/*"
    signs = {"**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(signs.get(part) or re.escape(part) for part in re.split(r"(\*\*/|\*|\?)", text)))


def reached(target: Target, targets: Mapping[str, Target], names: Mapping[str, str]) -> Iterator[Target]:
    """Yield the targets whose definitions for others a target gets.

    Args:
        target: The target.
        targets: All, by name.
        names: The targets' other names.
    """
    seen: set[str] = set()
    waiting = _linked(target.links, {"PUBLIC", "PRIVATE"}, names)
    while waiting:
        name = waiting.pop()
        if name not in seen and name in targets:
            seen.add(name)
            yield targets[name]
            waiting += _linked(targets[name].links, {"PUBLIC", "INTERFACE"}, names)


def _linked(links: Sequence[tuple[str, str]], scopes: set[str], names: Mapping[str, str]) -> list[str]:
    return [names.get(name, name) for name, scope in links if scope in scopes]
