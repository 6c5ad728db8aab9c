"""What the extensions of a ``setup.py`` define for the compiler on ROCm: options and ``define_macros``."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.port.definitions.macros import MACRO, Definitions, listed
from rocmend.port.nesting import NestingError
from rocmend.port.python.file import PythonFile

__all__ = ["of_unit"]

_OPTION = re.compile(rf"-([DU])[ ]?({MACRO})(?:=([\w.+-]*))?")
_ASKS = re.compile(r"environ|getenv|argv|debug|profil|verbose|win32|windows|darwin|\bnt\b", re.IGNORECASE)
"""What a test asks that decides about options which a plain build does not have."""
_FEEDS = {"append", "extend", "insert", "update", "setdefault"}
_OTHER = {True: "cxx", False: "nvcc"}
"""The key of the options that a unit is not compiled with, by whether it is one of CUDA."""
_MAX_BYTES = 4 << 20
_MOST = 64
"""Extensions that are told apart; of more, all are taken together."""


class _Extension(NamedTuple):
    """One call that makes an extension; what stands in it, however far away, by the nodes' identities."""

    name: str
    sources: tuple[str, ...]
    reached: dict[bool, frozenset[int]]
    macros: frozenset[int]
    undefined: frozenset[str]


def of_unit(tree: Beneath, unit: str) -> tuple[list[Definitions], Definitions]:
    """Return what each extension defines that lists a unit, and what the nearest ``setup.py`` defines anywhere.

    Args:
        tree: The project's folder.
        unit: The unit's path.
    """
    for folder in PurePosixPath(unit).parents:
        path = (folder / "setup.py").as_posix()
        if not tree.is_file(path):
            continue
        with contextlib.suppress(OSError, DataError, NestingError):
            setup = _read(path, tree.document(path, _MAX_BYTES))
            return setup.of(PurePosixPath(unit).relative_to(folder).as_posix())
        break
    return [], Definitions({})


