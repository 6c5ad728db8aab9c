"""Environment variables that a Python file sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["Setting", "settings"]

_PROCESS = {"os.environ"}
_SETTERS = {"os.environ.setdefault", "os.environ.__setitem__", "os.putenv"}


class Setting(NamedTuple):
    """A variable that is set.

    Attributes:
        name: The variable.
        value: The expression that it is set to.
        node: The construct as a whole.
        of_process: Whether it is this process's environment; otherwise a dict with such a key.
    """

    name: str
    value: ast.expr
    node: ast.expr | ast.stmt
    of_process: bool


def settings(file: PythonFile, *names: str) -> Iterator[Setting]:
    """Yield where variables are set: in ``os.environ`` in any way, in dicts, by assignment to a key."""
    nodes: list[ast.Assign | ast.AnnAssign] = [*file.of(ast.Assign), *file.of(ast.AnnAssign)]
    for node in nodes:
        for target in [node.target] if isinstance(node, ast.AnnAssign) else node.targets:
            name = _text(file, target.slice) if isinstance(target, ast.Subscript) else ""
            if isinstance(target, ast.Subscript) and name in names and node.value is not None:
                yield Setting(name, node.value, node, file.qualified(target.value) in _PROCESS)
    for call in file.of(ast.Call):
        yield from _by_call(file, call, names)
    for entries in file.of(ast.Dict):
        if isinstance(file.parent(entries), ast.Compare):
            continue
        for key, value in zip(entries.keys, entries.values, strict=True):
            if key is not None and (name := _text(file, key)) in names:
                yield Setting(name, value, value, _for_process(file, entries))


def _by_call(file: PythonFile, call: ast.Call, names: tuple[str, ...]) -> Iterator[Setting]:
    function = file.qualified(call.func)
    last = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if function in _SETTERS or last == "setenv":  # pytest's monkeypatch.setenv
        if len(call.args) >= 2 and (name := _text(file, call.args[0])) in names:
            yield Setting(name, call.args[1], call, of_process=True)
    elif function in {"os.environ.update", "builtins.dict"}:
        for keyword in call.keywords:
            if keyword.arg in names and keyword.arg:
                yield Setting(keyword.arg, keyword.value, keyword.value, function == "os.environ.update")


def _for_process(file: PythonFile, entries: ast.Dict) -> bool:
    """Whether a dict is put into this process's environment as it stands."""
    parent = file.parent(entries)
    if isinstance(parent, ast.AugAssign):
        return file.qualified(parent.target) in _PROCESS
    return isinstance(parent, ast.Call) and file.qualified(parent.func) == "os.environ.update"


def _text(file: PythonFile, node: ast.expr) -> str:
    """Return the text that an expression is; empty where it is not known, or may be another."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    known, complete = file.values(node) if isinstance(node, ast.Name) else (set(), False)
    value = next(iter(known)) if complete and len(known) == 1 else None
    return value if isinstance(value, str) else ""
