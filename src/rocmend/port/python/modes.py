"""The mode that ``torch.compile`` is asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rocmend.port.python.flags import Side, implied

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["known_modes", "leaves", "modes"]


def modes(file: PythonFile, *, unknown: bool) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the expressions that compile modes come from on ROCm, and whether they serve that purpose alone.

    Args:
        file: The file.
        unknown: Whether ``x.compile(mode=…)`` of an unknown ``x`` counts, and what is ``torch.compile`` in some cases
            only, beside ``torch.compile`` in any guise.
    """
    seen: set[ast.expr] = set()
    for call in file.calls("torch.compile"):
        if file.side(call.node) is Side.CUDA:
            continue
        for argument in file.arguments(call, "mode", 4):
            if argument.value not in seen and file.side(argument.value) is not Side.CUDA:
                seen.add(argument.value)
                yield argument.value, not argument.shared
    for node in file.of(ast.Call) if unknown else ():
        names = file.names(node.func)
        method = isinstance(node.func, ast.Attribute) and node.func.attr == "compile" and names == {None}
        if not (method or (len(names) > 1 and "torch.compile" in names)) or file.side(node) is Side.CUDA:
            continue
        for keyword in node.keywords:
            if keyword.arg == "mode" and keyword.value not in seen:
                yield keyword.value, False


def leaves(file: PythonFile, node: ast.expr) -> Iterator[ast.expr]:
    """Yield the expressions that a mode is chosen among on ROCm: the branches of conditions, a default after ``or``."""
    if isinstance(node, ast.IfExp):
        side = implied(file, node.test, True)
        if side is not Side.CUDA:
            yield from leaves(file, node.body)
        if side is not Side.ROCM:
            yield from leaves(file, node.orelse)
    elif isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        for value in node.values:
            yield from leaves(file, value)
    else:
        yield node


def known_modes(file: PythonFile, mode: str) -> Iterator[tuple[ast.expr, bool]]:
    """Yield the expressions that are this mode on ROCm and nothing else, and whether they serve that purpose alone."""
    for value, own in modes(file, unknown=True):
        for leaf in leaves(file, value):
            if file.values(leaf) == ({mode}, True):
                yield leaf, own
