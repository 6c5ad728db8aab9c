"""The nodes of a predicate and their three-valued evaluation.

A node never raises, whatever the facts hold: an operation that makes no sense on its operands is *unknown*, with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from rocmend.core.errors import DataError
from rocmend.core.records import Fact, Gap
from rocmend.kb.versions import Version, parse_version
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
                return self.note(f"{fact.key} is {_kind(value)}: {key} cannot be looked up in it")
        self.read.setdefault(key, fact if not path else Fact(key, value, fact.source))
        return value

    def _absent(self, parts: tuple[str, ...]) -> _Unknown:
        key = ".".join(parts)
        gap = (
            self.machine.gap(key) or self.machine.gap(".".join(("gpu", "*", *parts[2:])))
            if parts[0] == "gpu"
            else (self.machine.gap(key))
        )
        for end in range(len(parts) - 1, 0, -1):
            gap = gap or self.machine.gaps.get(".".join(parts[:end]))
        reason = gap.reason if gap is not None else NOT_COLLECTED
        self.missing.setdefault(key, Gap(key, reason, gap.source if gap is not None else ""))
        return UNKNOWN


class Node:
    """A part of an expression."""

    __slots__ = ()

    def evaluate(self, reading: Reading) -> Any:
        """Return the value: JSON, a Version, or UNKNOWN."""
        raise NotImplementedError

    def children(self) -> Iterable[Node]:
        """Return the nodes below this one."""
        return ()


class Literal(Node):
    """A constant."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def evaluate(self, reading: Reading) -> Any:  # noqa: ARG002  every node is called the same way
        """Return the constant."""
        return self.value


class Name(Node):
    """A fact, with subscripts into its value."""

    __slots__ = ("keys", "parts")

    def __init__(self, parts: tuple[str, ...], keys: tuple[str | int, ...] = ()) -> None:
        self.parts = parts
        self.keys = keys

    def evaluate(self, reading: Reading) -> Any:
        """Return the fact's value."""
        return reading.lookup(self.parts, self.keys)


class Sequence(Node):
    """A list."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Node, ...]) -> None:
        self.items = items

    def evaluate(self, reading: Reading) -> Any:
        """Return the list of the items' values (an item may be UNKNOWN)."""
        return [item.evaluate(reading) for item in self.items]

    def children(self) -> Iterable[Node]:
        """Return the items."""
        return self.items


class Connective(Node):
    """``and`` / ``or`` in Kleene's logic; evaluation stops at the operand that decides."""

    __slots__ = ("decider", "items")

    def __init__(self, items: tuple[Node, ...], *, decider: bool) -> None:
        self.items = items
        self.decider = decider

    def evaluate(self, reading: Reading) -> Any:
        """Return the decider where an operand is it, else unknown where one is, else the other value."""
        result: Any = not self.decider
        for item in self.items:
            value = truth(item.evaluate(reading), reading)
            if value is self.decider:
                return value
            if value is UNKNOWN:
                result = UNKNOWN
        return result

    def children(self) -> Iterable[Node]:
        """Return the operands."""
        return self.items


class Not(Node):
    """Negation; unknown stays unknown."""

    __slots__ = ("item",)

    def __init__(self, item: Node) -> None:
        self.item = item

    def evaluate(self, reading: Reading) -> Any:
        """Return the opposite."""
        value = truth(self.item.evaluate(reading), reading)
        return UNKNOWN if value is UNKNOWN else not value

    def children(self) -> Iterable[Node]:
        """Return the operand."""
        return (self.item,)


class Compare(Node):
    """A comparison, or a chain of them: ``a < b < c``."""

    __slots__ = ("first", "rest")

    def __init__(self, first: Node, rest: tuple[tuple[str, Node], ...]) -> None:
        self.first = first
        self.rest = rest

    def evaluate(self, reading: Reading) -> Any:
        """Return whether every link of the chain holds."""
        left = self.first.evaluate(reading)
        result: Any = True
        for operator, node in self.rest:
            right = node.evaluate(reading)
            value = compare(operator, left, right, reading)
            if value is False:
                return False
            if value is UNKNOWN:
                result = UNKNOWN
            left = right
        return result

    def children(self) -> Iterable[Node]:
        """Return the operands."""
        return (self.first, *(node for _, node in self.rest))


