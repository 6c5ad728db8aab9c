"""Switches of Inductor's configuration that a file turns on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rocmend.port.python.assigned import assigned
from rocmend.port.python.calls import Call, entries
from rocmend.port.python.flags import Side

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["switched_on"]

_CONFIG = "torch._inductor.config"
_COMPILERS = {
    "torch.compile": ("options", 5),
    "torch._inductor.compile": ("options", 2),
    "torch._inductor.compile_fx.compile_fx": ("config_patches", 3),
}
"""Functions that compile, each with the argument that patches the configuration, and its place."""
_PATCHES = (f"{_CONFIG}.patch", f"{_CONFIG}.load_config")


def switched_on(file: PythonFile, names: tuple[str, ...]) -> Iterator[tuple[str, ast.expr, bool]]:
    """Yield the switches, of those named, that are surely True on ROCm.

    Yields:
        The switch, the expression that says so, and whether that may say it to others too.
    """
    seen: set[ast.expr] = set()
    for name, value, shared in _set(file, names):
        if value not in seen and file.side(value) is not Side.CUDA and file.values(value) == ({True}, True):
            seen.add(value)
            yield name, value, shared


def _set(file: PythonFile, names: tuple[str, ...]) -> Iterator[tuple[str, ast.expr, bool]]:
    named = [(file.qualified(target), value) for target, value, _ in assigned(file)]
    for dotted, value in [*named, *_set_by_name(file)]:
        if dotted and dotted.startswith(_CONFIG + ".") and dotted.removeprefix(_CONFIG + ".") in names:
            yield dotted.removeprefix(_CONFIG + "."), value, False
    for call in file.calls(*_PATCHES):
        for keyword in call.keywords:
            if keyword.arg in names:
                yield keyword.arg, keyword.value, False
        if len(call.args) == 2 and isinstance(call.args[0], ast.Constant) and call.args[0].value in names:
            yield str(call.args[0].value), call.args[1], False
        for argument in [*call.args, *(keyword.value for keyword in call.keywords if not keyword.arg)]:
            yield from _entries(file, call, argument, names)
    for call in file.calls(*_COMPILERS):
        for found in file.arguments(call, *_COMPILERS[call.name]):
            yield from _entries(file, call, found.value, names)


def _set_by_name(file: PythonFile) -> Iterator[tuple[str, ast.expr]]:
    """Yield the dotted names that ``setattr`` sets, and to what."""
    for node in file.of(ast.Call):
        match node:
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str(attribute)), value]):
                yield f"{file.qualified(owner)}.{attribute}", value


def _entries(
    file: PythonFile, call: Call, node: ast.expr, names: tuple[str, ...]
) -> Iterator[tuple[str, ast.expr, bool]]:
    for name in names:
        for found in entries(file, call, node, name):
            yield name, found.value, found.shared
