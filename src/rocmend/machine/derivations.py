"""Running derivations, each after those whose facts it reads."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from rocmend.core.errors import RocmendError, UnitError
from rocmend.core.records import CollectorRun, CollectorStatus, Gap
from rocmend.machine.facts import DERIVATIONS, Derivation, FactSink, Machine

NOT_DERIVABLE = "it does not follow from what is known of this machine"


def derive_all(machine: Machine) -> Machine:
    """Return the machine with the derived facts added.

    A derivation that fails is listed among the collectors as ``derive.NAME`` with status ``error``.

    Raises:
        UnitError: Derivations need each other in a circle.
    """
    derivations = [derivation for _, derivation in DERIVATIONS]
    return run_derivations(machine, derivations, problems=[(item.module, item.reason) for item in DERIVATIONS.problems])


def run_derivations(
    machine: Machine, derivations: Sequence[Derivation], *, problems: Sequence[tuple[str, str]] = ()
) -> Machine:
    """Run these derivations in dependency order over a machine; see ``derive_all``."""
    facts, gaps = dict(machine.facts), dict(machine.gaps)
    runs = [CollectorRun(module, CollectorStatus.ERROR, 0.0, reason) for module, reason in problems]
    current = msgspec.structs.replace(machine, facts=facts, gaps=gaps)  # shares the two dicts, which grow below
    for derivation in in_order(derivations):
        sink = FactSink(derivation.name, derivation.facts)
        start = time.monotonic()
        status, reason = CollectorStatus.OK, ""
        try:
            derivation.derive(current, sink)
        except (RocmendError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            # a captured machine may hold values of any type: one derivation that trips over them must not end the rest
            status, reason = CollectorStatus.ERROR, f"{type(error).__name__}: {error}"
            for key in derivation.facts:
                sink.gaps.setdefault(
                    key, Gap(key, f"it could not be derived: {reason}", f"derivation {derivation.name}")
                )
        for key, fact in sink.facts.items():
            facts.setdefault(key, fact)
        for key in derivation.facts:
            if "*" not in key and key not in facts and key not in gaps:
                sink.gaps.setdefault(key, Gap(key, NOT_DERIVABLE, f"derivation {derivation.name}"))
        for key, gap in sink.gaps.items():
            gaps.setdefault(key, gap)
        if status is not CollectorStatus.OK:
            time_ms = round((time.monotonic() - start) * 1000, 1)
            runs.append(CollectorRun(f"derive.{derivation.name}", status, time_ms, reason))
    return msgspec.structs.replace(current, collectors=machine.collectors + tuple(runs))


def in_order(derivations: Sequence[Derivation]) -> list[Derivation]:
    """Sort derivations so that each comes after those that state a fact it needs; by name where that leaves a choice.

    Raises:
        UnitError: They need each other in a circle.
    """
    waiting = {derivation.name: derivation for derivation in sorted(derivations, key=lambda item: item.name)}
    before = {
        name: {
            other.name
            for other in waiting.values()
            if other.name != name and any(overlap(need, key) for need in derivation.needs for key in other.facts)
        }
        for name, derivation in waiting.items()
    }
    ordered: list[Derivation] = []
    while waiting:
        free = [name for name in waiting if not before[name] & waiting.keys()]
        if not free:
            circle = ", ".join(waiting)
            raise UnitError("derivations", f"need each other in a circle: {circle}.", next_step="Split one of them.")
        ordered += [waiting.pop(name) for name in free]
    return ordered


def overlap(first: str, second: str) -> bool:
    """Whether two keys or patterns can name the same fact; a last ``*`` stands for any rest."""
    left, right = first.split("."), second.split(".")
    for at in range(max(len(left), len(right))):
        if at >= len(left):
            return left[-1] == "*"
        if at >= len(right):
            return right[-1] == "*"
        if left[at] != right[at] and "*" not in {left[at], right[at]}:
            return False
    return True
