"""Environment variables that a Python file sets."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["Setting", "settings"]


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
    for node in file.of(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript) and (name := _constant(target.slice)) in names:
                yield Setting(name, node.value, node, file.qualified(target.value) == "os.environ")
    for call in file.of(ast.Call):
        yield from _by_call(call, file.qualified(call.func), names)
    for entries in file.of(ast.Dict):
        parent = file.parent(entries)
        own = isinstance(parent, ast.Call) and file.qualified(parent.func) == "os.environ.update"
        for key, value in zip(entries.keys, entries.values, strict=True):
            if (name := _constant(key)) in names:
                yield Setting(name, value, value, own)


def _by_call(call: ast.Call, function: str | None, names: tuple[str, ...]) -> Iterator[Setting]:
    if function in {"os.environ.setdefault", "os.putenv"} and len(call.args) == 2:
        if (name := _constant(call.args[0])) in names:
            yield Setting(name, call.args[1], call, of_process=True)
    elif function in {"os.environ.update", "builtins.dict"}:
        for keyword in call.keywords:
            if keyword.arg in names and keyword.arg:
                yield Setting(keyword.arg, keyword.value, keyword.value, function == "os.environ.update")


def _constant(node: ast.AST | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
