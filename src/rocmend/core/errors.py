"""Errors that say what was wrong, why it matters and what to do next."""

from __future__ import annotations

from collections.abc import Iterable


class RocmendError(Exception):
    """An error that is the user's to read: printed without a traceback.

    Args:
        subject: The operation or file concerned; printed in brackets before the message.
        message: What was expected and what was found.
        why: Why it matters, or how it usually comes about.
        next_step: What the reader can do now.
    """

    code = "error"

    def __init__(self, subject: str, message: str, *, why: str = "", next_step: str = "") -> None:
        self.subject = subject
        self.message = message
        self.why = why
        self.next_step = next_step
        super().__init__(" ".join(part for part in (f"[{subject}] {message}", why, next_step) if part))


class UsageError(RocmendError):
    """The command was called with something it cannot work with."""

    code = "usage"


class DataError(RocmendError):
    """A file or stream does not hold what its format promises (truncated, hostile or of another kind)."""

    code = "bad-data"


class UnitError(RocmendError):
    """A unit of the project (entry, collector, derivation, command) is wrong in itself."""

    code = "bad-unit"


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Return ``Did you mean 'x' or 'y'?`` with the nearest known names; an empty text where none is near."""
    from difflib import get_close_matches

    names = list(known)
    begin = [name for name in names if given and name.startswith(given)]
    near = list(dict.fromkeys((*begin, *get_close_matches(given, names, n=3, cutoff=0.6))))[:3]
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else ""
