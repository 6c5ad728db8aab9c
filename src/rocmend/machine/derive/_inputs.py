"""What derivations share: asking for facts, and passing on why one is missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rocmend.machine.facts import FactSink, Machine


def why_missing(machine: Machine, key: str) -> str:
    """Return one clause about a fact that is not known."""
    gap = machine.gap(key)
    return f"{key} is not known ({gap.reason})" if gap else f"{key} is not known"


def known(machine: Machine, facts: FactSink, outputs: Iterable[str], *keys: str) -> tuple[Any, ...] | None:
    """Return the values of facts (None is a value), or state gaps for ``outputs`` and return None.

    Args:
        machine: Where to look.
        facts: Where gaps go.
        outputs: Keys that cannot be derived without these facts.
        keys: The facts.
    """
    missing = [key for key in keys if machine.fact(key) is None]
    if missing:
        reason = "; ".join(why_missing(machine, key) for key in missing)
        for output in outputs:
            facts.gap(output, reason, source=", ".join(keys))
        return None
    return tuple(machine.value(key) for key in keys)


def gpu_keys(index: int, *names: str) -> list[str]:
    """Return full keys of one GPU's facts."""
    return [f"gpu.{index}.{name}" for name in names]


def number(value: Any) -> float | None:
    """Return a number, or None where a fact holds something else (a capture made by hand)."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
