"""Calls and where their arguments come from: keywords, positions, partials, dicts that are unpacked."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile
    from rocmend.port.python.scopes import Binding, Scope

__all__ = ["Argument", "Call", "arguments", "calls", "entries"]


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
            found += entries(file, call, keyword.value, name)
    return found


def entries(  # noqa: PLR0911  one line a form
    file: PythonFile, call: Call, value: ast.expr, name: str, depth: int = 0
) -> list[Argument]:
    """Return where a key of a dict gets its value: in literals, calls of ``dict``, merges of both, and variables.

    Args:
        file: The file.
        call: The call that is given the dict, or what is in it.
        value: The dict.
        name: The key.
        depth: How many dicts were followed to get here.
    """
    if depth > 6:
        return []
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            return [*entries(file, call, body, name, depth + 1), *entries(file, call, orelse, name, depth + 1)]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _last(file, call, name, [(None, left), (None, right)], value, depth)
        case ast.BoolOp(op=ast.Or(), values=values):
            return [one for part in values for one in entries(file, call, part, name, depth + 1)]
        case ast.Dict(keys=keys, values=values):
            pairs = [(_text(key) if key else None, entry) for key, entry in zip(keys, values, strict=True)]
            return _last(file, call, name, pairs, value, depth)
        case ast.Call(func=func, args=args, keywords=keywords) if file.qualified(func) == "builtins.dict":
            pairs = [*((None, one) for one in args), *((keyword.arg, keyword.value) for keyword in keywords)]
            return _last(file, call, name, pairs, value, depth)
        case ast.Name():
            return _of_variable(file, call, value, name, depth)
        case _:
            return []


def _text(key: ast.expr) -> str:
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else ""


def _last(  # noqa: PLR0913, PLR0917  the parts of a dict and where it stands
    file: PythonFile, call: Call, name: str, pairs: list[tuple[str | None, ast.expr]], holder: ast.expr, depth: int
) -> list[Argument]:
    """Return the entries of which the last that is there counts; a pair without a key is a dict that is merged in."""
    found: list[Argument] = []
    for key, entry in reversed(pairs):
        if key == name:
            return [Argument(entry, holder), *found]
        if key is None:
            merged = entries(file, call, entry, name, depth + 1)
            found = [*merged, *found]
            if merged and isinstance(entry, ast.Dict):
                break
    return found


_found: WeakKeyDictionary[PythonFile, dict[tuple[object, ...], list[Argument]]] = WeakKeyDictionary()


def _of_variable(file: PythonFile, call: Call, value: ast.Name, name: str, depth: int) -> list[Argument]:
    """Return where a key of a dict in a variable gets its value; found once for all calls of one function."""
    found = file.scope(value).lookup(value.id)
    if found is None:
        return []
    plain = file.qualified(call.node.func) == call.name  # the call itself counts as any other of that function
    known = _found.setdefault(file, {})
    key = (id(found[1]), name, depth, call.name if plain else call.node)
    if key not in known:
        known[key] = _in_bindings(file, call, value, name, depth, *found)
    return known[key]


def _in_bindings(  # noqa: PLR0913, PLR0917  what is asked for, and what the variable is
    file: PythonFile, call: Call, value: ast.Name, name: str, depth: int, scope: Scope, bindings: list[Binding]
) -> list[Argument]:
    literals = [literal for binding in bindings if (literal := binding.value or binding.default) is not None]
    plain = [binding for binding in bindings if binding.value is not None]
    shared = len(plain) != len(bindings) or _other_uses(file, call, value)
    depth += 1 if len(bindings) <= 4 else 5  # dicts made of each other, in turn, would take exponential time
    told = [
        Argument(one.value, one.holder, one.shared or shared)
        for literal in literals
        for one in entries(file, call, literal, name, depth + 1)
    ]
    for other in file.of(ast.Name):
        same = file.scope(other).lookup(value.id) if other.id == value.id else None
        if same is not None and same[0] is scope:
            told += [
                Argument(one.value, one.holder, one.shared or shared)
                for one in _put_later(file, call, other, name, depth)
            ]
    return told


def _put_later(file: PythonFile, call: Call, variable: ast.Name, name: str, depth: int) -> list[Argument]:
    """Return what a statement puts under a key of a dict: ``d["k"] = v``, ``d.update(k=v)``, ``d |= {"k": v}``."""
    parent = file.parent(variable)
    match parent:
        case ast.Subscript(slice=ast.Constant(value=key), ctx=ast.Store()) if key == name:
            statement = file.parent(parent)
            return [Argument(statement.value, parent)] if isinstance(statement, ast.Assign) else []
        case ast.AugAssign(op=ast.BitOr(), value=value) if parent.target is variable:
            return entries(file, call, value, name, depth + 1)
        case ast.Attribute(attr="update" | "setdefault" as method):
            user = file.parent(parent)
            if not (isinstance(user, ast.Call) and user.func is parent):
                return []
            if method == "setdefault":
                put = len(user.args) == 2 and isinstance(user.args[0], ast.Constant) and user.args[0].value == name
                return [Argument(user.args[1], user)] if put else []
            pairs = [*((None, one) for one in user.args), *((keyword.arg, keyword.value) for keyword in user.keywords)]
            return _last(file, call, name, pairs, user, depth)
        case _:
            return []


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
        if isinstance(parent, ast.keyword):
            user = file.parent(parent)
            if isinstance(user, ast.Call) and (user is call.node or file.qualified(user.func) == call.name):
                continue
        elif isinstance(parent, ast.Subscript | ast.Attribute) and _stores(parent):
            continue
        return True
    return False


def _stores(node: ast.Subscript | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) if isinstance(node, ast.Subscript) else node.attr in {"update", "setdefault"}
