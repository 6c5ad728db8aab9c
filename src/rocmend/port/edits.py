"""Applying edits to bytes."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from rocmend.core.errors import UnitError
from rocmend.port.records import Edit

__all__ = ["applied", "compatible"]


def compatible(edits: Iterable[Edit]) -> list[Edit]:
    """Return edits in order, each once.

    Raises:
        UnitError: Two of them change the same bytes in different ways.
    """
    ordered = sorted(set(edits))
    for one, other in pairwise(ordered):
        if other.start < one.end or (one.start == other.start and one.end == other.end):
            raise UnitError(
                "port rule",
                f"two rewrites overlap at {other.start}: {one.text!r} and {other.text!r}.",
                next_step="Restrict one of the rules so that only the other rewrites the construct.",
            )
    return ordered


def applied(data: bytes, edits: Iterable[Edit]) -> bytes:
    """Return ``data`` with the edits made.

    Raises:
        UnitError: Two of them change the same bytes in different ways.
    """
    parts = []
    at = 0
    for edit in compatible(edits):
        parts += [data[at : edit.start], edit.text]
        at = edit.end
    return b"".join([*parts, data[at:]])
