"""Regular expressions whose cost is bounded, for predicates.

A backtracking engine can take exponential time on a pattern that repeats a repetition, and polynomial time on one that
repeats several times in a row. The first kind is refused when the pattern is compiled; of the second, ``search``
refuses texts so long that the worst case would exceed ``MAX_STEPS``.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

import msgspec

from rocmend.core.errors import UnitError

MAX_PATTERN_CHARS = 200
MAX_OPTIONAL = 10
MAX_STEPS = 10**9
"""About the number of steps that the engine takes in a few seconds."""

_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?:|\(\?|\(|\)|\||\{\d*,?\d*\}|[*+?]|.",
    re.DOTALL,
)
_COUNTED = re.compile(r"\{(?:\d+,?\d*|,\d+)\}")


class PatternError(UnitError):
    """A regular expression that is malformed or whose cost has no bound."""

    code = "bad-pattern"

    def __init__(self, pattern: str, message: str, *, next_step: str = "") -> None:
        super().__init__("regular expression", f"{pattern[:60]!r}: {message}", next_step=next_step)


class TextTooLongError(ValueError):
    """A text on which the pattern could take too long."""


class BoundedPattern(msgspec.Struct, frozen=True):
    """A compiled pattern and the number of its repetitions.

    Attributes:
        compiled: What ``re`` made of it.
        repeats: Repetitions of no or a high bound: each multiplies the worst case by the text's length.
        optional: Optional parts: each doubles the worst case.
    """

    compiled: re.Pattern[str]
    repeats: int
    optional: int

    def search(self, text: str) -> bool:
        """Whether the pattern occurs in ``text``.

        Raises:
            TextTooLongError: The text is so long that the search might take too long.
        """
        if len(text) ** (self.repeats + 1) * 2**self.optional > MAX_STEPS:
            raise TextTooLongError(f"a text of {len(text)} characters is too long for {self.compiled.pattern!r}")
        return self.compiled.search(text) is not None


@lru_cache(maxsize=512)
def compile_bounded(pattern: str) -> BoundedPattern:
    """Compile a pattern whose cost can be bounded.

    Args:
        pattern: ``re`` syntax, without back references, look-around, inline flags and nested repetition.

    Raises:
        PatternError: It is malformed, too long, or its cost has no bound.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternError(pattern, f"{len(pattern)} characters; at most {MAX_PATTERN_CHARS} are allowed.")
    repeats, optional = _count(pattern)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a pattern that re only warns about is not what its author meant
            compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise PatternError(pattern, f"{error}.") from None
    return BoundedPattern(compiled, repeats, optional)


def _count(pattern: str) -> tuple[int, int]:
    """Return (repetitions, optional parts); refuse what has no bound."""
    repeats = optional = 0
    groups: list[bool] = []  # of each open group, whether something in it can match in more than one way
    closed = False  # whether such a group ended just before
    quantified = False  # whether a quantifier ended just before, so that a question mark makes it lazy
    for piece in _PIECE.findall(pattern):
        _refuse(pattern, piece)
        repeated = piece in {"*", "+"} or _COUNTED.match(piece) is not None
        made_optional = piece == "?" and not quantified
        if repeated and closed:
            raise PatternError(
                pattern, "repeats a group that itself repeats or chooses.", next_step="Write it without nesting."
            )
        repeats += repeated
        optional += made_optional
        if repeated or made_optional or piece == "|":
            groups = [True] * len(groups)
        if piece in {"(", "(?:"}:
            groups.append(False)
        closed = piece == ")" and bool(groups) and groups.pop()
        quantified = repeated
    if optional > MAX_OPTIONAL:
        raise PatternError(pattern, f"{optional} optional parts; at most {MAX_OPTIONAL} are allowed.")
    return repeats, optional


def _refuse(pattern: str, piece: str) -> None:
    if piece == "(?":
        raise PatternError(pattern, "look-around, named groups and inline flags are not allowed.")
    if piece[0] == "\\" and piece[1:] in set("123456789"):
        raise PatternError(pattern, "back references are not allowed.")
