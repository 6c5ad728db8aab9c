"""Making a level's record out of its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rocmend.port.verify.records import Evidence, Level, Outcome, Status

__all__ = ["MAX_EVIDENCE", "concluded", "not_run"]

MAX_EVIDENCE = 2000
"""Of what holds, no more than this is kept; what does not hold is kept whole."""


def not_run(why: str) -> Level:
    """Return a level that did not run, with the reason."""
    return Level(0, "", "", Status.NOT_RUN, why=why)


def concluded(evidence: Sequence[Evidence], summary: str) -> Level:
    """Return a level that ran; number, name and title are filled in by ``ladder``.

    It failed where something is broken; it is incomplete where nothing is, and something is unknown.
    """
    counts = Counter(one.outcome for one in evidence)
    if counts[Outcome.BROKEN]:
        status = Status.FAILED
    elif counts[Outcome.UNKNOWN]:
        status = Status.INCOMPLETE
    else:
        status = Status.PASSED
    telling = [one for one in evidence if one.outcome in {Outcome.BROKEN, Outcome.UNKNOWN}]
    rest = [one for one in evidence if one.outcome not in {Outcome.BROKEN, Outcome.UNKNOWN}]
    return Level(
        0,
        "",
        "",
        status,
        summary=summary,
        evidence=(*telling, *rest[:MAX_EVIDENCE]),
        counts={str(outcome): count for outcome, count in counts.items()},
    )