class Arithmetic(Node):
    """``+ - * /`` over numbers."""

    __slots__ = ("left", "operator", "right")

    def __init__(self, operator: str, left: Node, right: Node) -> None:
        self.operator = operator
        self.left = left
        self.right = right

    def evaluate(self, reading: Reading) -> Any:
        """Return the result, unknown where an operand is no number or the result is not finite."""
        left, right = self.left.evaluate(reading), self.right.evaluate(reading)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if not (is_number(left) and is_number(right)):
            return reading.note(f"{_kind(left)} {self.operator} {_kind(right)} is not arithmetic")
        try:
            match self.operator:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case _:
                    return left / right
        except ArithmeticError as error:
            return reading.note(f"arithmetic: {error}")

    def children(self) -> Iterable[Node]:
        """Return the operands."""
        return (self.left, self.right)


class Call(Node):
    """A function of values."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Callable[..., Any], arguments: tuple[Node, ...]) -> None:
        self.function = function
        self.arguments = arguments

    def evaluate(self, reading: Reading) -> Any:
        """Return the function's value, unknown where an argument is."""
        values = [node.evaluate(reading) for node in self.arguments]
        return UNKNOWN if any(value is UNKNOWN for value in values) else self.function(reading, *values)

    def children(self) -> Iterable[Node]:
        """Return the arguments."""
        return self.arguments


class Known(Node):
    """``known(x)``: whether a fact is there at all; never unknown itself."""

    __slots__ = ("name",)

    def __init__(self, name: Name) -> None:
        self.name = name

    def evaluate(self, reading: Reading) -> Any:
        """Return whether the fact is known (a null is); its absence is not held against the predicate."""
        trial = Reading(reading.machine, reading.gpu)
        value = self.name.evaluate(trial)
        reading.read.update(trial.read)
        return value is not UNKNOWN

    def children(self) -> Iterable[Node]:
        """Return the name."""
        return (self.name,)


def truth(value: Any, reading: Reading) -> Any:
    """Return True, False or UNKNOWN; a value that is no boolean is unknown, with a note."""
    if value is True or value is False or value is UNKNOWN:
        return value
    return reading.note(f"{_kind(value)} is neither true nor false; compare it with something")


def compare(operator: str, left: Any, right: Any, reading: Reading) -> Any:
    """Return the outcome of one comparison; see docs/how-to/write-a-knowledge-entry.md for the rules."""
    if operator in {"in", "not in"}:
        value = _contains(right, left, reading)
        return value if operator == "in" or value is UNKNOWN else not value
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if operator in {"==", "!="}:
        value = equal(left, right)
        return value if operator == "==" or value is UNKNOWN else not value
    return _ordered(operator, left, right, reading)


def equal(left: Any, right: Any) -> Any:
    """Return whether two values are the same; values of different kinds are not."""
    if isinstance(left, Version) != isinstance(right, Version):
        left, right = _as_version(left), _as_version(right)
    if isinstance(left, bool) != isinstance(right, bool):
        return False
    if isinstance(left, list) and isinstance(right, list) and any(item is UNKNOWN for item in (*left, *right)):
        return UNKNOWN
    try:
        return bool(left == right)
    except RecursionError:
        return UNKNOWN


def is_number(value: Any) -> bool:
    """Whether a value is a number (a boolean is none)."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _as_version(value: Any) -> Any:
    """Read a text that is compared with a version as one; leave what is none."""
    if not isinstance(value, str):
        return value
    try:
        return parse_version(value)
    except DataError:
        return value


def _ordered(operator: str, left: Any, right: Any, reading: Reading) -> Any:
    if left is None or right is None:
        return False
    if isinstance(left, Version) or isinstance(right, Version):
        left, right = _as_version(left), _as_version(right)
        comparable = isinstance(left, Version) and isinstance(right, Version)
    else:
        comparable = is_number(left) and is_number(right)
    if not comparable:
        hint = "; use version()" if isinstance(left, str) and isinstance(right, str) else ""
        return reading.note(f"{_kind(left)} {operator} {_kind(right)} has no answer{hint}")
    match operator:
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case _:
            return bool(left >= right)


def _contains(container: Any, item: Any, reading: Reading) -> Any:
    if container is UNKNOWN or (item is UNKNOWN and container != []):
        return UNKNOWN
    if container is None:
        return False
    if isinstance(container, str):
        if isinstance(item, str):
            return item in container
        return False if item is None else reading.note(f"{_kind(item)} cannot be part of a text")
    if isinstance(container, dict):
        return isinstance(item, str) and item in container
    if isinstance(container, list | tuple):
        results = [UNKNOWN if other is UNKNOWN else equal(item, other) for other in container]
        return True if True in results else (UNKNOWN if UNKNOWN in results else False)
    return reading.note(f"nothing can be in {_kind(container)}")


def _kind(value: Any) -> str:
    """Name a value's kind for a note."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    names = {int: "a number", float: "a number", str: "a text", list: "a list", tuple: "a list", dict: "a mapping"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "a version")
