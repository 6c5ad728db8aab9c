"""Machines made of facts, and running one derivation over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rocmend.core.records import Fact, Gap
from rocmend.machine.facts import DERIVATIONS, FactSink, KeyPatterns, Machine


def make_machine(facts: Mapping[str, Any], gaps: Mapping[str, str] | None = None) -> Machine:
    """Return a machine that knows these facts."""
    return Machine(
        "test",
        "2026-11-21T00:00:00+00:00",
        {key: Fact(key, value, "test") for key, value in facts.items()},
        {key: Gap(key, reason) for key, reason in (gaps or {}).items()},
    )


class Reading(dict[str, Any]):
    """Facts of a machine that note which keys were asked for."""

    def __init__(self, facts: Mapping[str, Any]) -> None:
        super().__init__(facts)
        self.asked: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        """Note and return a fact."""
        self.asked.add(key)
        return super().get(key, default)


@pytest.fixture
def derive() -> Callable[..., FactSink]:
    """Run one derivation by name; what it reads must be what it declares that it needs."""

    def run(name: str, facts: Mapping[str, Any], gaps: Mapping[str, str] | None = None) -> FactSink:
        unit = DERIVATIONS.get(name)
        machine = make_machine(facts, gaps)
        reading = Reading(machine.facts)
        sink = FactSink(name, unit.facts)
        unit.derive(Machine("test", "", reading, machine.gaps), sink)
        assert {key for key in reading.asked if key not in KeyPatterns(unit.needs)} - {"env.collected"} == set()
        return sink

    return run
