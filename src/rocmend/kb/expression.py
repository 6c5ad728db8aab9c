"""The nodes of a predicate and their three-valued evaluation.

A node never raises, whatever the facts hold: an operation that makes no sense on its operands is *unknown*, with a
note.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

from rocmend.kb.reading import UNKNOWN, Reading, kind_of
from rocmend.kb.values import compare, is_number, truth

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


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
        for comparison, node in self.rest:
            right = node.evaluate(reading)
            value = compare(comparison, left, right, reading)
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

    __slots__ = ("left", "right", "sign")

    def __init__(self, sign: str, left: Node, right: Node) -> None:
        self.sign = sign
        self.left = left
        self.right = right

    def evaluate(self, reading: Reading) -> Any:
        """Return the result, unknown where an operand is no number or the result is not finite."""
        left, right = self.left.evaluate(reading), self.right.evaluate(reading)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if not (is_number(left) and is_number(right)):
            return reading.note(f"{kind_of(left)} {self.sign} {kind_of(right)} is not arithmetic")
        try:
            return _ARITHMETIC[self.sign](left, right)
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
