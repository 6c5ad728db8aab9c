"""What expressions of a ``setup.py`` come to and whether a plain build executes them, as far as that is known."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import product

from rocmend.port.definitions.python_feeds import Feeds, base
from rocmend.port.python.file import PythonFile

__all__ = ["UNKNOWN", "executed", "texts", "unresolved"]

UNKNOWN = "\0"
"""A part of a text that is not known."""
_ASKS = re.compile(r"environ|getenv|argv|debug|profil|verbose|win32|windows|darwin|\bnt\b", re.IGNORECASE)
"""What a test asks that decides about options which a plain build does not have."""
_MOST = 256
"""Values of one expression in all rounds of the loops around it."""
_RESOLVED = re.compile(r"\bCOMMON_(?:NVCC|HIP)_FLAGS\b|\benviron\b|\bgetenv\b")
"""In expressions for options that hold none of a project's macros, or nothing where no variable is set."""
_SAME = {"list", "tuple", "sorted", "set", "copy", "reversed", "deepcopy", "split"}
"""Calls that give back what they are given."""


# -- texts -------------------------------------------------------------------------------------------------------------


def texts(file: PythonFile, feeds: Feeds, node: ast.AST) -> list[str]:
    """Return the texts that an expression comes to in the rounds of the loops around it; none where it is no text."""
    found = (_text(node, feeds, bound, 0) for bound in _rounds(file, feeds, node))
    return list(dict.fromkeys(text for text in found if text is not None))


def _text(  # noqa: PLR0911  a case for each form of an expression
    node: ast.AST, feeds: Feeds, bound: Mapping[str, str | None], depth: int
) -> str | None:
    def part(one: ast.AST) -> str:
        text = _text(one, feeds, bound, depth + 1)
        return UNKNOWN if text is None else text

    if depth > _DEEPEST * 4:
        return None
    match node:
        case ast.Constant(value=str() | int() | float() as value):
            return str(value)
        case ast.JoinedStr(values=values):
            return "".join(map(part, values))
        case ast.FormattedValue(value=value, format_spec=spec):
            return part(value) if spec is None else UNKNOWN
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            sides = [_text(one, feeds, bound, depth + 1) for one in (left, right)]
            lists = any(isinstance(one, ast.List | ast.Tuple | ast.ListComp) for one in (left, right))
            return None if lists or sides == [None, None] else "".join(UNKNOWN if one is None else one for one in sides)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod(), right=right):
            values = right.elts if isinstance(right, ast.Tuple) else [right]
            return _filled(re.split(r"%[sdir]", text), [part(one) for one in values])
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format"), args=values):
            return _filled(re.split(r"\{\}", text), [part(one) for one in values])
        case ast.Call(func=ast.Name(id="str" | "int"), args=[value]):
            return part(value)
        case ast.Name(id=name) if name in bound:
            return bound[name]
        case ast.Name(id=name) if len(feeds.get(name, ())) == 1:
            return _text(feeds[name][0], feeds, {}, depth + 1)
        case _:
            return None


def _filled(parts: list[str], values: list[str]) -> str:
    if len(parts) != len(values) + 1:
        return UNKNOWN.join(parts)
    return "".join(one for pair in zip(parts, [*values, ""], strict=True) for one in pair)


