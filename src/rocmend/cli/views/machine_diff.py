"""How the differences between two machines are laid out."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from rocmend.cli.views.diagnosis import TONE
from rocmend.cli.views.machine import value_text
from rocmend.core.records import Severity
from rocmend.core.units import count_text
from rocmend.machine.diff import FactChange
from rocmend.report.document import Block, Card, Cell, Document, Section, Table, Tone

if TYPE_CHECKING:
    from rocmend.doctor.records import Diagnosis


class FindingChange(msgspec.Struct, frozen=True):
    """A finding that only one of two machines has."""

    entry_id: str
    severity: Severity
    title: str


class MachineDiff(msgspec.Struct, frozen=True):
    """What differs between two machines.

    Attributes:
        first: The first machine's name.
        second: The second one's.
        facts: The facts that differ, by topic.
        appeared: Findings that only the second has.
        vanished: Findings that only the first has.
    """

    first: str
    second: str
    facts: tuple[FactChange, ...]
    appeared: tuple[FindingChange, ...]
    vanished: tuple[FindingChange, ...]

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not (self.facts or self.appeared or self.vanished)


def finding_changes(one: Diagnosis, other: Diagnosis) -> tuple[FindingChange, ...]:
    """Return the findings of one diagnosis that another has not."""
    known = {finding.entry_id for finding in other.findings}
    found = {item.entry_id: item for item in one.findings if item.entry_id not in known}
    return tuple(FindingChange(item.entry_id, item.severity, item.title) for item in found.values())


def diff_document(diff: MachineDiff) -> Document:
    """Lay out the findings that appear and vanish, then the facts by topic."""
    blocks: list[Block] = []
    for title, changes in (("Findings that appear", diff.appeared), ("Findings that vanish", diff.vanished)):
        if changes:
            blocks.append(Section(title, tuple(map(_finding, changes))))
    for topic, facts in groupby(diff.facts, key=lambda change: change.topic):
        rows = tuple((Cell(fact.key), _value(fact, "first"), _value(fact, "second")) for fact in facts)
        changed = Table(("fact", diff.first, diff.second), rows, stacked=True)
        blocks.append(Section(topic[0].upper() + topic[1:], (changed,)))
    title = f"From {diff.first} to {diff.second}"
    if diff.same:
        return Document(title, "No fact differs, and the findings are the same.", Tone.GOOD)
    facts_text = count_text(len(diff.facts), "fact differs", "facts differ")
    appear = count_text(len(diff.appeared), "finding appears", "findings appear")
    summary = f"{facts_text}; {appear}, {len(diff.vanished)} vanish{'es' if len(diff.vanished) == 1 else ''}."
    return Document(title, summary, Tone.PLAIN, tuple(blocks))


def _finding(change: FindingChange) -> Card:
    return Card(change.title, TONE[change.severity], change.severity.value, change.entry_id)


def _value(fact: FactChange, side: str) -> Cell:
    if fact.known_in not in {"both", side}:
        return Cell("—" if "[" in fact.key else "not known")
    return Cell(value_text(fact.key, fact.first if side == "first" else fact.second))
