"""Trying an entry's own cases."""

from __future__ import annotations

from rocmend.core.records import Fact
from rocmend.kb.entry import Case, Entry
from rocmend.kb.match import Match, Matcher
from rocmend.machine.facts import Machine


def case_machine(case: Case) -> Machine:
    """Return the machine that a case describes.

    ``gpu.x`` becomes ``gpu.0.x``. Nothing is known beyond what the case states: with ``"env.collected" = true`` every
    variable that it does not name is unset, without it such a variable is unknown.
    """
    facts: dict[str, Fact] = {}
    stated = {**case.facts, **dict.fromkeys(case.unset)}
    for name, value in stated.items():
        parts = name.split(".")
        if parts[0] == "gpu" and len(parts) > 1 and not parts[1].isdigit():
            parts.insert(1, "0")
        key = ".".join(parts)
        facts[key] = Fact(key, value, "case")
    return Machine(name="case", captured_at="", facts=facts, gaps={})


def case_outcome(entry: Entry, case: Case) -> tuple[bool | None, list[Match]]:
    """Return whether the entry applies to a case's machine, and the matches that say so.

    With several GPUs the entry applies where it applies to one of them.

    Raises:
        PredicateError: The entry's predicate is malformed.
    """
    matches = Matcher(case_machine(case)).match(entry)
    outcomes = {match.applies for match in matches}
    value = True if True in outcomes else (None if None in outcomes else False)
    return value, matches