class _Setup:
    """A ``setup.py``: its extensions, and its definitions by where they stand."""

    def __init__(self, path: str, data: bytes) -> None:
        self.file = PythonFile(path, data)
        self.path = path
        self.feeds = _feeds(self.file)
        calls = [call for call in self.file.on_rocm(self.file.of(ast.Call)) if self._is(call)]
        self.extensions = [self._extension(call) for call in calls] if len(calls) <= _MOST else []
        self.options = [
            (id(text), option)
            for text in self.file.on_rocm(self.file.of(ast.Constant))
            for option in _options(self.file, text)
            if _always(self.file, self.feeds, text)
        ]
        self.pairs = list(self._pairs())

    def of(self, unit: str) -> tuple[list[Definitions], Definitions]:
        """Return what each extension defines that lists a unit, and what all of them and the rest do."""
        cuda = not unit.lower().endswith((".cc", ".cpp", ".cxx"))
        of_one: set[int] = set()
        for one in self.extensions:
            of_one.update(*one.reached.values(), one.macros)
        ways = []
        for one in self.extensions:
            if listed(unit, one.sources):
                others = of_one - one.reached[cuda] - one.macros
                found = self._definitions(others)
                build = f"{self.path}, extension {one.name or 'without a name'}"
                ways.append(Definitions(found.defined, found.undefined | one.undefined, build))
        return ways, self._definitions(frozenset())

    def _definitions(self, others: set[int] | frozenset[int]) -> Definitions:
        """Return what is defined, without what stands in some nodes."""
        options = [option for node, option in self.options if node not in others]
        defined = {name: value for kind, name, value in options if kind == "D"}
        defined |= {name: value for node, name, value in self.pairs if node not in others}
        return Definitions(defined, frozenset(name for kind, name, _ in options if kind == "U"))

    def _pairs(self) -> Iterator[tuple[int, str, str]]:
        """Yield ``("NAME", None)`` and ``("NAME", "1")`` of extensions, and of lists that are called macros."""
        own = {node for one in self.extensions for node in one.macros}
        for pair in self.file.on_rocm(self.file.of(ast.Tuple)):
            match pair.elts:
                case [ast.Constant(value=str(name)), ast.Constant(value=str() | None as value)] if re.fullmatch(
                    MACRO, name
                ):
                    statement = self.file.source(self.file.statement(pair)).split("\n", 1)[0]
                    if (id(pair) in own or "macro" in statement) and _always(self.file, self.feeds, pair):
                        yield id(pair), name, value or ""
                case _:
                    pass

    def _is(self, call: ast.Call) -> bool:
        """Tell whether a call makes an extension, also by a name that one of torch's classes was given."""
        names = [
            _base(call.func),
            *(_base(one) for fed in self.feeds.get(_base(call.func), ()) for one in ast.walk(fed)),
        ]
        return any(name.endswith("Extension") for name in names)

    def _extension(self, call: ast.Call) -> _Extension:
        given = {one.arg: one.value for one in call.keywords if one.arg}
        sources = given.pop("sources", None) or (call.args[1] if len(call.args) > 1 else None)
        name = given.pop("name", None) or (call.args[0] if call.args else None)
        undefined = self._reached([given.pop("undef_macros")]) if "undef_macros" in given else []
        macros = self._reached([given["define_macros"]]) if "define_macros" in given else []
        return _Extension(
            repr(name.value) if isinstance(name, ast.Constant) else "",
            tuple(self._paths(sources)) if sources is not None else (),
            {cuda: frozenset(id(one) for one in self._reached(given.values(), _OTHER[cuda])) for cuda in _OTHER},
            frozenset(id(one) for one in macros),
            frozenset(one.value for one in undefined if isinstance(one, ast.Constant) and isinstance(one.value, str)),
        )

    def _reached(self, nodes: Iterable[ast.AST], but: str = "") -> list[ast.AST]:
        """Return the nodes within some, and within what gives the names in them their values.

        Args:
            nodes: The nodes.
            but: The key of a dict whose value is left out.
        """
        found: dict[int, ast.AST] = {}
        waiting = list(nodes)
        names: set[str] = set()
        while waiting:
            node = waiting.pop()
            if id(node) in found:
                continue
            found[id(node)] = node
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                waiting += [value for key, value in pairs if not (isinstance(key, ast.Constant) and key.value == but)]
                continue
            waiting += ast.iter_child_nodes(node)
            name = _base(node) if isinstance(node, ast.Name | ast.Attribute) else ""
            if name and name not in names:
                names.add(name)
                waiting += [one for one in self.feeds.get(name, ()) if not but or self.feeds.keyed.get(id(one)) != but]
        return list(found.values())

    def _paths(self, sources: ast.AST) -> Iterator[str]:
        """Yield the paths that an expression names, joined where the script joins them."""
        within: set[int] = set()
        for node in self._reached([sources]):
            joined = _joined(node)
            if joined is not None and not isinstance(node, ast.Constant):
                within.update(id(one) for one in ast.walk(node))
                yield joined
        for node in self._reached([sources]):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in within:
                yield node.value


