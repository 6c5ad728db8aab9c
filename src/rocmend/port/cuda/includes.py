"""Which sources of a project include which."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import PurePosixPath

__all__ = ["closure", "included"]

_INCLUDED = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)[>\"]", re.MULTILINE)


def included(sources: Mapping[str, bytes]) -> set[str]:
    """Return the sources that another one includes, beside it or by their path in the project."""
    found: set[str] = set()
    for path, data in sources.items():
        for header in _INCLUDED.findall(data):
            name = header.decode(errors="replace")
            beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            found |= {one for one in (beside, posixpath.normpath(name)) if one in sources and one != path}
    return found


def closure(path: str, sources: Mapping[str, bytes]) -> set[str]:
    """Return a source and the sources of the project that it includes, however deep; by name, whatever the folders are.

    Args:
        path: The source.
        sources: The project's, by path.
    """
    by_name = _by_name(tuple(sources))
    found: set[str] = set()
    waiting = [path]
    while waiting:
        at = waiting.pop()
        if at in found or at not in sources:
            continue
        found.add(at)
        for header in _INCLUDED.findall(sources[at]):
            waiting += by_name.get(PurePosixPath(header.decode(errors="replace")).name, ())
    return found


@lru_cache(maxsize=4)
def _by_name(paths: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for path in paths:
        name = PurePosixPath(path).name
        found[name] = (*found.get(name, ()), path)
    return found
