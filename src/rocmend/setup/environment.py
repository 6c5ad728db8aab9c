"""The environment for a machine and a workload, out of the knowledge entries' settings."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from rocmend.kb.entry import Entry, Setting, Status
from rocmend.kb.load import Knowledge
from rocmend.kb.match import Match, Matcher
from rocmend.kb.template import fill
from rocmend.machine.facts import Machine
from rocmend.setup.shells import Action, Line

STANDING = frozenset({Status.ACTIVE, Status.DISPUTED})
"""Entries whose advice is given; what is fixed, superseded or refuted advises nothing."""


class Environment(msgspec.Struct, frozen=True):
    """What to set.

    Attributes:
        machine: The machine's name.
        workload: The workload it is for.
        lines: The variables to unset, those to set, those worth measuring; steps together and last.
        undecided: Entry ids whose settings could not be judged, with the facts that were missing.
    """

    machine: str
    workload: str
    lines: tuple[Line, ...]
    undecided: dict[str, tuple[str, ...]] = {}


class _Claim(msgspec.Struct, frozen=True):
    """A setting that applies, with the entry it comes from."""

    entry: Entry
    setting: Setting
    line: Line

    @property
    def strength(self) -> tuple[bool, bool, bool, bool, str]:
        """Sort key, strongest first: firm before optional, undisputed, this GPU's own, for this workload."""
        return (
            self.setting.optional,
            self.entry.status is not Status.ACTIVE,
            not self.entry.scope.gfx,
            not self.setting.workload,
            self.entry.id,
        )


def environment(machine: Machine, knowledge: Knowledge, workload: str, *, always_unset: bool = False) -> Environment:
    """Return the variables that entries want set on this machine for a workload.

    Where entries want different values of one variable, the firmest claim is the line and the others are named in its
    comments: an undisputed entry before a disputed one, one about this gfx target before one about all.

    Args:
        machine: The facts.
        knowledge: The entries.
        workload: ``pytorch``, ``llama.cpp`` …
        always_unset: Unset variables that this environment does not set, too: for an image that might set them.
    """
    matcher = Matcher(machine)
    claims: dict[tuple[str, str], list[_Claim]] = {}
    undecided: dict[str, tuple[str, ...]] = {}
    for entry, setting in _settings(knowledge, workload):
        if setting.unset and not always_unset and machine.value(f"env.{setting.name}") is None:
            continue
        matches = matcher.match(msgspec.structs.replace(entry, when=setting.when, subject=""))
        standing = next((match for match in matches if match.applies), None)
        if standing is not None:
            claim = _Claim(entry, setting, _line(entry, setting, machine, standing))
            claims.setdefault((setting.name, setting.step), []).append(claim)
        elif unknown := [gap.key for match in matches if match.applies is None for gap in match.missing]:
            undecided[entry.id] = tuple(dict.fromkeys(unknown))
    lines = [line for key in claims for line in _settle(claims[key])]
    lines.sort(key=_place)
    return Environment(machine.name, workload, tuple(lines), undecided)


def _settings(knowledge: Knowledge, workload: str) -> Iterator[tuple[Entry, Setting]]:
    for entry in knowledge.entries.values():
        if entry.status not in STANDING or (entry.scope.workload and workload not in entry.scope.workload):
            continue
        for setting in entry.setting:
            if not setting.workload or workload in setting.workload:
                yield entry, setting


def _line(entry: Entry, setting: Setting, machine: Machine, match: Match) -> Line:
    action = Action.UNSET if setting.unset else Action.PREPEND if setting.prepend else Action.SET
    first = entry.source[0]
    return Line(
        name=setting.name,
        value=fill(setting.value, machine, match.gpu),
        action=action,
        why=fill(setting.why, machine, match.gpu),
        entry_id=entry.id,
        source=", ".join(part for part in (first.title, first.url, first.date) if part),
        optional=setting.optional,
        step=setting.step,
    )


def _place(line: Line) -> tuple[bool, bool, str, str, str]:
    """Sort key: firm before optional, unset before set; the steps of one procedure together, after the rest."""
    return line.optional, line.action is not Action.UNSET, line.entry_id if line.step else "", line.step, line.name


def _settle(claims: list[_Claim]) -> list[Line]:
    """Return the lines for one variable: all that prepend to it, else the firmest claim with the rest as comments."""
    ordered = sorted(claims, key=lambda claim: claim.strength)
    first = ordered[0].line
    if first.action is Action.PREPEND:
        return [claim.line for claim in ordered if claim.line.action is Action.PREPEND]
    also = [
        f"{claim.entry.id} ({claim.entry.status}) says {_wanted(claim.line)}: {claim.line.why}"
        for claim in ordered[1:]
        if (claim.line.action, claim.line.value) != (first.action, first.value)
    ]
    return [msgspec.structs.replace(first, also=tuple(also))]


def _wanted(line: Line) -> str:
    return "unset" if line.action is Action.UNSET else line.value
