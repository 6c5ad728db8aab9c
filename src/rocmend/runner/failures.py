"""Lines of output that say what went wrong: the signatures of knowledge entries that make something of a run.

A word such as ``CUDA error`` is in the names of tests, in documentation and in summaries that count none. What counts
is the form in which a runtime prints an error: at the beginning of a line, behind nothing but what loggers and
exceptions put there, and followed by what went wrong.
"""

from __future__ import annotations

import msgspec

from rocmend.core.signatures import Known, judging
from rocmend.core.verdict import Verdict

MAX_LINES = 200
"""Lines of one kind that are looked at in a block; from then on the kind is known."""

_RANK = (Verdict.GPU_RESET, Verdict.UNSUPPORTED, Verdict.OOM, Verdict.CRASH, Verdict.INFRA)


class FailureSeen(msgspec.Struct, frozen=True, omit_defaults=True):
    """Lines of one kind that a run printed.

    Attributes:
        id: The kind.
        verdict: What it makes of a run.
        line: The first such line, cut at 300 characters.
        meaning: What it says.
        count: How many of them were looked at.
        always: It counts even where the exit status is 0.
        entry_id: The knowledge entry that explains it.
    """

    id: str
    verdict: Verdict
    line: str
    meaning: str
    count: int = 1
    always: bool = False
    entry_id: str = ""


def failure_of(line: str) -> Known | None:
    """Return the signature of the failure that a line speaks of."""
    return next(iter(judging().of(line)), None)


class FailureScanner:
    """Looks for failing lines in one run's output."""

    def __init__(self) -> None:
        self._seen: dict[str, FailureSeen] = {}

    def feed(self, block: bytes) -> None:
        """Look at a block of whole lines."""
        for found in judging().scan(block, MAX_LINES):
            self._take(found.known[0], found.line)

    def look(self, line: str) -> None:
        """Look at one line."""
        known = failure_of(line)
        if known is not None:
            self._take(known, line)

    def _take(self, known: Known, line: str) -> None:
        signature = known.signature
        before = self._seen.get(signature.kind)
        if before is not None:
            self._seen[signature.kind] = msgspec.structs.replace(before, count=before.count + 1)
        elif signature.verdict is not None:
            self._seen[signature.kind] = FailureSeen(
                signature.kind,
                signature.verdict,
                line[:300],
                signature.meaning,
                always=signature.always,
                entry_id=known.entry_id,
            )

    def seen(self) -> tuple[FailureSeen, ...]:
        """Return the kinds seen, the weightiest first."""
        return tuple(sorted(self._seen.values(), key=lambda item: _RANK.index(item.verdict)))
