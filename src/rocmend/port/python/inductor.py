"""Switches of Inductor's configuration that a file turns on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rocmend.port.python.flags import Side

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["switched_on"]

_CONFIG = "torch._inductor.config"
_PATCHES = (f"{_CONFIG}.patch", f"{_CONFIG}.save_config")


def switched_on(file: PythonFile, names: tuple[str, ...]) -> Iterator[tuple[str, ast.expr]]:
    """Yield the switches, of those named, that are surely True on ROCm, each with the expression that says so."""
    for name, value in _set(file, names):
        if file.side(value) is not Side.CUDA and file.values(value) == ({True}, True):
            yield name, value


def _set(file: PythonFile, names: tuple[str, ...]) -> Iterator[tuple[str, ast.expr]]:
    for node in file.of(ast.Assign):
        for target in node.targets:
            dotted = file.qualified(target) if isinstance(target, ast.Attribute) else None
            if dotted and dotted.removeprefix(_CONFIG + ".") in names and dotted.startswith(_CONFIG + "."):
                yield dotted.removeprefix(_CONFIG + "."), node.value
    for call in file.calls(*_PATCHES):
        for keyword in call.keywords:
            if keyword.arg in names:
                yield keyword.arg, keyword.value
        for argument in [*call.args, *(keyword.value for keyword in call.keywords if not keyword.arg)]:
            yield from _entries(argument, names)
    for call in file.calls("torch.compile"):
        for found in file.arguments(call, "options", 5):
            yield from _entries(found.value, names)


def _entries(node: ast.expr, names: tuple[str, ...]) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in names:
                yield str(key.value), value
