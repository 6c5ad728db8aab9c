"""What the extensions of a ``setup.py`` define for the compiler on ROCm: options and ``define_macros``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.port.definitions.macros import Definitions, Unknown, listed, of_options
from rocmend.port.definitions.python_feeds import base, feeds_of
from rocmend.port.definitions.python_values import UNKNOWN, executed, texts, unresolved
from rocmend.port.nesting import NestingError
from rocmend.port.python.file import PythonFile

__all__ = ["of_unit", "torch_sources"]

_OTHER = {True: "cxx", False: "nvcc"}
"""The key of the options that a unit is not compiled with, by whether it is one of CUDA."""
_MAX_BYTES = 4 << 20
_SOURCE = re.compile(r"\.(?:cuh?|c(?:c|pp|xx)?|h(?:pp)?)\Z")
_LONGEST = 512
_SHOWN = 60
_MOST = 64
"""Extensions that are told apart; of more, all are taken together."""


class _Extension(NamedTuple):
    """One call that makes an extension; what stands in it, however far away, by the nodes' identities."""

    name: str
    sources: tuple[str, ...]
    reached: dict[bool, frozenset[int]]
    macros: frozenset[int]
    undefined: frozenset[str]
    unknown: dict[bool, tuple[Unknown, ...]]


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
        try:
            setup = _read(path, tree.document(path, _MAX_BYTES))
        except (OSError, DataError, NestingError):
            return [], Definitions({}, unknown=(Unknown("", f"{path} could not be read"),))
        return setup.of(PurePosixPath(unit).relative_to(folder).as_posix())
    return [], Definitions({})


def torch_sources(path: str, data: bytes) -> tuple[str, ...]:
    """Return the sources that a script has PyTorch compile for GPUs, as it names them; parts may be ``*``.

    Args:
        path: The script.
        data: Its bytes.
    """
    try:
        return tuple(dict.fromkeys(_read(path, data).torch_sources()))
    except (DataError, NestingError):
        return ()


