"""A Python source file as rules read it: its tree with offsets in bytes, and what its names stand for.

The standard library's parser is used because it is an order of magnitude faster than those that keep the formatting,
and nothing here needs them: edits replace bytes, so that everything else stays as it is by construction.
"""

from __future__ import annotations

import ast
import builtins
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator
from functools import cached_property
from io import BytesIO
from itertools import pairwise
from typing import TypeVar, cast

from rocmend.core.errors import DataError
from rocmend.port.python.calls import Argument, Call, arguments, calls
from rocmend.port.python.flags import Side, implied
from rocmend.port.python.scopes import Binding, Scope, Scopes
from rocmend.port.python.sides import Sides
from rocmend.port.python.syntax import is_python_2, why_not

__all__ = ["PythonFile", "syntax_error"]

_N = TypeVar("_N", bound=ast.AST)
_LINES = re.compile(r"\r\n|\r|\n")


class PythonFile:
    """A parsed Python file.

    Args:
        path: Relative to the project, with forward slashes.
        data: Its bytes.

    Attributes:
        module: Its tree.
        scopes: Scopes, bindings, parents.
        text: Its text, without a byte-order mark, line ends as they are.

    Raises:
        DataError: It is no Python that this interpreter can parse; the message says why.
    """

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        self.data = data
        self.encoding, self.text = _decoded(path, data)
        self._mark = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        try:
            self.module = _parsed(self.text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise DataError(path, why_not(self.text, error)) from error
        self.scopes = Scopes(self.module)
        self._known: dict[ast.AST, frozenset[str | None]] = {}
        self._sides = Sides(self)
        self._values_of: dict[tuple[int, int], tuple[set[object], bool]] = {}
        self._names_of: dict[tuple[int, int], set[str | None]] = {}

    # Places

    @cached_property
    def _lines(self) -> list[str]:
        starts = [0, *(match.end() for match in _LINES.finditer(self.text)), len(self.text)]
        return [self.text[one:other] for one, other in pairwise(starts)]

    @cached_property
    def _starts(self) -> list[int]:
        at = self._mark
        starts = []
        for line in self._lines:
            starts.append(at)
            at += len(line.encode(self.encoding))
        return [*starts, at]

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a place as ``ast`` gives it: a line from 1, a column in bytes of UTF-8."""
        start = self._starts[line - 1]
        if self.encoding == "utf-8" or not column:
            return start + column
        before = self._lines[line - 1].encode()[:column].decode()
        return start + len(before.encode(self.encoding))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """Return the offsets of a node's first byte and of the byte after it; parentheses around it are outside."""
        if not isinstance(node, ast.expr | ast.stmt | ast.keyword | ast.arg | ast.alias | ast.ExceptHandler):
            raise TypeError(f"{type(node).__name__} has no position in the source")
        return (
            self.offset(node.lineno, node.col_offset),
            self.offset(node.end_lineno or node.lineno, node.end_col_offset or node.col_offset),
        )

    def source(self, node: ast.AST) -> str:
        """Return a node's source text."""
        start, end = self.span(node)
        return self.data[start:end].decode(self.encoding)

    # Nodes

    def of(self, kind: type[_N]) -> list[_N]:
        """Return all nodes of a type, in order; what stands inside f-strings is left out."""
        return cast("list[_N]", self.scopes.by_type.get(kind, []))

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the node that holds another."""
        return self.scopes.parents.get(node)

    def statement(self, node: ast.AST) -> ast.stmt:
        """Return the innermost statement that a node is part of."""
        at: ast.AST | None = node
        while at is not None and not isinstance(at, ast.stmt):
            at = self.parent(at)
        if at is None:
            raise TypeError(f"{type(node).__name__} is part of no statement")
        return at

    def scope(self, node: ast.AST) -> Scope:
        """Return the scope that a node is evaluated in."""
        return self.scopes.scope_of[node]

    # Names

    def qualified(self, node: ast.AST) -> str | None:
        """Return the dotted name that an expression stands for; None where it is not one, or not surely.

        Imports under any name, aliases by assignment and ``getattr(x, "y")`` are followed; a name that nothing binds is
        taken for a builtin (``builtins.NAME``). A name that was bound to None beside its import, as a guard around an
        optional import does, stands for the import.
        """
        names = self.names(node)
        return next(iter(names)) if len(names) == 1 and None not in names else None

    def names(self, node: ast.AST) -> frozenset[str | None]:
        """Return the dotted names that an expression may stand for, and None where it may be something else."""
        known = self._known.get(node)
        if known is None:
            known = self._known[node] = frozenset(self._names(node, 0))
        return known

    def _names(self, node: ast.AST, depth: int) -> set[str | None]:
        match node:
            case ast.Name(id=name):
                found = self.scope(node).lookup(name) if node in self.scopes.scope_of else None
                return self._unbound(name) if found is None else self._bound(found[1], depth)
            case ast.Attribute(value=value, attr=attr):
                return {f"{name}.{attr}" if name else None for name in self._names(value, depth)}
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(attr)), *_]):
                return {f"{name}.{attr}" if name else None for name in self._names(owner, depth)}
            case _:
                return {None}

    def _unbound(self, name: str) -> set[str | None]:
        """Return what a name stands for that nothing in the file binds: a builtin, or part of what was star-imported.

        Of the modules that anyone imports so, torch alone has a name that rules look for and that is a builtin's too.
        """
        stars = self.scopes.module.stars
        if stars and (not hasattr(builtins, name) or (name == "compile" and "torch" in stars)):
            return {f"{stars[0]}.{name}"} if len(stars) == 1 else {None}
        return {f"builtins.{name}"}

    def _bound(self, bindings: list[Binding], depth: int) -> set[str | None]:
        key = (id(bindings), depth)  # the scopes keep the lists; without this, n assignments of x.y to x take n^8 steps
        if key not in self._names_of:
            self._names_of[key] = self._names_bound(bindings, depth)
        return self._names_of[key]

    def _names_bound(self, bindings: list[Binding], depth: int) -> set[str | None]:
        names: set[str | None] = set()
        for binding in bindings:
            if binding.imported is not None:
                names.add(binding.imported)
            elif binding.deletes or (isinstance(binding.value, ast.Constant) and binding.value.value is None):
                continue
            elif isinstance(binding.value, ast.Name | ast.Attribute | ast.Call) and depth < 8:
                names |= self._names(binding.value, depth + 1)
            else:
                names.add(None)
        return names or {None}

    def references(self, *names: str, aliases: bool = False) -> Iterator[ast.expr]:
        """Yield the expressions that stand for one of these dotted names; parts of longer ones included.

        Args:
            names: The dotted names.
            aliases: Whether names that were assigned such a value count too, not only imported ones.
        """
        lasts = {name.rpartition(".")[2] for name in names}
        for attribute in self.of(ast.Attribute):
            if attribute.attr in lasts and self.qualified(attribute) in names:
                yield attribute
        for name in self.of(ast.Name):
            if isinstance(name.ctx, ast.Load) and self.qualified(name) in names:
                found = self.scope(name).lookup(name.id)
                if aliases or (found and all(binding.imported for binding in found[1])):
                    yield name

    def calls(self, *names: str) -> Iterator[Call]:
        """Yield the calls of functions with these dotted names, ``functools.partial`` of them included."""
        return calls(self, names)

    def on_rocm_calls(self, *names: str) -> Iterator[Call]:
        """Yield the calls that are executed on ROCm."""
        return (call for call in self.calls(*names) if self.side(call.node) is not Side.CUDA)

    def arguments(self, call: Call, name: str, position: int | None = None) -> list[Argument]:
        """Return where a call gets an argument from: its keyword, its position, a dict that is unpacked into it."""
        return arguments(self, call, name, position)

    # Values

    def values(self, node: ast.expr, *, depth: int = 0) -> tuple[set[object], bool]:  # noqa: PLR0911  one line a form
        """Return the constants that an expression can be on ROCm, and whether there can be nothing else."""
        match node:
            case ast.Constant(value=value):
                return {value}, True
            case ast.IfExp(test=test, body=body, orelse=orelse):
                side = implied(self, test, True)
                if side is not None:
                    return self.values(body if side is Side.ROCM else orelse, depth=depth)
                return self._union([body, orelse], depth)
            case ast.BoolOp(values=parts):
                return self._union(parts, depth)
            case ast.NamedExpr(value=value):
                return self.values(value, depth=depth)
            case ast.Name(id=name) if depth < 8:
                return self._of_name(node, name, depth)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined(left, right, depth)
            case ast.Call(func=ast.Name(id="str"), args=[value], keywords=[]) if depth < 8:
                texts, known = self.values(value, depth=depth + 1)
                return {str(text) for text in texts}, known
            case ast.Call(func=func, args=[_, default]):
                known = isinstance(func, ast.Attribute) and func.attr in {"get", "getenv", "pop", "setdefault"}
                return (self.values(default, depth=depth + 1)[0], False) if known else (set(), False)
            case _:
                return set(), False

    def _union(self, nodes: Iterable[ast.expr], depth: int) -> tuple[set[object], bool]:
        values: set[object] = set()
        complete = True
        for node in nodes:
            some, known = self.values(node, depth=depth + 1)
            values |= some
            complete &= known
        return values, complete

    def _joined(self, left: ast.expr, right: ast.expr, depth: int) -> tuple[set[object], bool]:
        """Return what two pieces of text can be together."""
        if depth >= 8:
            return set(), False
        one, one_known = self.values(left, depth=depth + 1)
        other, other_known = self.values(right, depth=depth + 1)
        if not all(isinstance(value, str) for value in one | other) or len(one) * len(other) > 16:
            return set(), False
        return {f"{a}{b}" for a in one for b in other}, one_known and other_known

    def _of_name(self, node: ast.expr, name: str, depth: int) -> tuple[set[object], bool]:
        found = self.scope(node).lookup(name)
        if found is None:
            return set(), False
        key = (id(found[1]), depth)
        if key not in self._values_of:
            self._values_of[key] = self._values_bound(found[1], depth)
        return self._values_of[key]

    def _values_bound(self, bindings: list[Binding], depth: int) -> tuple[set[object], bool]:
        values: set[object] = set()
        complete = True
        for binding in bindings:
            if binding.deletes or self.side(binding.node) is Side.CUDA:
                continue
            value = binding.value or binding.default
            some, known = self.values(value, depth=depth + 1) if value is not None else (set(), False)
            values |= some
            complete &= known and not binding.parameter
        return values, complete

    # Gates

    def side(self, node: ast.AST) -> Side:
        """Return where a node is executed: on ROCm, on CUDA, or on both, from the tests around it."""
        return self._sides.of(node)

    def on_rocm(self, nodes: Iterable[_N]) -> Iterator[_N]:
        """Yield the nodes that are executed on ROCm: those that no gate keeps for CUDA."""
        return (node for node in nodes if self.side(node) is not Side.CUDA)


def syntax_error(path: str, data: bytes) -> str:
    """Return why a file that no rule needs parsed is broken Python; empty where it is not.

    Python 2 is not counted as broken: old projects carry scripts in it, and nothing in such a file uses CUDA.
    """
    try:
        _, text = _decoded(path, data)
    except DataError as error:
        return error.message
    try:
        _parsed(text)
    except (SyntaxError, ValueError) as error:
        return "" if is_python_2(text, error) else why_not(text, error)
    except (RecursionError, MemoryError):  # large data, say: valid as far as is known
        return ""
    return ""


def _parsed(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # invalid escapes are the project's own matter
        return ast.parse(text)


def _decoded(path: str, data: bytes) -> tuple[str, str]:
    try:
        head = b"\n".join(re.split(rb"\r\n|\r|\n", data, maxsplit=2)[:2])
        encoding, _ = tokenize.detect_encoding(BytesIO(head + b"\n").readline)
        mark = 3 if data.startswith(b"\xef\xbb\xbf") else 0
        encoding = "utf-8" if encoding.startswith("utf-8") else encoding
        text = data[mark:].decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise DataError(path, f"it is not in the encoding that it states or implies: {error}.") from error
    if text.encode(encoding) != data[mark:]:  # a stateful encoding: offsets would not hold
        raise DataError(path, f"its encoding {encoding} does not round-trip to the same bytes.")
    return encoding, text
