"""What goes into each name of a ``setup.py``, wherever it stands."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from rocmend.port.python.file import PythonFile

__all__ = ["Feeds", "base", "feeds_of"]

_FEEDS = {"append", "extend", "insert", "update", "setdefault"}


def base(node: ast.AST) -> str:
    """Return the name of what an expression is a part of; empty where it has none."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class Feeds(dict[str, list[ast.AST]]):
    """The expressions that go into each name of a script, wherever it is.

    Attributes:
        keyed: The key that an expression goes to within a dict, by the expression's identity.
    """

    def __init__(self) -> None:
        self.keyed: dict[int, str] = {}

    def note(self, target: ast.AST, value: ast.AST) -> None:
        """Note that a value goes into a target."""
        name = base(target)
        if name:
            self.setdefault(name, []).append(value)
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                self.keyed[id(value)] = str(target.slice.value)


def feeds_of(file: PythonFile) -> Feeds:
    """Return the expressions that go into each name of a script."""
    found = Feeds()
    for target, value in _assigned(file):
        found.note(target, value)
    functions = {one.name: one for one in file.of(ast.FunctionDef)}
    for call in file.of(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _FEEDS:
            for argument in (*call.args, *(one.value for one in call.keywords)):
                found.note(call.func.value, argument)
        elif isinstance(call.func, ast.Name) and call.func.id in functions:
            for parameter, given in zip(functions[call.func.id].args.args, call.args, strict=False):
                found.setdefault(parameter.arg, []).append(given)
    for returned in file.of(ast.Return):
        at: ast.AST | None = returned
        while at is not None and not isinstance(at, ast.FunctionDef):
            at = file.parent(at)
        if at is not None and returned.value is not None:
            found.setdefault(at.name, []).append(returned.value)
    return found


def _assigned(file: PythonFile) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield targets of assignments and loops, each with what it is given."""
    for assigned in file.of(ast.Assign):
        yield from ((target, assigned.value) for target in assigned.targets)
    yield from ((one.target, one.value) for one in file.of(ast.AnnAssign) if one.value is not None)
    yield from ((one.target, one.value) for one in file.of(ast.AugAssign))
    yield from ((one.target, one.iter) for one in file.of(ast.For))
    yield from ((one.target, one.iter) for one in file.of(ast.comprehension))
