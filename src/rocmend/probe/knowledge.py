"""Which knowledge entries speak of a probe on a target."""

from __future__ import annotations

from rocmend.core.gfx.table import generic_members, generic_targets
from rocmend.kb.entry import Entry, Status
from rocmend.kb.load import Knowledge
from rocmend.kb.match import Matcher
from rocmend.kb.predicate import PredicateError
from rocmend.machine.facts import Machine
from rocmend.probe.registry import Probe

MOST = 8
"""Entries attached to one result."""

SILENT = frozenset({Status.ARCHIVED, Status.REFUTED, Status.SUPERSEDED})


def ids_for(probe: Probe, gfx_target: str, knowledge: Knowledge, machine: Machine | None = None) -> tuple[str, ...]:
    """Return the ids of the entries that share a tag with a probe and speak of its target, those that apply first.

    An entry that names targets has to name this one. One that names none has to apply to the machine: there is no
    other sign that it speaks of it.

    Args:
        probe: The probe.
        gfx_target: The AMD GPU's target; of another device nothing is known.
        knowledge: The entries.
        machine: Facts of the machine that was probed, if taken.
    """
    if not gfx_target.startswith("gfx"):
        return ()
    wanted = {_plain(tag) for tag in (*probe.tags, probe.family)}
    matcher = Matcher(machine) if machine is not None else None
    ranked = []
    for entry in knowledge.entries.values():
        shared = wanted & {_plain(tag) for tag in entry.tags}
        if not shared or entry.status in SILENT:
            continue
        applies = _applies(entry, matcher)
        if applies is False or not (names_target(entry, gfx_target) or (applies and not entry.scope.gfx)):
            continue
        ranked.append((not applies, -len(shared), entry.id))
    return tuple(entry_id for _, _, entry_id in sorted(ranked)[:MOST])


def names_target(entry: Entry, gfx_target: str) -> bool:
    """Whether an entry's scope names a target, itself or by its generic class."""
    generics = set(generic_targets())
    return any(
        gfx_target == name or (name in generics and gfx_target in generic_members(name)) for name in entry.scope.gfx
    )


def _applies(entry: Entry, matcher: Matcher | None) -> bool | None:
    """Return whether an entry's predicate holds; None where it has none or cannot be told."""
    if matcher is None or not entry.when.strip():
        return None
    try:
        outcomes = {match.applies for match in matcher.match(entry)}
    except PredicateError:
        return None
    if True in outcomes:
        return True
    return None if None in outcomes else False


def _plain(tag: str) -> str:
    return tag.lower().replace("-", "").replace("_", "").replace(" ", "")
