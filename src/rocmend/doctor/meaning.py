"""What errors in a text mean on a machine: the entries that explain them, what confirms them, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from rocmend.core.pending import device_in
from rocmend.core.records import Fact, Gap, Remedy, Severity, Source
from rocmend.core.signatures import Log
from rocmend.doctor.explain import Explanation, explain, remedies_on
from rocmend.doctor.records import Plan, Step
from rocmend.kb.entry import Status
from rocmend.kb.errors import Sighting
from rocmend.kb.load import Knowledge
from rocmend.kb.match import Match, Matcher
from rocmend.machine.facts import Machine
from rocmend.machine.parse.kernel_log import line_time


class Here(StrEnum):
    """What a machine says of an entry."""

    CONFIRMED = "confirmed"
    CONTRADICTED = "contradicted"
    OTHER_GPU = "other-gpu"
    UNDECIDED = "undecided"
    NOT_CHECKED = "not-checked"


class Whose(StrEnum):
    """Whose kernel log a pasted line is of, as far as it can be told."""

    THIS = "this-machine"
    ANOTHER = "another-machine"
    UNKNOWN = "unknown"


class Cause(msgspec.Struct, frozen=True):
    """An entry that a machine confirms, with its title."""

    entry_id: str
    title: str


class PlanStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of doctor's plan that deals with such lines.

    Attributes:
        number: Its number in the plan.
        title: What it does.
        commands: Shell lines that do it.
        settles: The entries for which it is named here.
    """

    number: int
    title: str
    commands: tuple[str, ...] = ()
    settles: tuple[str, ...] = ()


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
        whose: Where lines in the machine's own kernel log confirm it: whose log the pasted line is of.
        missing: The facts that were wanted, where it cannot be decided.
        steps: The steps of doctor's plan for this machine that deal with it or with what is behind it.
        remedies: What else can be done, best first; none where it is about other GPUs.
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
    whose: Whose | None = None
    missing: tuple[Gap, ...] = ()
    steps: tuple[PlanStep, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    sources: tuple[Source, ...] = ()
    causes: tuple[Cause, ...] = ()
    see: tuple[str, ...] = ()


_ORDER = (Here.CONFIRMED, Here.NOT_CHECKED, Here.UNDECIDED, Here.CONTRADICTED, Here.OTHER_GPU)
_FAULTS = frozenset({Severity.ERROR, Severity.WARNING, Severity.ADVICE})
_LOG_FACTS = "dmesg."
_OUTDATED = frozenset({Status.SUPERSEDED, Status.REFUTED})


def meanings(
    seen: Sequence[Sighting], knowledge: Knowledge, machine: Machine | None, plan: Plan | None = None
) -> tuple[Meaning, ...]:
    """Return what was found with what is known of it, what matters most first.

    What the machine confirms comes first among what is equally sure, and what it excludes last of all. Where one line
    has several meanings and the machine confirms one, those are left out that it contradicts.

    Args:
        seen: What was found in a text.
        knowledge: The entries.
        machine: The machine that it is explained for; None for none.
        plan: What doctor advises for that machine: its steps stand in place of the entries' own remedies.

    Raises:
        PredicateError: A predicate of an entry is malformed.
    """
    matcher = None if machine is None else Matcher(machine)
    plan = plan or Plan()
    made = [_meaning(one, knowledge, matcher, plan) for one in seen]
    confirmed = {one.seen.number for one in made if one.here is Here.CONFIRMED}
    kept = [one for one in made if one.here is not Here.CONTRADICTED or one.seen.number not in confirmed]
    return tuple(_once(sorted(kept, key=_rank)))


def _once(found: Sequence[Meaning]) -> list[Meaning]:
    """Leave out what says the same of the same line as one before, and is not confirmed."""
    said: set[tuple[int, str]] = set()
    kept = []
    for one in found:
        key = one.seen.number, one.seen.meaning
        if not one.seen.meaning or one.here is Here.CONFIRMED or key not in said:
            kept.append(one)
        said.add(key)
    return kept


def _rank(meaning: Meaning) -> tuple[bool, bool, tuple[int, int, int], int]:
    excluded = meaning.here is Here.OTHER_GPU
    sure, rank, number = meaning.seen.order
    return excluded, meaning.status in _OUTDATED, (sure, _ORDER.index(meaning.here), rank), number


def _meaning(seen: Sighting, knowledge: Knowledge, matcher: Matcher | None, plan: Plan) -> Meaning:
    explained = explain(seen.entry_id, knowledge, None if matcher is None else matcher.machine)
    entry = explained.entry
    here, evidence, missing = _here(explained)
    remedies, steps = entry.remedy, tuple[Step, ...]()
    if here is Here.OTHER_GPU:
        remedies = ()
    elif matcher is not None and (matcher.machine.indices("gpu") or matcher.machine.value("pci.amd_gpus")):
        remedies = remedies_on(seen.entry_id, knowledge, matcher.machine)
        steps = _steps(entry.id, entry.links.see, remedies, plan)
    if steps and here is Here.CONTRADICTED:  # what the plan does not do as well, it advises against
        remedies = tuple(one for one in remedies if not one.action)
    planned = {action for step in plan.steps for action in _actions(step)} if steps else set()
    return Meaning(
        seen,
        explained.title,
        entry.status,
        entry.body,
        here,
        evidence,
        _whose(seen, evidence, matcher.machine) if here is Here.CONFIRMED and matcher is not None else None,
        missing,
        tuple(_plan_step(step, {entry.id, *entry.links.see}) for step in steps),
        tuple(one for one in remedies if one.action not in planned),
        entry.source,
        _causes(explained, knowledge, matcher, steps) if here is not Here.OTHER_GPU else (),
        entry.links.see,
    )


def _steps(entry_id: str, links: Sequence[str], remedies: Sequence[Remedy], plan: Plan) -> tuple[Step, ...]:
    """Return the steps that an entry's remedies ask for, and those for the findings that it links to."""
    wanted = {one.action for one in remedies if one.action}
    return tuple(step for step in plan.steps if {entry_id, *links} & set(step.settles) or wanted & _actions(step))


def _actions(step: Step) -> set[str]:
    """Return the actions that a step does, or could do in its place."""
    return {step.action, *step.joins, *(one.action for one in step.alternatives if one.action)}


def _plan_step(step: Step, wanted: set[str]) -> PlanStep:
    return PlanStep(step.number, step.title, step.commands, tuple(one for one in step.settles if one in wanted))


def _causes(
    explained: Explanation, knowledge: Knowledge, matcher: Matcher | None, steps: Sequence[Step]
) -> tuple[Cause, ...]:
    """Return the linked entries that report a fault of the machine, or that the plan has a step for."""
    if matcher is None:
        return ()
    made = {}
    planned = {entry_id for step in steps for entry_id in step.settles} & set(explained.entry.links.see)
    for link in explained.links:
        entry = knowledge.entries.get(link.entry_id)
        if entry is None or not entry.when.strip() or entry.status in _OUTDATED:
            continue
        if entry.severity not in _FAULTS and entry.id not in planned:
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


def _whose(seen: Sighting, evidence: Sequence[Fact], machine: Machine) -> Whose | None:
    """Return whose kernel log a line is of that the machine's own log confirms; None where other facts confirm it.

    A line that stands in the machine's log, with its time, is of that log; one that names a card which the machine does
    not have is of another's.
    """
    lines = [fact.raw for fact in evidence if fact.key.startswith(_LOG_FACTS)]
    if seen.log is not Log.KERNEL or not lines:
        return None
    if line_time(seen.line) and any(seen.line == raw.strip() for raw in lines):
        return Whose.THIS
    slots = {str(machine.value(f"gpu.{number}.pci_slot")).lower() for number in machine.indices("gpu")}
    named = device_in(seen.line)
    return Whose.ANOTHER if named and slots and named not in slots else Whose.UNKNOWN


def _facts(matches: Sequence[Match]) -> tuple[Fact, ...]:
    return tuple({fact.key: fact for one in matches for fact in one.evidence}.values())
