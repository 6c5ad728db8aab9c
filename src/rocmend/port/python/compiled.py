"""Functions whose source another compiler reads: Triton, Numba, TorchScript. They cannot read a flag of the module."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["in_compiled"]

_COMPILERS = {
    "triton.jit",
    "triton.runtime.jit",
    "triton.experimental.gluon.jit",
    "torch.jit.script",
    "torch.jit.script_method",
    "torch.jit.export",
    "numba.jit",
    "numba.njit",
    "numba.cuda.jit",
    "numba.vectorize",
    "numba.guvectorize",
    "cupyx.jit.rawkernel",
    "tilelang.jit",
    "warp.kernel",
    "warp.func",
}
_WORDS = ("jit", "njit", "script", "rawkernel", "prim_func")


def in_compiled(file: PythonFile, node: ast.AST) -> bool:
    """Tell whether a node is part of what such a compiler reads: the body of a function, or of a class, given to it."""
    child = node
    while (parent := file.parent(child)) is not None:
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            decorators: list[ast.expr] = parent.decorator_list
            if child not in decorators and (_is_given(file, parent) or any(_compiles(file, one) for one in decorators)):
                return True
        child = parent
    return False


def _compiles(file: PythonFile, decorator: ast.expr) -> bool:
    if isinstance(decorator, ast.Call):
        decorator = decorator.func
    if file.qualified(decorator) in _COMPILERS:
        return True
    last = decorator.attr if isinstance(decorator, ast.Attribute) else getattr(decorator, "id", "")
    return str(last).lstrip("_") in _WORDS


def _is_given(file: PythonFile, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Whether a function or class is compiled by a call: ``f = torch.jit.script(f)``, ``torch.jit.script(Model())``."""
    for call in file.calls(*_COMPILERS):
        for argument in call.args[:1]:
            if function.name in _given(file, argument):
                return True
    return False


def _given(file: PythonFile, node: ast.expr) -> set[str]:
    """Return the names that are compiled where an expression is: a function's, or an instance's class."""
    if isinstance(node, ast.Call):
        return {node.func.id} if isinstance(node.func, ast.Name) else set()
    if not isinstance(node, ast.Name):
        return set()
    found = file.scope(node).lookup(node.id)
    made = [one.value for one in found[1] if isinstance(one.value, ast.Call)] if found else []
    return {node.id, *(one.func.id for one in made if isinstance(one.func, ast.Name))}
