"""Errors that say what was wrong, why it matters and what to do next."""

from __future__ import annotations


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
