"""Versions as they are found in the field, put in order.

The order, from the most significant part to the least:

1. an epoch (``1:6.14``), 0 where there is none;
2. the dotted release numbers, trailing zeros ignored: ``7.2`` equals ``7.2.0``;
3. the stage: ``dev`` < ``a``/``alpha`` < ``b``/``beta`` < ``c``/``rc``/``pre`` < no stage < ``post``/``p``, each with
   its number;
4. a ``dev`` number behind another stage: ``2.0a1.dev3`` comes before ``2.0a1``;
5. the build number: digits after a dash, ``34`` in ``6.14.0-34-generic``; none comes before any.

Everything else says where a build comes from, not how new it is, and is ignored: a local part (``+rocm6.2``), a commit
(``-65d174c3e``), a flavour (``-generic``), a distribution's mark (``~24.04``, ``.fc43``).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache, total_ordering
from typing import Any

import msgspec

from rocmend.core.errors import DataError

MAX_VERSION_CHARS = 200
MAX_RANGE_PARTS = 16

_VERSION = re.compile(
    r"""\s*[vV]?
    (?:(?P<epoch>\d{1,9}):)?
    (?P<release>\d{1,18}(?:\.\d{1,18}){0,15})
    (?:[-_.]?(?P<stage>alpha|beta|preview|pre|rc|post|dev|a|b|c|p)[-_.]?(?P<stage_number>\d{0,18})(?![a-z]))?
    (?:[-_.]?dev(?P<dev>\d{0,18}))?
    (?:-(?P<build>\d{1,18})(?![0-9A-Za-z]))?
    (?P<rest>.*)\Z""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_STAGE_RANKS = {"dev": -4, "a": -3, "alpha": -3, "b": -2, "beta": -2, "post": 1, "p": 1}
_PRERELEASE = -1
_NO_DEV = 1 << 62
_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "!=": operator.ne,
    "==": operator.eq,
}
_RANGE_PART = re.compile(r"\s*(>=|<=|==|!=|>|<|)\s*([^\s<>=!,]+)\s*\Z")

Key = tuple[int, tuple[int, ...], int, int, int, int]


@total_ordering
class Version:
    """A version that can be compared with others.

    Args:
        text: The version as it was printed.
        key: What it is ordered by; see the module's documentation.
    """

    __slots__ = ("key", "text")

    def __init__(self, text: str, key: Key) -> None:
        self.text = text
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.key == other.key

    def __lt__(self, other: Version) -> bool:
        return self.key < other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Version({self.text!r})"


class RangePart(msgspec.Struct, frozen=True):
    """One bound of a range: an operator and a version; ``wildcard`` where it was written ``7.2.*``."""

    operator: str
    version: Version
    wildcard: bool = False

    def holds(self, version: Version) -> bool:
        """Whether ``version`` keeps this bound."""
        if self.wildcard:
            size = self.version.text.count(".") + 1
            bound = _padded(self.version.key[1], size)
            same = _padded(version.key[1], size) == bound
            return same if self.operator == "==" else not same
        return bool(_OPERATORS[self.operator](version, self.version))


class VersionRange(msgspec.Struct, frozen=True):
    """Bounds that all have to hold; none at all admits every version."""

    text: str
    parts: tuple[RangePart, ...]

    def __contains__(self, version: Version) -> bool:
        return all(part.holds(version) for part in self.parts)


@lru_cache(maxsize=1024)
def parse_version(text: str) -> Version:
    """Return the version that ``text`` begins with.

    Args:
        text: E.g. ``6.14.0-34-generic``, ``6.2.41134-65d174c3e``, ``2.5.1+rocm6.2``, ``2.11.0a0``.

    Raises:
        DataError: It does not begin with a number, or is longer than any version.
    """
    match = _VERSION.match(text) if len(text) <= MAX_VERSION_CHARS else None
    if match is None or not _continues(match["rest"]):
        raise DataError(
            "version", f"{text[:60]!r} is not a version.", next_step="A version begins with a number: 7.2.1."
        )
    release = tuple(int(part) for part in match["release"].split("."))
    rank, number = 0, 0
    if match["stage"]:
        rank = _STAGE_RANKS.get(match["stage"], _PRERELEASE)
        number = int(match["stage_number"] or 0)
    dev = _NO_DEV if match["dev"] is None else int(match["dev"] or 0)
    if dev != _NO_DEV and rank == 0:
        rank, number, dev = _STAGE_RANKS["dev"], dev, _NO_DEV
    build = -1 if match["build"] is None else int(match["build"])
    return Version(text.strip(), (int(match["epoch"] or 0), _stripped(release), rank, number, dev, build))


def parse_range(text: str) -> VersionRange:
    """Return the range that ``text`` writes; a bare version means that version exactly.

    Args:
        text: Bounds separated by commas: ``>=7.0,<7.2``, ``==7.2.*``, ``7.1``; empty for every version.

    Raises:
        DataError: A bound is not an operator and a version.
    """
    parts: list[RangePart] = []
    pieces = text.split(",") if text.strip() else []
    if len(pieces) > MAX_RANGE_PARTS:
        raise DataError("version range", f"{len(pieces)} bounds; at most {MAX_RANGE_PARTS} are read.")
    for piece in pieces:
        match = _RANGE_PART.match(piece)
        if match is None:
            raise DataError(
                "version range",
                f"{piece.strip()[:60]!r} is not a bound.",
                next_step="Write an operator and a version, separated by commas: >=7.0,<7.2.",
            )
        parts.append(_part(match[1] or "==", match[2]))
    return VersionRange(text, tuple(parts))


def _part(sign: str, version: str) -> RangePart:
    wildcard = version.endswith(".*")
    if wildcard and sign not in {"==", "!="}:
        raise DataError("version range", f"{sign}{version[:60]} orders by a wildcard.", next_step="Use == or !=.")
    return RangePart(sign, parse_version(version.removesuffix(".*")), wildcard)


def _continues(rest: str) -> bool:
    """Whether what follows the numbers is a suffix, not the middle of a word (``7zip`` is no version)."""
    return not rest or not (rest[0].isalnum() or rest[0] == "_")


def _stripped(release: tuple[int, ...]) -> tuple[int, ...]:
    end = len(release)
    while end > 1 and release[end - 1] == 0:
        end -= 1
    return release[:end]


def _padded(release: tuple[int, ...], size: int) -> tuple[int, ...]:
    return (release + (0,) * size)[:size]
