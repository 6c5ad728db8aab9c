"""Reading facts while a predicate is evaluated, and keeping what was read and what was wanted."""

from __future__ import annotations

from typing import Any, Final

from rocmend.core.records import Fact, Gap
from rocmend.machine.facts import Machine


class _Unknown:
    """The third truth value, and the value of a fact that is not known."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
NOT_COLLECTED = "not collected"
MAX_NOTES = 20


class Reading:
    """One evaluation: the machine, the GPU that ``gpu`` stands for, and what was read.

    Args:
        machine: Where facts come from.
        gpu: Index of the GPU, or None where none is bound.
    """

    def __init__(self, machine: Machine, gpu: int | None = None) -> None:
        self.machine = machine
        self.gpu = gpu
        self.read: dict[str, Fact] = {}
        self.missing: dict[str, Gap] = {}
        self.notes: list[str] = []

    def note(self, text: str) -> _Unknown:
        """Keep why an operation has no result, and return that result."""
        if len(self.notes) < MAX_NOTES and text not in self.notes:
            self.notes.append(text)
        return UNKNOWN

    def lookup(self, parts: tuple[str, ...], keys: tuple[str | int, ...] = ()) -> Any:
        """Return the value of a name, longest key first, and of subscripts into it."""
        if parts[0] == "gpu" and len(parts) > 1:
            parts = ("gpu", "*" if self.gpu is None else str(self.gpu), *parts[1:])
        for end in range(len(parts), 0, -1):
            fact = self.machine.facts.get(".".join(parts[:end]))
            if fact is not None:
                return self._inside(fact, (*parts[end:], *keys))
        if parts[0] == "env" and len(parts) > 1:
            collected = self.machine.facts.get("env.collected")
            if collected is not None and collected.value is True:
                key = ".".join(parts)
                self.read[key] = Fact(key, None, collected.source)
                return None
        return self._absent(parts)

    def _inside(self, fact: Fact, path: tuple[str | int, ...]) -> Any:
        """Follow a path into a fact's value; keep what was read as evidence."""
        value, key = fact.value, fact.key
        for step in path:
            key = f"{key}[{step!r}]".replace("'", '"')
            if value is None:
                continue
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list | tuple) and isinstance(step, int):
                value = value[step] if -len(value) <= step < len(value) else None
            else:
                self.read.setdefault(fact.key, fact)
                return self.note(f"{fact.key} is {kind_of(value)}: {key} cannot be looked up in it")
        self.read.setdefault(key, fact if not path else Fact(key, value, fact.source))
        return value

    def _absent(self, parts: tuple[str, ...]) -> _Unknown:
        key = ".".join(parts)
        gap = self.machine.gap(key)
        reason = gap.reason if gap is not None else NOT_COLLECTED
        self.missing.setdefault(key, Gap(key, reason, gap.source if gap is not None else ""))
        return UNKNOWN


def kind_of(value: Any) -> str:
    """Name a value's kind for a note."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names = {int: "a number", float: "a number", str: "a text", list: "a list", tuple: "a list", dict: "a mapping"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "a version")