def _rounds(file: PythonFile, feeds: Feeds, node: ast.AST) -> list[dict[str, str | None]]:
    """Return the values of loops' variables in each round of the loops around a node, as far as these go over lists."""
    loops: list[list[dict[str, str | None]]] = []
    count = 1
    at = node
    while (above := file.parent(at)) is not None:
        pairs: list[tuple[ast.expr, ast.expr]] = []
        if isinstance(above, ast.For) and at is not above.iter:
            pairs = [(above.target, above.iter)]
        elif isinstance(above, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            pairs = [(one.target, one.iter) for one in above.generators if one is not at]
        for target, over in pairs:
            rounds = [_bound(target, one, feeds) for one in _elements(over, feeds)]
            if rounds and count * len(rounds) <= _MOST:
                count *= len(rounds)
                loops.append(rounds)
        at = above
    return [{name: value for one in reversed(chosen) for name, value in one.items()} for chosen in product(*loops)]


def _bound(target: ast.expr, value: ast.expr, feeds: Feeds) -> dict[str, str | None]:
    if isinstance(target, ast.Name):
        return {target.id: _text(value, feeds, {}, 0)}
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return {one.id: _text(other, feeds, {}, 0) for one, other in pairs if isinstance(one, ast.Name)}
    return {}


def _elements(over: ast.expr, feeds: Feeds) -> list[ast.expr]:
    """Return what a loop goes over; nothing where that is not known."""
    if isinstance(over, ast.Name) and len(feeds.get(over.id, ())) == 1:
        fed = feeds[over.id][0]
        over = fed if isinstance(fed, ast.expr) else over
    if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items":
        given = over.func.value
        fed = feeds[given.id][0] if isinstance(given, ast.Name) and len(feeds.get(given.id, ())) == 1 else given
        if isinstance(fed, ast.Dict):
            pairs = zip(fed.keys, fed.values, strict=True)
            return [ast.Tuple([key, value], ast.Load()) for key, value in pairs if key is not None]
    known = isinstance(over, ast.List | ast.Tuple | ast.Set) and not any(
        isinstance(one, ast.Starred) for one in over.elts
    )
    return list(over.elts) if known and isinstance(over, ast.List | ast.Tuple | ast.Set) else []


def unresolved(
    file: PythonFile, feeds: Feeds, node: ast.AST, but: str = "", *, pairs: bool = False
) -> Iterator[ast.AST]:
    """Yield the parts of a list of options of which nothing is known.

    Args:
        file: The script.
        feeds: What goes into its names.
        node: The list.
        but: The key of a dict whose value is left out.
        pairs: It is a list of pairs, which are left out.
    """
    waiting, seen = [node], set[int]()
    while waiting:
        one = waiting.pop()
        is_pair = pairs and isinstance(one, ast.Tuple) and len(one.elts) == 2
        if is_pair or id(one) in seen or executed(file, feeds, one)[0] is False:
            continue
        seen.add(id(one))
        within = _within(file, feeds, one, but)
        if within is None:
            if not _RESOLVED.search(file.source(one)):
                yield one
        else:
            waiting += within


def _within(  # noqa: C901, PLR0911, PLR0912  a case for each form of an expression
    file: PythonFile, feeds: Feeds, node: ast.AST, but: str
) -> list[ast.AST] | None:
    """Return the parts that a list of options is made of; None where that is not known."""
    match node:
        case ast.Constant() | ast.JoinedStr():
            return []
        case ast.List(elts=elts) | ast.Tuple(elts=elts) | ast.Set(elts=elts):
            return list(elts)
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return [value for key, value in pairs if not (isinstance(key, ast.Constant) and key.value == but)]
        case ast.Starred(value=value) | ast.keyword(value=value):
            return [value]
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case ast.BoolOp(values=values):
            return list(values)
        case ast.ListComp(elt=elt) | ast.SetComp(elt=elt) | ast.GeneratorExp(elt=elt):
            return [elt]
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="format" | "split")):
            return []
        case ast.Call(func=func) if base(func) in _SAME or base(func) in feeds:
            own = [func.value] if isinstance(func, ast.Attribute) and base(func) in _SAME else []
            own = [one for one in own if not (isinstance(one, ast.Name) and one.id in {"shlex", "copy", "re"})]
            return [*feeds.get(base(func), ()), *node.args, *own]
        case ast.BinOp() if texts(file, feeds, node):
            return []
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [left, right]
        case ast.Name() | ast.Subscript() | ast.Attribute() if base(node) in feeds:
            return [one for one in feeds[base(node)] if not but or feeds.keyed.get(id(one)) != but]
        case ast.Name() if texts(file, feeds, node):
            return []
        case _:
            return None


# -- conditions --------------------------------------------------------------------------------------------------------


