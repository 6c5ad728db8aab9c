"""What a project's tests set in order to look at it afterwards."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rocmend.port.python.imported import of_tests

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["looked_at"]

_SWITCHES = "torch.backends."
_ASKED = "torch.get_float32_matmul_precision"


def looked_at(file: PythonFile, node: ast.AST) -> bool:
    """Tell whether a test sets a switch of PyTorch's to assert what becomes of it: another value changes the test."""
    around = file.parent(node)
    while around is not None and not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
        around = file.parent(around)
    if around is None or not of_tests(file.path):
        return False
    assertions = [one for one in ast.walk(around) if isinstance(one, ast.Assert)]
    asserted = [one for assertion in assertions for one in ast.walk(assertion)]
    names = [file.qualified(one) or "" for one in asserted if isinstance(one, ast.Attribute)]
    return any(name.startswith(_SWITCHES) or name == _ASKED for name in names)
