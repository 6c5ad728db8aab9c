"""Actions that several entries ask for, each declared once: ``kb/actions/<id>.toml``.

A remedy names its action and takes from it what it does not say itself. ``unset-variable:HSA_XNACK`` is the action
``unset-variable`` with the argument ``HSA_XNACK``: ``{argument}`` in the action's texts, and ``{name}`` and ``{value}``
for the two sides of ``NAME=VALUE``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from rocmend.core.records import Phase, Remedy, Risk

if TYPE_CHECKING:
    from rocmend.machine.facts import Machine

_PART = re.compile(r"\{(argument|name|value)\}")


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an action is on some machines; what it leaves out is the action's own.

    Attributes:
        when: Predicate that tells these machines.
        commands: In place of the action's own; empty where a person does it by hand.
        text: What to do by hand.
        undo: In place of the action's own.
    """

    when: str
    commands: tuple[str, ...] | None = None
    text: str = ""
    undo: str = ""


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Something that can be done to a machine; the attributes that a remedy has too mean the same.

    Attributes:
        title: What is done, in one line: the title of the step in a plan.
        phase: Where it stands in a plan.
        text: More about it.
        by_hand: A script cannot do it: a setting of the calling shell, a file to edit, the BIOS.
        variant: What differs on other distributions; the first that holds counts.
        workload: Workloads that it is for, empty for all: where another is asked about, it is left out.
        kernel_command_line: It edits the kernel command line: all such actions of a plan are one step.
        settles: Whether it settles a finding, or only serves to settle it.
        brought: Whom it is for where another action brings it along.
        id: The file's name; not written.
    """

    title: str
    phase: Phase
    text: str = ""
    commands: tuple[str, ...] = ()
    check: str = ""
    expect: str = ""
    undo: str = ""
    risk: Risk = Risk.NONE
    risk_note: str = ""
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    by_hand: bool = False
    variant: tuple[Variant, ...] = ()
    workload: tuple[str, ...] = ()
    kernel_command_line: bool = False
    settles: bool = True
    brought: str = ""
    id: str = ""

    @property
    def takes_argument(self) -> bool:
        """Whether its texts speak of an argument."""
        return any(_PART.search(text) for text in (self.title, self.check, *self.commands))


def serves(action: Action | None, machine: Machine) -> bool:
    """Whether an action is for what a machine is for; it is where nothing is said."""
    asked = machine.value("ask.workload")
    return action is None or not action.workload or asked is None or asked in action.workload


def action_name(action: str) -> str:
    """Return an action's id without its argument."""
    return action.partition(":")[0]


def with_argument(text: str, action: str) -> str:
    """Return a text of an action with the argument of ``action`` put in."""
    argument = action.partition(":")[2]
    name, _, value = argument.partition("=")
    parts = {"argument": argument, "name": name, "value": value}
    return _PART.sub(lambda found: parts[found[1]], text)


_VERBS = ("unset-", "set-", "remove-")


def setting_of(action: str) -> str:
    """Return what an action with an argument sets or takes away: ``variable:HSA_XNACK``; empty for any other action."""
    name, _, argument = action.partition(":")
    kind = next((name.removeprefix(verb) for verb in _VERBS if name.startswith(verb)), "")
    return f"{kind}:{argument.partition('=')[0]}" if kind and argument else ""


def _commands(commands: tuple[str, ...], action: str) -> tuple[str, ...]:
    return tuple(with_argument(command, action) for command in commands)


def on_machine(remedy: Remedy, action: Action | None, machine: Machine, gpu: int | None = None) -> Remedy:
    """Return a resolved remedy as this machine's distribution has it; what the remedy says itself stands.

    Raises:
        PredicateError: A variant's predicate is malformed.
    """
    if action is None or not action.variant or remedy.commands != _commands(action.commands, remedy.action):
        return remedy
    from rocmend.kb.predicate import compile_predicate  # loading entries does without

    holds = (one for one in action.variant if compile_predicate(one.when).evaluate(machine, gpu).value)
    found = next(holds, None)
    if found is None:
        return remedy
    commands = remedy.commands if found.commands is None else _commands(found.commands, remedy.action)
    own_undo = remedy.undo != with_argument(action.undo, remedy.action)
    return msgspec.structs.replace(
        remedy,
        text=f"{remedy.text} {with_argument(found.text, remedy.action)}".strip(),
        commands=commands,
        undo=remedy.undo if own_undo or not found.undo else with_argument(found.undo, remedy.action),
        by_hand=remedy.by_hand or not commands,
    )


def resolved(remedy: Remedy, actions: Mapping[str, Action]) -> Remedy:
    """Return a remedy with what it leaves empty taken from its action."""
    action = actions.get(action_name(remedy.action))
    if action is None:
        return remedy
    return msgspec.structs.replace(
        remedy,
        text=f"{remedy.title or with_argument(action.title, remedy.action)}. {remedy.text}".strip(),
        commands=remedy.commands or _commands(action.commands, remedy.action),
        risk=remedy.risk if remedy.risk is not Risk.NONE else action.risk,
        risk_note=remedy.risk_note or action.risk_note,
        needs=remedy.needs or action.needs,
        phase=remedy.phase or action.phase,
        check=remedy.check or with_argument(action.check, remedy.action),
        expect=remedy.expect or with_argument(action.expect, remedy.action),
        undo=remedy.undo or with_argument(action.undo, remedy.action),
        by_hand=remedy.by_hand or action.by_hand,
        after=tuple(dict.fromkeys((*remedy.after, *action.after))),
    )
