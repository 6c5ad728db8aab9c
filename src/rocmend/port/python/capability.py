"""Which expressions of a file are a compute capability, or are made of one, and which give it to other code."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["CAPABILITY", "given_away", "is_capability"]

CAPABILITY = "torch.cuda.get_device_capability"
_PROPERTIES = "torch.cuda.get_device_properties"
_MAKES = frozenset(("int", "float", "str", "map", "tuple", "list", "max", "min", "join", "format"))
"""Functions and methods that make a number or a text of what they are given."""
_SAYS = re.compile(
    r"print|log|debug|info|warning|warn|error|exception|critical|write|echo|append|fail|skip|\w*Error|\w*Exception"
)
_ARCHITECTURE = re.compile(r"\bsm_|\bcompute_|-arch")
_DEEPEST = 12


def is_capability(file: PythonFile, node: ast.AST, depth: int = 0) -> bool:  # noqa: PLR0911  one a form
    """Tell whether an expression is a capability or made of it: an item, arithmetic, a text, a name for one."""
    if depth > _DEEPEST:
        return False
    match node:
        case ast.Call():
            return _calls(file, node, depth)
        case ast.BinOp(left=one, right=other) | ast.IfExp(body=one, orelse=other):
            return is_capability(file, one, depth) or is_capability(file, other, depth)
        case ast.Subscript(value=value) | ast.NamedExpr(value=value) | ast.FormattedValue(value=value):
            return is_capability(file, value, depth)
        case ast.GeneratorExp(elt=value) | ast.ListComp(elt=value) | ast.Starred(value=value):
            return is_capability(file, value, depth)
        case ast.Attribute(value=value, attr="major" | "minor"):
            return _is_properties(file, value)
        case ast.Tuple(elts=[first, *_]):
            return is_capability(file, first, depth)
        case ast.JoinedStr(values=parts):
            return any(is_capability(file, one, depth) for one in parts)
        case ast.Name(id=name):
            found = file.scope(node).lookup(name)
            return found is not None and _known(
                file, found[1], lambda: any(_binds(file, one.node, one.value, depth) for one in found[1])
            )
        case _:
            return False


_kept: WeakKeyDictionary[PythonFile, dict[int, tuple[object, bool]]] = WeakKeyDictionary()


def _known(file: PythonFile, of: object, find: Callable[[], bool]) -> bool:
    """Return what was found of a function or of a name's bindings, each looked at once and not within itself."""
    known = _kept.setdefault(file, {})
    if id(of) not in known:
        known[id(of)] = of, False
        known[id(of)] = of, find()
    return known[id(of)][1]


def _calls(file: PythonFile, node: ast.Call, depth: int) -> bool:
    if file.qualified(node.func) == CAPABILITY:
        return True
    name = _called(node)
    if name in _MAKES:
        return any(is_capability(file, one, depth + 1) for one in node.args)
    found = file.scope(node).lookup(name) if isinstance(node.func, ast.Name) else None
    functions = [one.node for one in found[1] if isinstance(one.node, ast.FunctionDef)] if found else []
    return any(_known(file, one, partial(_returns, file, one, depth + 1)) for one in functions)


def _called(node: ast.AST | None) -> str:
    """Return the last part of what a call calls; nothing for others."""
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
        case _:
            return ""


def _returns(file: PythonFile, function: ast.FunctionDef, depth: int) -> bool:
    returned = [one.value for one in ast.walk(function) if isinstance(one, ast.Return) and one.value is not None]
    return any(is_capability(file, one, depth) for one in returned)


def _binds(file: PythonFile, node: ast.AST, value: ast.expr | None, depth: int) -> bool:
    if value is None and isinstance(node, ast.Name):
        statement = file.statement(node)
        value = statement.value if isinstance(statement, ast.Assign) else None
        return isinstance(value, ast.Call) and file.qualified(value.func) == CAPABILITY
    return value is not None and is_capability(file, value, depth + 1)


def _is_properties(file: PythonFile, node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        found = file.scope(node).lookup(node.id)
        return found is not None and any(one.value is not None and _is_call(file, one.value) for one in found[1])
    return _is_call(file, node)


def _is_call(file: PythonFile, node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and file.qualified(node.func) == _PROPERTIES


def given_away(file: PythonFile) -> Iterator[ast.expr]:
    """Yield what gives a capability to a table, a function or an object, which may choose by it; of a name once."""
    told: set[object] = set()
    sources: list[ast.expr] = [one for one in file.of(ast.Call) if file.qualified(one.func) == CAPABILITY]
    sources += [one for one in file.of(ast.Attribute) if isinstance(one.ctx, ast.Load) and is_capability(file, one)]
    sources += [one for one in file.of(ast.JoinedStr) if is_capability(file, one)]
    sources += [one for one in file.of(ast.Name) if isinstance(one.ctx, ast.Load) and is_capability(file, one)]
    for source in file.on_rocm(sources):
        found = _given(file, source)
        where: object = (file.scope(source), source.id) if isinstance(source, ast.Name) else found
        if found is not None and told.isdisjoint((found, where)):
            told |= {found, where}
            yield found


def _given(  # noqa: PLR0911  one a way
    file: PythonFile, source: ast.expr
) -> ast.expr | None:
    """Return the expression that a capability leaves the file by; None where it is compared, printed or kept here."""
    node: ast.expr = source
    while True:
        parent = file.parent(node)
        match parent:
            case ast.Subscript(slice=place) if place is node and isinstance(parent.ctx, ast.Load):
                return parent
            case ast.Call(args=args) if node in args and _called(parent) not in _MAKES:
                return None if _SAYS.fullmatch(_called(parent)) else parent
            case ast.keyword(arg="reason" | "msg" | "message" | "help"):
                return None
            case ast.keyword():
                return None if _SAYS.fullmatch(_called(file.parent(parent))) else node
            case ast.Return() | ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
                return node
            case ast.Assign():
                parts = node.values if isinstance(node, ast.JoinedStr) else []
                text = "".join(str(one.value) for one in parts if isinstance(one, ast.Constant))
                return node if _ARCHITECTURE.search(text) else None
            case ast.Call(args=args) if node in args:
                node = parent
            case ast.BinOp() | ast.JoinedStr() | ast.FormattedValue() | ast.Tuple() | ast.List() | ast.Starred():
                node = parent
            case ast.Subscript() | ast.NamedExpr() | ast.GeneratorExp() | ast.ListComp() | ast.IfExp():
                node = parent
            case ast.Attribute(attr="major" | "minor" | "join" | "format"):
                node = parent
            case _:
                return None
