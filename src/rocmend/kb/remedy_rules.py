"""What is checked of an entry's remedies: that a plan can be made of them together with those of all other entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rocmend.core.records import Phase, Remedy
from rocmend.kb.action import action_name, setting_of
from rocmend.kb.cases import case_machine, case_outcome
from rocmend.kb.entry import Case, Entry
from rocmend.kb.predicate import PredicateError, compile_predicate
from rocmend.kb.rules import Context, Findings

_LOOKS = (Phase.INVESTIGATE, Phase.REBOOT)


def _is_alternative(remedy: Remedy) -> bool:
    return bool(remedy.instead_of or remedy.until)


def check_actions(entry: Entry, context: Context) -> Findings:
    """Yield remedies without the action they need, and actions that do not exist or are not said in full."""
    for number, remedy in enumerate(entry.remedy, 1):
        place = f"remedy {number}"
        placed = remedy.action or _is_alternative(remedy) or remedy.phase in _LOOKS
        if remedy.commands and not placed and entry.severity is not None:
            yield "KB026", f"{place}: it has commands, but neither an action nor phase = 'investigate'"
        name, _, argument = remedy.action.partition(":")
        shared = context.knowledge.actions.get(name)
        if remedy.action and name not in context.actions:
            yield "KB027", f"{place}: {name!r} is not in kb/actions, and no remedy declares it with a phase"
        if shared is not None and shared.takes_argument != bool(argument):
            wanted = "takes an" if shared.takes_argument else "takes no"
            yield "KB027", f"{place}: the action {name!r} {wanted} argument"
        for pattern in filter(None, (*remedy.after, remedy.instead_of, remedy.until, remedy.brought_by)):
            if action_name(pattern) not in context.actions:
                yield "KB027", f"{place}: no remedy has the action {action_name(pattern)!r}"
        changes = bool(remedy.action) and remedy.phase not in _LOOKS and not _is_alternative(remedy)
        if changes and not (remedy.check or remedy.expect):
            yield "KB030", f"{place}: it has no check that it worked: add check or expect"
        if (changes or (_is_alternative(remedy) and remedy.needs)) and not remedy.undo:
            yield "KB030", f"{place}: it does not say how to undo the change: add undo"


def check_order(entry: Entry, context: Context) -> Findings:
    """Yield orders that close a circle: within the entry, and against an entry of the same severity."""
    after: dict[str, set[str]] = {}
    for remedy in entry.remedy:
        if remedy.action and not _is_alternative(remedy):
            after.setdefault(remedy.action, set()).update(remedy.after)
    for shared in context.knowledge.actions.values():
        after.setdefault(shared.id, set()).update(shared.after)
    for action in sorted(after):
        if _precedes(action, action, after):
            yield "KB028", f"{action!r} is ordered after itself"
    for other in context.knowledge.entries.values():
        if other.severity is not entry.severity or other.id == entry.id:
            continue
        for remedy in other.remedy:
            for before in remedy.after:
                if remedy.action and remedy.action in after.get(before, ()):
                    yield "KB028", f"{before!r} is ordered after {remedy.action!r} here, but before it in {other.id}"


def _precedes(first: str, then: str, after: Mapping[str, set[str]]) -> bool:
    """Whether ``first`` must come before ``then``, in one step or more."""
    seen: set[str] = set()
    open_ = [*after.get(then, ())]
    while open_:
        action = open_.pop()
        if action == first:
            return True
        if action not in seen:
            seen.add(action)
            open_ += after.get(action, ())
    return False


def check_contradictions(entry: Entry, context: Context) -> Findings:
    """Yield entries that can apply together with this one and set the same thing to another value."""
    for remedy in entry.remedy:
        setting = setting_of(remedy.action)
        if not setting or _is_alternative(remedy):
            continue
        for other in context.knowledge.entries.values():
            if other.severity is None or other.id <= entry.id:
                continue
            for theirs in other.remedy:
                differs = setting_of(theirs.action) == setting and theirs.action != remedy.action
                if differs and not _is_alternative(theirs) and _together((entry, remedy), (other, theirs)):
                    yield "KB029", f"{remedy.action!r} here, {theirs.action!r} in {other.id}, and both can apply"


def _together(first: tuple[Entry, Remedy], second: tuple[Entry, Remedy]) -> bool:
    """Whether some machine out of the entries' own cases needs both remedies."""
    for case in _joined(first[0], second[0]):
        try:
            if all(case_outcome(entry, case)[0] and _wanted(remedy, case) for entry, remedy in (first, second)):
                return True
        except PredicateError:  # said by KB013
            return False
    return False


def _joined(first: Entry, second: Entry) -> Iterator[Case]:
    """Yield cases that hold what a case of each says, where the two do not contradict each other."""
    for one in first.case:
        for other in second.case:
            mine = {**one.facts, **dict.fromkeys(one.unset)}
            theirs = {**other.facts, **dict.fromkeys(other.unset)}
            agree = all(theirs[key] == value for key, value in mine.items() if key in theirs)
            if one.applies is True and other.applies is True and agree:
                yield Case(applies=True, facts={**mine, **theirs})


def _wanted(remedy: Remedy, case: Case) -> bool:
    if not remedy.when:
        return True
    return compile_predicate(remedy.when).evaluate(case_machine(case), 0).value is not False


REMEDY_CHECKS: tuple[Callable[[Entry, Context], Findings], ...] = (check_actions, check_order, check_contradictions)
