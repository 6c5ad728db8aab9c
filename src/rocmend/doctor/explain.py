"""Everything that is known of one entry, with its links resolved."""

from __future__ import annotations

import msgspec

from rocmend.core.records import Remedy, Source
from rocmend.kb.action import action_name, on_machine, serves
from rocmend.kb.entry import Entry, Status
from rocmend.kb.general import generic, headline, in_spans, plain, plain_code, rewritten
from rocmend.kb.load import Knowledge
from rocmend.kb.match import Match, Matcher, helps
from rocmend.kb.template import fill, is_filled, only_gpu
from rocmend.machine.facts import Machine


class LinkedEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry at the other end of a link.

    Attributes:
        relation: contradicts, resolved_by, superseded_by, refuted_by, see, or one of these turned round: supersedes,
            refutes, resolves, seen_from.
        entry_id: Its id.
        title: Its title; empty where there is no such entry.
        status: Its status; None where there is no such entry.
        sources: Its sources.
    """

    relation: str
    entry_id: str
    title: str = ""
    status: Status | None = None
    sources: tuple[Source, ...] = ()


class Explanation(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry, what it is linked with, and what it says of a machine.

    Attributes:
        entry: The entry, with a machine's values filled in where it applies to that machine, else in general words.
        title: Its title, likewise.
        links: In the order of relations, then as written.
        matches: What it says of the machine, where one was given.
        machine: The machine's name, where one was given.
    """

    entry: Entry
    title: str
    links: tuple[LinkedEntry, ...] = ()
    matches: tuple[Match, ...] = ()
    machine: str = ""


_REVERSED = {
    "superseded_by": "supersedes",
    "refuted_by": "refutes",
    "resolved_by": "resolves",
    "see": "seen_from",
}


def explain(entry_id: str, knowledge: Knowledge, machine: Machine | None = None) -> Explanation:
    """Return everything that is known of an entry.

    Args:
        entry_id: Its id.
        knowledge: The entries.
        machine: A machine to match it against.

    Raises:
        UsageError: No such entry; the nearest ids are named.
        PredicateError: A predicate of it is malformed (only with a machine).
    """
    entry = knowledge.get(entry_id)
    links = [
        _linked(field, target, knowledge)
        for field in entry.links.__struct_fields__
        for target in getattr(entry.links, field)
    ]
    links += [
        _linked(relation, other.id, knowledge)
        for field, relation in _REVERSED.items()
        for other in knowledge.entries.values()
        if entry_id in getattr(other.links, field)
    ]
    matches = () if machine is None else tuple(Matcher(machine).match(entry))
    here = next((match for match in matches if match.applies), None)
    made = generic(entry) if here is None or machine is None else _filled(entry, knowledge, machine, here.gpu)
    return Explanation(made, made.title, tuple(links), matches, machine.name if machine is not None else "")


def _filled(
    entry: Entry, knowledge: Knowledge, machine: Machine, gpu: int | None, *, known_only: bool = False
) -> Entry:
    """Fill in a machine's values; ``known_only`` leaves unknown ones out of sentences in place of saying so."""

    def code(text: str) -> str:
        return plain_code(fill(text, machine, gpu, for_shell=True))

    def prose(text: str) -> str:
        text = in_spans(text, code)
        return plain(text) if known_only and not is_filled(text, machine, gpu) else fill(text, machine, gpu)

    gpu = only_gpu(machine) if gpu is None else gpu
    remedies = tuple(
        on_machine(remedy, knowledge.actions.get(action_name(remedy.action)), machine, gpu)
        for remedy in entry.remedy
        if helps(remedy, machine, gpu) and serves(knowledge.actions.get(action_name(remedy.action)), machine)
    )
    here = msgspec.structs.replace(entry, remedy=remedies)
    return rewritten(here, fill(entry.title, machine, gpu), prose, code)


def remedies_on(entry_id: str, knowledge: Knowledge, machine: Machine) -> tuple[Remedy, ...]:
    """Return what helps against an entry's problem on a machine, with its values, whether or not its rule holds there.

    Args:
        entry_id: Its id.
        knowledge: The entries.
        machine: The machine.

    Raises:
        UsageError: No such entry.
        PredicateError: A condition of a remedy is malformed.
    """
    return _filled(knowledge.get(entry_id), knowledge, machine, None, known_only=True).remedy


def _linked(relation: str, entry_id: str, knowledge: Knowledge) -> LinkedEntry:
    other = knowledge.entries.get(entry_id)
    if other is None:
        return LinkedEntry(relation, entry_id)
    return LinkedEntry(relation, entry_id, headline(other), other.status, other.source)
