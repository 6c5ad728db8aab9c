"""Declaring, collecting and deriving facts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from rocmend.core.errors import UnitError
from rocmend.core.records import SCHEMA_VERSION, CollectorRun, Fact, Gap
from rocmend.core.registry import Registry
from rocmend.machine.root import Root


class Machine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A snapshot of facts about one machine.

    Attributes:
        name: ``this machine`` or the captured folder's name.
        captured_at: ISO time of the snapshot (UTC).
        facts: Every fact, by key.
        gaps: What could not be established, by key or ``prefix.*``.
        collectors: How each collector ended.
        hypothetical_target: The gfx target that stands in for its GPUs, which it does not have; empty for a machine as
            it is.
        schema_version: Version of this record.
    """

    name: str
    captured_at: str
    facts: dict[str, Fact]
    gaps: dict[str, Gap]
    collectors: tuple[CollectorRun, ...] = ()
    hypothetical_target: str = ""
    schema_version: int = SCHEMA_VERSION

    def value(self, key: str, default: Any = None) -> Any:
        """Return a fact's value, or ``default`` where it is not known."""
        fact = self.facts.get(key)
        return default if fact is None else fact.value

    def fact(self, key: str) -> Fact | None:
        """Return the fact with this key, or None."""
        return self.facts.get(key)

    def gap(self, key: str) -> Gap | None:
        """Return why a fact is not known: its own gap, that of its pattern (``gpu.*.name``) or of a group it is in."""
        for own in (key, re.sub(r"\.\d+(?=\.)", ".*", key)):
            if own in self.gaps:
                return self.gaps[own]
        parts = key.split(".")
        for end in range(len(parts) - 1, 0, -1):
            gap = self.gaps.get(".".join(parts[:end]) + ".*")
            if gap is not None:
                return gap
        return None

    def matching(self, pattern: str) -> Machine:
        """Return the machine with only those facts, and gaps, whose key begins with a text or fits a shell pattern.

        A fact that is not known is there as its gap, that of its group included.
        """
        from fnmatch import fnmatchcase

        glob = any(sign in pattern for sign in "*?[")

        def fits(key: str) -> bool:
            return fnmatchcase(key, pattern) if glob else key.startswith(pattern)

        gaps = {key: gap for key, gap in self.gaps.items() if fits(key)}
        facts = {key: fact for key, fact in self.facts.items() if fits(key)}
        if not facts and not gaps and (gap := self.gap(pattern)) is not None:
            gaps = {gap.key: gap}
        return msgspec.structs.replace(self, facts=facts, gaps=gaps)

    def indices(self, group: str) -> list[int]:
        """Return the indices of a repeated group: ``indices("gpu")`` is [0, 1] with two GPUs."""
        index = re.compile(rf"{re.escape(group)}\.(\d+)\.")
        return sorted({int(match[1]) for key in self.facts if (match := index.match(key))})


class FactSink:
    """Where a collector or derivation states facts; refuses keys that it did not declare."""

    def __init__(self, owner: str, declared: Iterable[str]) -> None:
        self.owner = owner
        self.facts: dict[str, Fact] = {}
        self.gaps: dict[str, Gap] = {}
        self._declared = KeyPatterns(declared)

    def put(self, key: str, value: Any, *, source: str, raw: str = "") -> None:
        """State a fact; the first statement of a key stands.

        Args:
            key: A declared key, with the index filled in where it is repeated.
            value: A JSON value; None means "looked for and not set".
            source: Where it was read.
            raw: The text it was read from (cut at 500 characters).
        """
        self._check(key)
        self.facts.setdefault(key, Fact(key, value, source, raw[:500]))

    def gap(self, key: str, reason: str, *, source: str = "") -> None:
        """State that a fact, or a group ``prefix.*``, could not be established, and why."""
        if not key.endswith(".*"):
            self._check(key)
        self.gaps.setdefault(key, Gap(key, reason, source))

    def _check(self, key: str) -> None:
        if key not in self._declared:
            raise UnitError(self.owner, f"states the fact {key!r}, which it does not declare.")


class KeyPatterns:
    """A set of declared keys; ``gpu.*.name`` matches any index, ``env.*`` as a last part any rest."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        joined = "|".join(self._regex(pattern) for pattern in self.patterns)
        self._matcher = re.compile(f"(?:{joined})\\Z") if joined else None

    @staticmethod
    def _regex(pattern: str) -> str:
        parts = pattern.split(".")
        body = [r"\d+" if part == "*" else re.escape(part) for part in parts[:-1]]
        body.append(r".+" if parts[-1] == "*" else re.escape(parts[-1]))
        return r"\.".join(body)

    def __contains__(self, key: str) -> bool:
        return self._matcher is not None and self._matcher.match(key) is not None


class Collector(msgspec.Struct, frozen=True):
    """A registered collector.

    Attributes:
        name: Its id.
        facts: Declared key (or pattern) to one line of documentation.
        time_limit_s: After this it is ended and its facts become gaps.
        collect: The function.
    """

    name: str
    facts: Mapping[str, str]
    time_limit_s: float
    collect: Callable[[Root, FactSink], None]


class Derivation(msgspec.Struct, frozen=True):
    """A registered derivation: facts computed from facts.

    Attributes:
        name: Its id.
        facts: Declared key (or pattern) to one line of documentation.
        needs: The facts it reads; derivations run after those whose facts they need.
        derive: The function.
    """

    name: str
    facts: Mapping[str, str]
    needs: tuple[str, ...]
    derive: Callable[[Machine, FactSink], None]


COLLECTORS: Registry[Collector] = Registry("collector", "rocmend.machine.collectors")
DERIVATIONS: Registry[Derivation] = Registry("derivation", "rocmend.machine.derive")

CollectFunction = Callable[[Root, FactSink], None]
DeriveFunction = Callable[[Machine, FactSink], None]


def collector(
    name: str, *, facts: Mapping[str, str], time_limit_s: float = 5.0
) -> Callable[[CollectFunction], CollectFunction]:
    """Register a collector; see docs/explanation/architecture.md."""

    def decorate(function: CollectFunction) -> CollectFunction:
        COLLECTORS.register(name)(Collector(name, facts, time_limit_s, function))
        return function

    return decorate


def derivation(
    name: str, *, facts: Mapping[str, str], needs: tuple[str, ...]
) -> Callable[[DeriveFunction], DeriveFunction]:
    """Register a derivation; see docs/explanation/architecture.md."""

    def decorate(function: DeriveFunction) -> DeriveFunction:
        DERIVATIONS.register(name)(Derivation(name, facts, needs, function))
        return function

    return decorate


ASKED_FACTS = {
    "ask.workload": "What the person wants to run (--for); null where they did not say.",
    "ask.model_bytes": "Size of the model they want to run, in bytes (--model-size); null where they did not say.",
}
"""Facts that come from the command line rather than from the machine."""


def declared_facts() -> Iterator[tuple[str, str, str]]:
    """Yield every declared (key pattern, documentation, declaring unit); of several units the first, which reads it."""
    declared = {key: (text, "command line") for key, text in ASKED_FACTS.items()}
    for registry in (COLLECTORS, DERIVATIONS):
        for name, unit in registry:
            for key, text in unit.facts.items():
                declared.setdefault(key, (text, f"{registry.kind} {name}"))
    for key, (text, unit_name) in declared.items():
        yield key, text, unit_name
