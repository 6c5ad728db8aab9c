"""What errors in a text mean on a machine: the entries that explain them, what confirms them, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from rocmend.core.records import Fact, Gap, Remedy, Severity, Source
from rocmend.doctor.explain import Explanation, explain
from rocmend.kb.entry import Status
from rocmend.kb.errors import Sighting
from rocmend.kb.load import Knowledge
from rocmend.kb.match import Match, Matcher
from rocmend.machine.facts import Machine


class Here(StrEnum):
    """What a machine says of an entry."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    OTHER_GPU = "other-gpu"
    UNDECIDED = "undecided"
    NOT_CHECKED = "not-checked"


class Cause(msgspec.Struct, frozen=True):
    """An entry that a machine confirms, with its title."""

    entry_id: str
    title: str


class Meaning(msgspec.Struct, frozen=True, omit_defaults=True):
    """What some lines of a text mean.

    Attributes:
        seen: The lines.
        title: The entry's title, with this machine's values where it applies.
        status: The entry's status.
        text: The entry's explanation.
        here: What the machine says: the entry's rule holds, does not hold, is for other GPUs, cannot be decided;
            ``not-checked`` where it has no rule or no machine was looked at.
        evidence: The facts that say so.
        missing: The facts that were wanted, where it cannot be decided.
        remedies: What can be done, best first.
        sources: Who says so.
        causes: Linked entries that this machine confirms, with their titles: what is behind such lines here.
        see: Ids of other entries worth reading.
    """

    seen: Sighting
    title: str
    status: Status
    text: str = ""
    here: Here = Here.NOT_CHECKED
    evidence: tuple[Fact, ...] = ()
    missing: tuple[Gap, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    sources: tuple[Source, ...] = ()
    causes: tuple[Cause, ...] = ()
    see: tuple[str, ...] = ()


_ORDER = (Here.CONFIRMED, Here.NOT_CHECKED, Here.UNDECIDED, Here.CONTRADICTED, Here.OTHER_GPU)
_FAULTS = frozenset({Severity.ERROR, Severity.WARNING, Severity.ADVICE})
_OUTDATED = frozenset({Status.SUPERSEDED, Status.REFUTED})


def meanings(seen: Sequence[Sighting], knowledge: Knowledge, machine: Machine | None) -> tuple[Meaning, ...]:
    """Return what was found with what is known of it, what matters most first.

    What the machine confirms comes first among what is equally sure, and what it excludes last of all.

    Args:
        seen: What was found in a text.
        knowledge: The entries.
        machine: The machine that it is explained for; None for none.

    Raises:
        PredicateError: A predicate of an entry is malformed.
    """
    matcher = None if machine is None else Matcher(machine)
    made = [_meaning(one, knowledge, matcher) for one in seen]
    return tuple(sorted(made, key=_rank))


def _rank(meaning: Meaning) -> tuple[bool, bool, tuple[int, int, int], int]:
    excluded = meaning.here is Here.OTHER_GPU
    sure, rank, number = meaning.seen.order
    return excluded, meaning.status in _OUTDATED, (sure, _ORDER.index(meaning.here), rank), number


def _meaning(seen: Sighting, knowledge: Knowledge, matcher: Matcher | None) -> Meaning:
    explained = explain(seen.entry_id, knowledge, None if matcher is None else matcher.machine)
    entry = explained.entry
    here, evidence, missing = _here(explained)
    return Meaning(
        seen,
        explained.title,
        entry.status,
        entry.body,
        here,
        evidence,
        missing,
        entry.remedy,
        entry.source,
        _causes(explained, knowledge, matcher) if here is not Here.OTHER_GPU else (),
        entry.links.see,
    )


def _causes(explained: Explanation, knowledge: Knowledge, matcher: Matcher | None) -> tuple[Cause, ...]:
    """Return the linked entries that report a fault of the machine."""
    if matcher is None:
        return ()
    made = {}
    for link in explained.links:
        entry = knowledge.entries.get(link.entry_id)
        if entry is None or not entry.when.strip() or entry.severity not in _FAULTS or entry.status in _OUTDATED:
            continue
        for match in matcher.match(entry):
            if match.applies:
                made[entry.id] = Cause(entry.id, match.title)
    return tuple(made.values())


def _here(explained: Explanation) -> tuple[Here, tuple[Fact, ...], tuple[Gap, ...]]:
    entry, matches = explained.entry, explained.matches
    if not matches or not (entry.when.strip() or entry.scope.gfx):
        return Here.NOT_CHECKED, (), ()
    holds = [one for one in matches if one.applies]
    if holds:
        return Here.CONFIRMED if entry.when.strip() else Here.NOT_CHECKED, holds[0].evidence, ()
    unknown = [one for one in matches if one.applies is None]
    if unknown:
        return Here.UNDECIDED, (), unknown[0].missing
    inside = [one for one in matches if one.in_scope]
    return (Here.CONTRADICTED, _facts(inside), ()) if inside else (Here.OTHER_GPU, _facts(matches), ())


def _facts(matches: Sequence[Match]) -> tuple[Fact, ...]:
    return tuple({fact.key: fact for one in matches for fact in one.evidence}.values())
