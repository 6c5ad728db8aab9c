"""Which macros that may be defined matter to a source: those that it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from rocmend.port.cuda.conditions import NVIDIA, OWN, ROCM
from rocmend.port.definitions.macros import Definitions

__all__ = ["undecided"]

_CONDITION = re.compile(rb"^[ \t]*#[ \t]*(?:el)?if(?:n?def)?\b((?:[^\n\\]|\\.)*)", re.MULTILINE | re.DOTALL)
_GUARD = re.compile(rb"^[ \t]*#[ \t]*ifndef[ \t]+(\w+)\s*^[ \t]*#[ \t]*define[ \t]+\1[ \t]*$", re.MULTILINE)
_COMMENT = re.compile(rb"//[^\n]*|/\*.*?\*/", re.DOTALL)
_NAME = re.compile(rb"\b[A-Za-z_]\w*")
_NOT_OF_BUILDS = re.compile(rb"_[A-Z_]\w*|(?:defined|and|or|not|true|false|NDEBUG|\w+_VERSION(?:_\w+)?)\Z")
"""Names that a build does not define for its sources: the compiler's, the language's, those of libraries' headers."""
_SHOWN = 3


def undecided(made: Definitions, sources: Sequence[bytes]) -> str:
    """Return why it is not known what a unit is compiled with; empty where that is known as far as it matters.

    Args:
        made: What the build defines.
        sources: The unit, and the project's files that it includes.
    """
    names = {one.name for one in made.unknown if one.name}
    asked = {name for name in names if _named(name.encode(), sources)}
    any_name = next((one for one in made.unknown if not one.name), None)
    if any_name is not None and (others := sorted(_conditions(sources) - {name.encode() for name in made.defined})):
        shown = ", ".join(name.decode(errors="replace") for name in others[:_SHOWN])
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        return f"the macros are not all known ({any_name.why}), and the source asks for {shown}{more}"
    if asked:
        first = min(asked)
        why = next(one.why for one in made.unknown if one.name == first)
        return f"the macros are not all known: whether {first} is defined, or as what ({why})"
    return ""


def _named(name: bytes, sources: Iterable[bytes]) -> bool:
    word = re.compile(rb"\b" + re.escape(name) + rb"\b")
    return any(name in data and word.search(data) for data in sources)


def _conditions(sources: Iterable[bytes]) -> set[bytes]:
    """Return the names in conditions that a build may define."""
    found: set[bytes] = set()
    for data in sources:
        guards = set(_GUARD.findall(data))
        for condition in _CONDITION.findall(data):
            found.update(name for name in _NAME.findall(_COMMENT.sub(b"", condition)) if name not in guards)
    known = (ROCM.keys() | NVIDIA.keys()) - OWN.keys()  # a project's own are what its build makes them
    return {name for name in found - known if not _NOT_OF_BUILDS.match(name)}
