"""Calls and where their arguments come from: keywords, positions, partials, dicts that are unpacked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["Argument", "Call", "arguments", "calls"]


class Call(NamedTuple):
    """A call of a known function, or ``functools.partial`` of it.

    Attributes:
        node: The call in the source.
        name: The function's dotted name.
        args: The positional arguments that the function gets.
        keywords: The keyword arguments, unpacked dicts among them.
    """

    node: ast.Call
    name: str
    args: list[ast.expr]
    keywords: list[ast.keyword]


class Argument(NamedTuple):
    """Where an argument's value stands.

    Attributes:
        value: The expression.
        holder: The dict literal or call of ``dict`` that holds it, or the subscript that it is assigned to; None where
            it stands in the call.
        shared: Whether the holder may serve others than this call.
    """

    value: ast.expr
    holder: ast.expr | None = None
    shared: bool = False


def calls(file: PythonFile, names: tuple[str, ...]) -> Iterator[Call]:
    """Yield the calls of functions with these dotted names."""
    for node in file.of(ast.Call):
        name = file.qualified(node.func)
        if name in names and name is not None:
            yield Call(node, name, node.args, node.keywords)
        elif name in {"functools.partial", "functools.partialmethod"} and node.args:
            inner = file.qualified(node.args[0])
            if inner in names and inner is not None:
                yield Call(node, inner, node.args[1:], node.keywords)


def arguments(file: PythonFile, call: Call, name: str, position: int | None = None) -> list[Argument]:
    """Return where a call gets an argument from; empty where it is not given, or only in ways that are not seen."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return [Argument(keyword.value)]
    starred = any(isinstance(value, ast.Starred) for value in call.args)
    if position is not None and not starred and position < len(call.args):
        return [Argument(call.args[position])]
    found: list[Argument] = []
    for keyword in call.keywords:
        if keyword.arg is None:
            found += _unpacked(file, call, keyword.value, name)
    return found


def _unpacked(file: PythonFile, call: Call, value: ast.expr, name: str) -> list[Argument]:
    direct = _entry(file, value, name)
    if direct is not None:
        return [Argument(direct, value)]
    if not isinstance(value, ast.Name):
        return []
    found = file.scope(value).lookup(value.id)
    if found is None:
        return []
    scope, bindings = found
    literals = [binding.value for binding in bindings if binding.value is not None]
    shared = len(literals) != len(bindings) or _other_uses(file, call, value)
    entries: list[Argument] = []
    for literal in literals:
        entry = _entry(file, literal, name)
        if entry is not None:
            entries.append(Argument(entry, literal, shared))
    for subscript in file.of(ast.Subscript):
        if not (isinstance(subscript.value, ast.Name) and subscript.value.id == value.id):
            continue
        same = file.scope(subscript).lookup(value.id)
        statement = file.parent(subscript)
        stored = isinstance(subscript.slice, ast.Constant) and subscript.slice.value == name
        if (
            stored
            and same
            and same[0] is scope
            and isinstance(statement, ast.Assign)
            and subscript in statement.targets
        ):
            entries.append(Argument(statement.value, subscript, shared))
    return entries


def _entry(file: PythonFile, value: ast.expr, name: str) -> ast.expr | None:
    """Return a key's value in a dict literal or a call of ``dict``."""
    if isinstance(value, ast.Dict):
        for key, entry in zip(value.keys, value.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == name:
                return entry
    if isinstance(value, ast.Call) and file.qualified(value.func) == "builtins.dict":
        for keyword in value.keywords:
            if keyword.arg == name:
                return keyword.value
    return None


def _other_uses(file: PythonFile, call: Call, holder: ast.Name) -> bool:
    """Tell whether a dict is read by anything but calls of the same function and stores of single keys."""
    found = file.scope(holder).lookup(holder.id)
    for name in file.of(ast.Name):
        if name.id != holder.id or not isinstance(name.ctx, ast.Load):
            continue
        other = file.scope(name).lookup(name.id)
        if other is None or found is None or other[0] is not found[0]:
            continue
        parent = file.parent(name)
        if isinstance(parent, ast.keyword) and parent.arg is None:
            user = file.parent(parent)
            if isinstance(user, ast.Call) and file.qualified(user.func) == call.name:
                continue
            if user is call.node:
                continue
        elif isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Store):
            continue
        return True
    return False