def _base(node: ast.AST) -> str:
    """Return the name of what an expression is a part of; empty where it has none."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


class _Feeds(dict[str, list[ast.AST]]):
    """The expressions that go into each name of a script, wherever it is.

    Attributes:
        keyed: The key that an expression goes to within a dict, by the expression's identity.
    """

    def __init__(self) -> None:
        self.keyed: dict[int, str] = {}

    def note(self, target: ast.AST, value: ast.AST) -> None:
        """Note that a value goes into a target."""
        name = _base(target)
        if name:
            self.setdefault(name, []).append(value)
            if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
                self.keyed[id(value)] = str(target.slice.value)


def _feeds(file: PythonFile) -> _Feeds:
    found = _Feeds()
    for assigned in file.of(ast.Assign):
        for target in assigned.targets:
            found.note(target, assigned.value)
    for annotated in file.of(ast.AnnAssign):
        if annotated.value is not None:
            found.note(annotated.target, annotated.value)
    for changed in file.of(ast.AugAssign):
        found.note(changed.target, changed.value)
    for call in file.of(ast.Call):
        if isinstance(call.func, ast.Attribute) and call.func.attr in _FEEDS:
            for argument in (*call.args, *(one.value for one in call.keywords)):
                found.note(call.func.value, argument)
    for returned in file.of(ast.Return):
        at: ast.AST | None = returned
        while at is not None and not isinstance(at, ast.FunctionDef):
            at = file.parent(at)
        if at is not None and returned.value is not None:
            found.setdefault(at.name, []).append(returned.value)
    return found


def _options(file: PythonFile, text: ast.Constant) -> Iterator[tuple[str, str, str]]:
    """Yield the options ``D`` and ``U`` of a text, with names and values; those of several where it is split."""
    if not isinstance(text.value, str) or not text.value.lstrip().startswith("-"):
        return
    words = [text.value]
    above = file.parent(text)
    by_method = isinstance(above, ast.Attribute) and above.attr == "split"
    by_shlex = isinstance(above, ast.Call) and _base(above.func) == "split"
    if by_method or by_shlex:
        words = re.sub(r"(?<!\S)-([DU])\s+", r"-\1", text.value).split()
    for word in words:
        if option := _OPTION.fullmatch(word):
            kind, name, value = option.groups()
            if not name.startswith("CMAKE_"):
                yield kind, name, "1" if value is None else value


def _joined(node: ast.AST) -> str | None:
    """Return a path that an expression makes of parts, without those that are not known; None where it makes none."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(args=[_, *_] as parts) if _base(node.func) in {"join", "Path"} and not any(
            isinstance(one, ast.Starred) for one in parts
        ):
            return "/".join(filter(None, (_joined(part) for part in parts))) or None
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return "/".join(filter(None, (_joined(left), _joined(right)))) or None
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=str(text))):
            return f"{_joined(left) or ''}{text}"
        case ast.JoinedStr(values=parts):
            return re.sub(r"\A\*/|\A\*\Z", "", "".join(_joined(part) or "*" for part in parts)) or None
        case _:
            return None


def _always(file: PythonFile, feeds: _Feeds, node: ast.AST) -> bool:
    """Tell whether no test around a node asks for what a plain build for a GPU does not have."""
    at: ast.AST | None = node
    while at is not None:
        above = file.parent(at)
        if isinstance(above, ast.If | ast.IfExp) and at is not above.test:
            holds = _plain(above.test, feeds, 0)
            of_body = at in above.body if isinstance(above.body, list) else at is above.body
            if holds is not None and bool(holds) is not of_body:
                return False
            source = file.source(above.test)
            if holds is None and _ASKS.search(source) and not _OF_GPUS.search(source):
                return False
        at = above
    return True


_OF_GPUS = re.compile(
    r"is_available|(?:CUDA|ROCM|HIP)_HOME|FORCE_\w+|(?:USE|WITH)_(?:CUDA|ROCM|HIP|GPU)", re.IGNORECASE
)
"""What a test asks that holds where a build for a GPU is made."""
_DEEPEST = 8
_UNSET = ""


def _plain(  # noqa: C901, PLR0911, PLR0912  a case for each form of an expression
    node: ast.expr, feeds: _Feeds, depth: int
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
        case ast.Call(func=func, args=[ast.Constant(value=str(name)), *rest]) if _base(func) in {"getenv", "get"} and (
            _base(func) == "getenv" or (isinstance(func, ast.Attribute) and _base(func.value) == "environ")
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
        case ast.Name(id=name) if len(feeds.get(name, ())) == 1 and isinstance(fed := feeds[name][0], ast.expr):
            return _plain(fed, feeds, depth + 1)
        case _:
            return None


@lru_cache(maxsize=8)
def _read(path: str, data: bytes) -> _Setup:
    return _Setup(path, data)