class _Setup:
    """A ``setup.py``: its extensions, and its definitions by where they stand."""

    def __init__(self, path: str, data: bytes) -> None:
        self.file = PythonFile(path, data)
        self.path = path
        self.feeds = feeds_of(self.file)
        calls = [call for call in self.file.on_rocm(self.file.of(ast.Call)) if self._is(call)]
        self.extensions = [self._extension(call) for call in calls] if len(calls) <= _MOST else []
        self.made = [*self._options(), *self._pairs()]

    def torch_sources(self) -> Iterator[str]:
        """Yield the names of the sources that PyTorch compiles for GPUs."""
        for call in self.file.of(ast.Call):
            given = {one.arg: one.value for one in call.keywords if one.arg}
            name = base(call.func)
            inline = name == "load_inline"
            if not inline and not self._is(call, "CUDAExtension") and not (name == "load" and self._of_torch(call)):
                continue
            nodes = [*call.args, *given.values()] if inline else [given.get("sources"), *call.args[1:2]]
            for node in nodes:
                paths = self._paths(node) if node is not None else ()
                yield from (one for one in paths if _SOURCE.search(one) and len(one) < _LONGEST)

    def _of_torch(self, call: ast.Call) -> bool:
        return (self.file.qualified(call.func) or "").endswith("cpp_extension.load")

    def of(self, unit: str) -> tuple[list[Definitions], Definitions]:
        """Return what each extension defines that lists a unit, and what all of them and the rest do."""
        cuda = not unit.lower().endswith((".cc", ".cpp", ".cxx"))
        of_one: set[int] = set()
        for one in self.extensions:
            of_one.update(*one.reached.values(), one.macros)
        ways = []
        for one in self.extensions:
            if listed(unit, one.sources):
                own = one.reached[cuda] | one.macros
                found = self._definitions(own, of_one)
                build = f"{self.path}, extension {one.name or 'without a name'}"
                ways.append(
                    Definitions(
                        found.defined, found.undefined | one.undefined, build, (*found.unknown, *one.unknown[cuda])
                    )
                )
        rest = Definitions({})
        for _, made in self.made:
            rest |= made
        for one in self.extensions:
            rest |= Definitions({}, unknown=one.unknown[cuda])
        return ways, rest

    def _definitions(self, own: frozenset[int], of_others: set[int]) -> Definitions:
        """Return what is defined within some nodes; what is so for no extension may be for this one."""
        found = Definitions({})
        for node, made in self.made:
            if id(node) in own:
                found |= made
            elif id(node) not in of_others:
                found |= made.doubted(self._place(node))
        return found

    def _place(self, node: ast.AST) -> str:
        shown = self.file.source(node).split("\n", 1)[0][:_SHOWN]
        return f"{self.path}, line {getattr(node, 'lineno', 0)}: {shown}"

    def _as_executed(self, node: ast.AST, made: Definitions) -> Iterator[tuple[ast.AST, Definitions]]:
        """Yield definitions with their node, unless a plain build does not come there."""
        holds, test = executed(self.file, self.feeds, node)
        if holds is not False and made != Definitions({}):
            yield node, made if holds else made.doubted(self._place(test))

    def _options(self) -> Iterator[tuple[ast.AST, Definitions]]:
        """Yield what options define, and the largest expression that each is the text of."""
        seen: set[int] = set()
        parts: list[ast.Constant | ast.JoinedStr] = [*self.file.of(ast.Constant), *self.file.of(ast.JoinedStr)]
        for part in self.file.on_rocm(parts):
            within = part.values if isinstance(part, ast.JoinedStr) else [part]
            values = [one.value for one in within if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            if not any(sign in value for value in values for sign in ("-D", "-U")):
                continue
            node = self._whole(part)
            if id(node) in seen:
                continue
            seen.add(id(node))
            found = texts(self.file, self.feeds, node)
            options = (word for text in found for word in self._words(node, text) if not word.startswith("-DCMAKE_"))
            yield from self._as_executed(node, of_options(options, self._place(node)))

    def _whole(self, node: ast.AST) -> ast.AST:
        """Return the largest text that a text is a part of."""
        while True:
            above = self.file.parent(node)
            if isinstance(above, ast.Attribute) and above.attr == "format":
                above = self.file.parent(above)
            elif not isinstance(above, ast.BinOp):
                return node
            if above is None or not texts(self.file, self.feeds, above):
                return node
            node = above

    def _words(self, node: ast.AST, text: str) -> list[str]:
        """Return the options of a text: those of several where the script splits it."""
        above = self.file.parent(node)
        by_method = isinstance(above, ast.Attribute) and above.attr == "split"
        by_shlex = isinstance(above, ast.Call) and base(above.func) == "split"
        if not text.lstrip().startswith("-"):
            return []
        return re.sub(r"(?<!\S)-([DU])\s+", r"-\1", text).split() if by_method or by_shlex else [text]

    def _pairs(self) -> Iterator[tuple[ast.AST, Definitions]]:
        """Yield ``("NAME", None)`` and ``("NAME", "1")`` of extensions, and of lists that are called macros."""
        own = {node for one in self.extensions for node in one.macros}
        for pair in self.file.on_rocm(self.file.of(ast.Tuple)):
            if len(pair.elts) != 2:
                continue
            statement = self.file.source(self.file.statement(pair)).split("\n", 1)[0]
            if id(pair) not in own and "macro" not in statement:
                continue
            name, value = pair.elts
            empty = isinstance(value, ast.Constant) and value.value is None
            names = texts(self.file, self.feeds, name)
            values = [""] if empty else texts(self.file, self.feeds, value) or [UNKNOWN]
            if not names and id(pair) not in own:
                continue
            value_text = values[0] if len(values) == 1 else UNKNOWN
            options = [f"-D{one}={value_text}" for one in names or [UNKNOWN]]
            yield from self._as_executed(pair, of_options(options, self._place(pair)))

    def _is(self, call: ast.Call, name: str = "Extension") -> bool:
        """Tell whether a call makes an extension, also by a name that one of torch's classes was given."""
        names = [
            base(call.func),
            *(base(one) for fed in self.feeds.get(base(call.func), ()) for one in ast.walk(fed)),
        ]
        return any(one.endswith(name) for one in names)

    def _extension(self, call: ast.Call) -> _Extension:
        given = {one.arg: one.value for one in call.keywords if one.arg}
        others = [one.value for one in call.keywords if not one.arg]
        for other in others:
            fed = self.feeds.get(base(other), [])
            if len(fed) == 1 and isinstance(fed[0], ast.Dict):
                pairs = zip(fed[0].keys, fed[0].values, strict=True)
                given |= {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
                others = [one for one in others if one is not other]
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
            {cuda: tuple(self._untold(given, others, _OTHER[cuda])) for cuda in _OTHER},
        )

    def _untold(self, given: Mapping[str, ast.expr], others: Iterable[ast.expr], but: str) -> Iterator[Unknown]:
        """Yield what an extension may define beyond what is read of it."""
        for name in ("extra_compile_args", "define_macros"):
            if name in given:
                pairs = name == "define_macros"
                for node in unresolved(self.file, self.feeds, given[name], but, pairs=pairs):
                    yield Unknown("", self._place(node))
        for node in others:
            yield Unknown("", self._place(node))

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
            name = base(node) if isinstance(node, ast.Name | ast.Attribute) else ""
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


def _joined(node: ast.AST) -> str | None:
    """Return a path that an expression makes of parts, without those that are not known; None where it makes none."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Call(args=[_, *_] as parts) if base(node.func) in {"join", "Path"} and not any(
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


@lru_cache(maxsize=8)
def _read(path: str, data: bytes) -> _Setup:
    return _Setup(path, data)
