"""The names that a person may have meant by one that there is none of."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rocmend.core.errors import UsageError

__all__ = ["did_you_mean", "misspelled", "nearest", "unknown"]

_MOST = 5
"""Names suggested at most."""
_FEW = 12
"""Names that are listed where none is near."""
_NEAR = 0.34
"""Edits that a name may be away, as a share of the longer of the two."""
_LONGEST = 100
"""Characters of a given name that are looked at: what is longer is no name."""
_WORD = 3
"""Parts of a name up to this long, such as ``for``, must be the same. One letter more may be left out or added, and not
be another one: ``gpuu`` is near to ``gpu``, ``nope`` not to ``node``."""
_SEPARATORS = re.compile(r"[\s\-_./:]+")


def nearest(given: str, known: Iterable[str], *, most: int = _MOST, near: float = _NEAR) -> list[str]:
    """Return the known names that are nearest to a given one, the best first.

    First come those that begin with it, then those a few edits away (a letter left out, added, replaced, or two
    swapped), those that contain it, and those with parts near to all of its own in any order: ``save-area-cwsr``.
    Upper and lower case and the separators ``-``, ``_`` and blank are the same.

    Args:
        given: What was given.
        known: What there is.
        most: Names to return at most.
        near: Edits that a name may be away, as a share of the longer of the two.
    """
    wanted = _folded(given[:_LONGEST])
    if not wanted:
        return []
    ranked = sorted((rank, place, name) for place, name in enumerate(known) if (rank := _rank(wanted, name, near)))
    return [name for _, _, name in ranked[:most]]


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return ``Did you mean a, b or c?``, or an empty text where no known name is near."""
    names = nearest(given, known)
    if not names:
        return ""
    return f"Did you mean {', '.join(names[:-1])}{' or ' if len(names) > 1 else ''}{names[-1]}?"


def misspelled(given: str, known: Iterable[str], *, near: float = _NEAR) -> str:
    """Return the known name that is the fewest edits away, or an empty text: for what is told without being asked."""
    wanted = _folded(given[:_LONGEST])
    ranked = sorted((rank, name) for name in known if (rank := _edit_rank(wanted, _folded(name), near)))
    return ranked[0][1] if ranked else ""


def _folded(name: str) -> str:
    return _SEPARATORS.sub("-", name.casefold()).strip("-")


def _rank(wanted: str, name: str, near: float) -> tuple[int, float, int] | None:
    """Return how far a name is, to be sorted by; None where it is not near."""
    known = _folded(name)
    if known.startswith(wanted):
        return (0, 0.0, len(known))
    if rank := _edit_rank(wanted, known, near):
        return rank
    if len(wanted) > 2 and wanted in known:
        return (2, 0.0, len(known))
    parts = known.split("-")
    far = [min(_share(part, other, near) for other in parts) for part in wanted.split("-")]
    return (3, sum(far), len(known)) if len(wanted) > 2 and max(far) <= near else None


def _edit_rank(wanted: str, known: str, near: float) -> tuple[int, float, int] | None:
    longer = max(len(known), len(wanted))
    allowed = int(near * longer)
    edits = _edits(wanted, known, allowed)
    return (1, edits / longer, len(known)) if edits <= allowed else None


def _share(part: str, other: str, near: float) -> float:
    """Return how far two parts of names are, as a share of the longer: 0 where one begins with the other, 1 if far."""
    if len(part) > 2 and other.startswith(part):
        return 0.0
    longer = max(len(part), len(other))
    allowed = int(near * longer) if longer > _WORD + (len(part) == len(other)) else 0
    edits = _edits(part, other, allowed)
    return edits / longer if edits <= allowed else 1.0


def _edits(first: str, second: str, allowed: int) -> int:
    """Return the edits between two texts (optimal string alignment); more than ``allowed`` where it is more."""
    if abs(len(first) - len(second)) > allowed:
        return allowed + 1
    before: list[int] = []
    last = list(range(len(second) + 1))
    for row, letter in enumerate(first, 1):
        here = [row]
        for column, other in enumerate(second, 1):
            cost = min(last[column] + 1, here[-1] + 1, last[column - 1] + (letter != other))
            if row > 1 and column > 1 and letter == second[column - 2] and first[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            here.append(cost)
        if min(here) > allowed:
            return allowed + 1
        before, last = last, here
    return last[-1]


def unknown(subject: str, kind: str, given: str, known: Iterable[str], *, listed: str = "") -> UsageError:
    """Return the error for a name that there is none of: what was meant, or what there is.

    Args:
        subject: The command or option concerned.
        kind: What it would be the name of: ``op``.
        given: What was given.
        known: What there is.
        listed: The command that lists all of them: ``rocmend kernels list``.
    """
    names = list(known)
    meant = did_you_mean(given, names)
    if not meant and len(names) <= _FEW:
        meant = f"There are: {', '.join(names)}." if names else "There are none."
    every = f"`{listed}` lists all of them." if listed else ""
    told = " ".join(filter(None, (meant, every))) or f"Some of them: {', '.join(names[:_FEW])} …"
    return UsageError(subject, f"no {kind} is called {given[:_LONGEST]!r}.", next_step=told)
