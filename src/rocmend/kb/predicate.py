"""The predicate language: text to a checked tree, and its outcome on a machine.

The syntax is a subset of Python's expressions, read with ``ast`` and rebuilt from a whitelist; nothing is executed.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec

from rocmend.core.errors import UnitError
from rocmend.core.patterns import PatternError, compile_pattern
from rocmend.core.records import Fact, Gap
from rocmend.kb import expression as ex
from rocmend.kb.functions import FUNCTIONS, TEXT_ARGUMENT
from rocmend.kb.reading import UNKNOWN, Reading
from rocmend.kb.values import truth
from rocmend.machine.facts import Machine

MAX_CHARS = 2000
MAX_NODES = 300
MAX_DEPTH = 25

_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
}
_ARITHMETIC: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_MISSPELLED = {"true": "True", "false": "False", "null": "None", "none": "None", "nil": "None"}


class PredicateError(UnitError):
    """A predicate that is malformed.

    Attributes:
        text: The predicate.
        offset: Where in it, in characters from 0.
    """

    code = "bad-predicate"

    def __init__(self, text: str, offset: int, message: str, *, next_step: str = "") -> None:
        self.text = text
        self.offset = offset
        near = text[offset : offset + 30]
        place = f" at character {offset + 1}, near {near!r}" if near else ""
        super().__init__("predicate", f"{message}{place}.", next_step=next_step)


class Outcome(msgspec.Struct, frozen=True):
    """What a predicate says of a machine.

    Attributes:
        value: True, False, or None for unknown.
        read: The facts that were read, in order.
        missing: The facts that were wanted and are not known, and why.
        notes: Operations that made no sense on the values found.
    """

    value: bool | None
    read: tuple[Fact, ...]
    missing: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()


class Predicate:
    """A compiled predicate.

    Attributes:
        text: As it was written.
        root: The checked tree.
        names: Every fact it names: dotted parts (``("gpu", "gfx_target")``), each once, in order.
    """

    def __init__(self, text: str, root: ex.Node) -> None:
        self.text = text
        self.root = root
        self.names = tuple(dict.fromkeys(node.parts for node in walk(root) if isinstance(node, ex.Name)))

    @property
    def reads_gpu(self) -> bool:
        """Whether it speaks of one GPU (``gpu.x``)."""
        return any(parts[0] == "gpu" and len(parts) > 1 for parts in self.names)

    @property
    def keys(self) -> tuple[str, ...]:
        """The fact keys it names, with ``gpu.*.x`` for ``gpu.x``."""
        return tuple(pattern_key(parts) for parts in self.names)

    def evaluate(self, machine: Machine, gpu: int | None = None) -> Outcome:
        """Return what the predicate says.

        Args:
            machine: The facts.
            gpu: Index of the GPU that ``gpu`` stands for; with None every ``gpu.x`` is unknown.
        """
        reading = Reading(machine, gpu)
        value = truth(self.root.evaluate(reading), reading)
        known = value is not UNKNOWN
        return Outcome(
            value=value if known else None,
            read=tuple(reading.read.values()),
            missing=() if known else tuple(reading.missing.values()),
            notes=() if known else tuple(reading.notes),
        )


def pattern_key(parts: tuple[str, ...]) -> str:
    """Return the key of a name as declarations write it: ``gpu.x`` becomes ``gpu.*.x``."""
    return ".".join(("gpu", "*", *parts[1:]) if parts[0] == "gpu" and len(parts) > 1 else parts)


def walk(node: ex.Node) -> Iterator[ex.Node]:
    """Yield a node and all below it."""
    yield node
    for child in node.children():
        yield from walk(child)


@lru_cache(maxsize=2048)
def compile_predicate(text: str) -> Predicate:
    """Check a predicate and return it ready to be evaluated.

    Raises:
        PredicateError: It is malformed, or larger than the limits.
    """
    flat = " ".join(text.splitlines())
    indent = len(flat) - len(flat.lstrip())
    if len(flat) > MAX_CHARS:
        raise PredicateError(text, MAX_CHARS, f"{len(flat)} characters; at most {MAX_CHARS} are allowed")
    if not flat.strip():
        raise PredicateError(text, 0, "the predicate is empty")
    return Predicate(text, _Builder(text, flat[indent:], indent).build())


def compile_name(text: str) -> ex.Name:
    """Check that a text is one fact name, with or without subscripts, and return it.

    Raises:
        PredicateError: It is something else.
    """
    root = compile_predicate(text).root
    if not isinstance(root, ex.Name):
        raise PredicateError(text, 0, "a fact's name was expected")
    return root


class _Builder:
    """Rebuilds Python's tree as ours, refusing what is not on the list."""

    def __init__(self, text: str, source: str, indent: int) -> None:
        self.text = text
        self.source = source
        self.indent = indent
        self.nodes = 0

    def build(self) -> ex.Node:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "\d" in a plain string is what a regular expression wants
                tree = ast.parse(self.source, mode="eval")
        except SyntaxError as error:
            offset = max((error.offset or 1) - 1, 0)
            raise PredicateError(self.text, self.indent + offset, f"not an expression ({error.msg})") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise PredicateError(self.text, 0, f"not an expression ({type(error).__name__})") from None
        return self.node(tree.body, 1)

    def error(self, node: ast.AST, message: str, next_step: str = "") -> PredicateError:
        column = getattr(node, "col_offset", 0)
        offset = len(self.source.encode()[:column].decode(errors="ignore"))
        return PredicateError(self.text, self.indent + offset, message, next_step=next_step)

    def node(self, node: ast.expr, depth: int) -> ex.Node:
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            limit = f"nested more than {MAX_DEPTH} levels deep" if depth > MAX_DEPTH else f"more than {MAX_NODES} parts"
            raise self.error(node, limit, "Split the entry, or derive a fact.")
        match node:
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self.name(node, depth)
            case ast.Compare():
                return self.comparison(node, depth)
            case ast.UnaryOp():
                return self.unary(node, depth)
            case ast.Call():
                return self.call(node, depth)
            case _:
                return self.plain(node, depth)

    def plain(self, node: ast.expr, depth: int) -> ex.Node:
        match node:
            case ast.Constant():
                return self.literal(node)
            case ast.List() | ast.Tuple():
                return ex.Sequence(tuple(self.node(item, depth + 1) for item in node.elts))
            case ast.BoolOp():
                items = tuple(self.node(item, depth + 1) for item in node.values)
                return ex.Connective(items, decider=isinstance(node.op, ast.Or))
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                left, right = self.node(node.left, depth + 1), self.node(node.right, depth + 1)
                return ex.Arithmetic(_ARITHMETIC[type(node.op)], left, right)
            case _:
                raise self.error(node, f"{type(node).__name__} is not part of the language")

    def literal(self, node: ast.Constant) -> ex.Node:
        if node.value is None or isinstance(node.value, bool | int | float | str):
            return ex.Literal(node.value)
        raise self.error(node, f"a literal of type {type(node.value).__name__} is not part of the language")

    def unary(self, node: ast.UnaryOp, depth: int) -> ex.Node:
        if isinstance(node.op, ast.Not):
            return ex.Not(self.node(node.operand, depth + 1))
        if isinstance(node.op, ast.USub):
            return ex.Arithmetic("-", ex.Literal(0), self.node(node.operand, depth + 1))
        raise self.error(node, f"the operator {type(node.op).__name__} is not part of the language")

    def comparison(self, node: ast.Compare, depth: int) -> ex.Node:
        rest: list[tuple[str, ex.Node]] = []
        for operator, operand in zip(node.ops, node.comparators, strict=True):
            if type(operator) not in _COMPARISONS:
                raise self.error(node, "'is' is not part of the language", "Write == or !=.")
            rest.append((_COMPARISONS[type(operator)], self.node(operand, depth + 1)))
        return ex.Compare(self.node(node.left, depth + 1), tuple(rest))

    def name(self, node: ast.expr, depth: int) -> ex.Name:
        keys: list[str | int] = []
        parts: list[str] = []
        inner = node
        while isinstance(inner, ast.Subscript):
            keys.append(self.subscript(inner))
            inner = inner.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if not isinstance(inner, ast.Name):
            raise self.error(node, "only a fact can be subscripted or have attributes")
        if len(keys) + len(parts) + depth > MAX_DEPTH:
            raise self.error(node, f"nested more than {MAX_DEPTH} levels deep")
        if not parts and inner.id in _MISSPELLED:
            raise self.error(inner, f"{inner.id!r} is no fact", f"Write {_MISSPELLED[inner.id]}.")
        if not parts and (inner.id in FUNCTIONS or inner.id == "known"):
            raise self.error(inner, f"{inner.id} is a function", f"Write {inner.id}(…).")
        if inner.id == "gpu" and not parts:
            raise self.error(inner, "a property of the GPU is missing", "Write gpu.gfx_target, for example.")
        return ex.Name((inner.id, *reversed(parts)), tuple(reversed(keys)))

    def subscript(self, node: ast.Subscript) -> str | int:
        key = node.slice
        if isinstance(key, ast.Constant) and isinstance(key.value, str | int) and not isinstance(key.value, bool):
            return key.value
        raise self.error(node, "a subscript must be a literal text or number")

    def call(self, node: ast.Call, depth: int) -> ex.Node:
        known = ", ".join(sorted([*FUNCTIONS, "known"]))
        if not isinstance(node.func, ast.Name) or node.func.id not in {*FUNCTIONS, "known"}:
            raise self.error(node, "no such function", f"Known: {known}.")
        name = node.func.id
        count = 1 if name == "known" else FUNCTIONS[name][1]
        if node.keywords or len(node.args) != count:
            raise self.error(node, f"{name} takes {count} argument{'s' if count > 1 else ''} by position")
        arguments = tuple(self.node(argument, depth + 1) for argument in node.args)
        if name == "known":
            if not isinstance(arguments[0], ex.Name):
                raise self.error(node, "known takes a fact's name")
            return ex.Known(arguments[0])
        self.check_text(node, name, arguments)
        return ex.Call(FUNCTIONS[name][0], arguments)

    def check_text(self, node: ast.Call, name: str, arguments: tuple[ex.Node, ...]) -> None:
        if name not in TEXT_ARGUMENT:
            return
        argument = arguments[TEXT_ARGUMENT[name]]
        value: Any = argument.value if isinstance(argument, ex.Literal) else None
        if not isinstance(value, str):
            raise self.error(node, f"argument {TEXT_ARGUMENT[name] + 1} of {name} must be a literal text")
        if name == "matches":
            try:
                compile_pattern(value)
            except PatternError as error:
                raise self.error(node.args[TEXT_ARGUMENT[name]], error.message.rstrip("."), error.next_step) from None
