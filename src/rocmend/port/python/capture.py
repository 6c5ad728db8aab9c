"""Graphs that a file captures by hand."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["captures"]

_NAMES = tuple(
    f"torch.cuda.{name}"
    for name in ("CUDAGraph", "graph", "make_graphed_callables", "graphs.CUDAGraph", "graphs.graph")
)


def captures(file: PythonFile) -> Iterator[ast.Call]:
    """Yield the calls that make or capture a graph."""
    for call in file.calls(*_NAMES):
        yield call.node