def executed(file: PythonFile, feeds: Feeds, node: ast.AST) -> tuple[bool | None, ast.AST]:
    """Return whether a node is executed in a plain build for a GPU, and what decides that; None: that is not known."""
    decides: ast.AST = node
    sure: bool | None = True
    at: ast.AST | None = node
    while at is not None:
        above = file.parent(at)
        if isinstance(above, ast.If | ast.IfExp) and at is not above.test:
            holds = _plain(above.test, feeds, 0)
            of_body = at in above.body if isinstance(above.body, list) else at is above.body
            if holds is not None and bool(holds) is not of_body:
                return False, above.test
            source = file.source(above.test)
            if holds is None and not _OF_GPUS.search(source):
                if _ASKS.search(source):
                    return False, above.test
                sure, decides = None, above.test
        elif isinstance(above, ast.Try | ast.ExceptHandler) and _may_fail(above, at):
            sure, decides = None, above
        at = above
    return sure, decides


def _may_fail(above: ast.Try | ast.ExceptHandler, at: ast.AST) -> bool:
    """Tell whether it depends on an error whether a part of a ``try`` is executed."""
    if isinstance(above, ast.ExceptHandler):
        return True
    imports = any(isinstance(one, ast.Import | ast.ImportFrom) for one in above.body)
    return bool(above.handlers) and imports and (at in above.body or at in above.orelse)


_OF_GPUS = re.compile(
    r"is_available|(?:CUDA|ROCM|HIP)_HOME|FORCE_\w+|(?:USE|WITH)_(?:CUDA|ROCM|HIP|GPU)", re.IGNORECASE
)
"""What a test asks that holds where a build for a GPU is made."""
_DEEPEST = 8
_UNSET = ""


def _plain(  # noqa: C901, PLR0911, PLR0912  a case for each form of an expression
    node: ast.expr, feeds: Feeds, depth: int
) -> bool | str | None:
    """Return what an expression comes to where no variable of the environment is set; None where that is not known."""
    if depth > _DEEPEST:
        return None
    value: bool | str | None
    match node:
        case ast.Constant(value=bool() | str() as constant):
            return constant
        case ast.Constant(value=int() as number):
            return str(number)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            value = _plain(operand, feeds, depth + 1)
            return None if value is None else not value
        case ast.BoolOp(op=op, values=values):
            found = [_plain(one, feeds, depth + 1) for one in values]
            decides = isinstance(op, ast.Or)
            if any(one is not None and bool(one) is decides for one in found):
                return decides
            return None if None in found else not decides
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]):
            one, other = _plain(left, feeds, depth + 1), _plain(right, feeds, depth + 1)
            return None if one is None or other is None else (one == other) is isinstance(op, ast.Eq)
        case ast.Call(func=func, args=[ast.Constant(value=str(name)), *rest]) if base(func) in {"getenv", "get"} and (
            base(func) == "getenv" or (isinstance(func, ast.Attribute) and base(func.value) == "environ")
        ):
            if _OF_GPUS.search(name):
                return None
            return _plain(rest[0], feeds, depth + 1) if rest else _UNSET
        case ast.Call(func=ast.Name(id="int" | "bool" | "str") | ast.Attribute(attr="upper" | "lower")):
            inner = node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else None
            value = _plain(inner, feeds, depth + 1) if isinstance(inner, ast.expr) else None
            match node.func:
                case ast.Attribute(attr="upper" | "lower" as how) if isinstance(value, str):
                    return value.upper() if how == "upper" else value.lower()
                case ast.Name(id="int") if value in {"0", "1"}:
                    return value == "1"
                case ast.Name(id="bool") if value is not None:
                    return bool(value)
                case _:
                    return value if not isinstance(value, str) else None
        case ast.Name(id="__name__"):
            return "__main__"
        case ast.Name(id=name) if len(feeds.get(name, ())) == 1 and isinstance(fed := feeds[name][0], ast.expr):
            return _plain(fed, feeds, depth + 1)
        case _:
            return None
