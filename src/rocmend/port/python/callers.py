"""Where a node is executed, by where the function around it is called."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rocmend.port.python.flags import Side

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["for_cuda"]


def for_cuda(file: PythonFile, node: ast.AST) -> bool:
    """Tell whether a node is for CUDA alone: it stands on its side, or in a function that setup.py calls there only."""
    if file.side(node) is Side.CUDA:
        return True
    around = file.parent(node)
    while around is not None and not isinstance(around, ast.FunctionDef):
        around = file.parent(around)
    if around is None or file.path.rpartition("/")[2] != "setup.py":
        return False
    name = around.name
    uses = [one for one in file.of(ast.Name) if one.id == name]
    return bool(uses) and all(file.side(one) is Side.CUDA for one in uses)
