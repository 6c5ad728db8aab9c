"""Attributes that a file sets, in whatever way it does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["Assigned", "assigned"]


class Assigned(NamedTuple):
    """An attribute that is set.

    Attributes:
        target: The attribute.
        value: The expression that it is set to.
        statement: The statement, where it sets this attribute and does nothing else.
    """

    target: ast.expr
    value: ast.expr
    statement: ast.stmt | None


def assigned(file: PythonFile) -> Iterator[Assigned]:
    """Yield the attributes that are set: by ``a.b = x``, ``a.b = c.d = x``, ``a.b, c.d = x, y``, with an annotation."""
    for node in file.of(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                yield Assigned(target, node.value, node if len(node.targets) == 1 else None)
            elif isinstance(target, ast.Tuple | ast.List) and isinstance(node.value, ast.Tuple | ast.List):
                yield from _pairs(target, node.value)
    for annotated in file.of(ast.AnnAssign):
        if isinstance(annotated.target, ast.Attribute) and annotated.value is not None:
            yield Assigned(annotated.target, annotated.value, annotated)


def _pairs(targets: ast.Tuple | ast.List, values: ast.Tuple | ast.List) -> Iterator[Assigned]:
    if len(targets.elts) != len(values.elts) or any(
        isinstance(one, ast.Starred) for one in [*targets.elts, *values.elts]
    ):
        return
    for target, value in zip(targets.elts, values.elts, strict=True):
        if isinstance(target, ast.Attribute):
            yield Assigned(target, value, None)
