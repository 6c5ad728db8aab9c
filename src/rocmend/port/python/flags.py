"""Which expressions tell ROCm from CUDA.

Two strengths. *Known* is good enough to leave a place alone: a gate already stands there. *Proven* is good enough to be
used as a gate, and to be folded: the expression is one of a few forms whose value follows from the installed torch.
"""

from __future__ import annotations

import ast
import re
from enum import StrEnum
from typing import Protocol

from rocmend.port.python.scopes import Scopes

__all__ = ["FLAG_MODULE", "Names", "Side", "implied", "is_name", "proven", "proven_names", "truth"]

FLAG_MODULE = "_rocm"
"""The module of a ported package that defines ``is_rocm``; other support modules are called ``_rocm_NAME``."""

_ROCM_NAMES = re.compile(
    r"_*(?:(?:is|on|use|using|with|has|have|test_with)_?(?:torch_?)?(?:rocm|hip|amd)|rocm)(?:_?(?:gpu|platform|available|backend|pytorch|torch|extension|build|device))?",
    re.IGNORECASE,
)
_CUDA_NAMES = re.compile(
    r"_*(?:is|on|use|using)_?nvidia(?:_?(?:gpu|platform|backend|hopper|sm90|available))*|_*(?:is|on)_cuda_platform",
    re.IGNORECASE,
)
_OF_BUILDS = {"torch.utils.cpp_extension.ROCM_HOME", "torch.utils.cpp_extension.IS_HIP_EXTENSION"}
_KIND_NAMES = re.compile(r"backend|device|platform|type|target|kind|vendor|gpu|arch|accelerator", re.IGNORECASE)
_DEEPEST = 4
"""Names that are followed to what they were bound to; `a = not a` has no end."""


class Side(StrEnum):
    """Where a node is executed."""

    ROCM = "rocm"
    CUDA = "cuda"
    BOTH = "both"


class Names(Protocol):
    """What resolves names: ``PythonFile``."""

    scopes: Scopes

    def qualified(self, node: ast.AST) -> str | None:
        """Return the dotted name that an expression stands for."""


def truth(file: Names, test: ast.expr, depth: int = 0) -> Side | None:  # noqa: PLR0911  one line a form
    """Return the side on which ``test`` is certainly true, as far as names tell; None where it is no such test.

    ``Side.ROCM``: true on ROCm, false on CUDA. ``Side.CUDA``: the reverse.
    """
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            known = truth(file, operand, depth)
            return known and _other(known)
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[ast.Constant(value=str(kind))]):
            known = _of_kind(file, left, kind)
            return known if isinstance(op, ast.Eq) or known is None else _other(known)
        case ast.Call(func=ast.Name(id="isinstance"), args=[value, ast.Name(id="str")], keywords=[]):
            return (
                _named(file, value, depth)
                if file.qualified(value) in {"torch.version.cuda", "torch.version.hip"}
                else None
            )
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]):
            known = truth(file, left, depth)
            return _other(known) if known and isinstance(op, ast.Is | ast.Eq) else known
        case ast.Call(func=ast.Name(id="bool"), args=[value], keywords=[]):
            return truth(file, value, depth)
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value="hip" | "cuda" as which), *_]):
            if file.qualified(owner) != "torch.version":
                return None
            return Side.ROCM if which == "hip" else Side.CUDA
        case ast.Call(func=ast.Name(id="hasattr"), args=[owner, ast.Constant(value="hip")]):
            return Side.ROCM if file.qualified(owner) == "torch.version" else None
        case ast.BoolOp(op=ast.And(), values=values):
            first = truth(file, values[0], depth)
            same = first is not None and all(truth(file, value, depth) is first for value in values[1:])
            return first if same else None
        case ast.Call(func=func, args=[], keywords=[]):
            return _named(file, func, depth)
        case ast.Name() | ast.Attribute():
            return _named(file, test, depth)
        case _:
            return None


def _other(side: Side) -> Side:
    return {Side.ROCM: Side.CUDA, Side.CUDA: Side.ROCM}.get(side, side)


def _of_kind(file: Names, node: ast.expr, kind: str) -> Side | None:
    """Return the side on which a name is this kind of GPU: "hip" and "rocm", and "cuda" where it can be "hip" too.

    Where nothing is compared with "hip", "cuda" may be PyTorch's name for the GPUs of both.
    """
    if not isinstance(node, ast.Name | ast.Attribute) or kind.lower() not in {"hip", "rocm", "cuda"}:
        return None
    if not _KIND_NAMES.search(node.attr if isinstance(node, ast.Attribute) else node.id):  # a joint may be a hip too
        return None
    if kind.lower() != "cuda":
        return Side.ROCM
    if isinstance(node, ast.Attribute) and _of_triton(node):
        return Side.CUDA
    return Side.CUDA if ast.dump(node) in file.scopes.told_apart else None


def _of_triton(node: ast.Attribute) -> bool:
    """Whether this is the backend of Triton's target, which is "hip" on ROCm."""
    called = node.value.func if isinstance(node.value, ast.Call) else None
    return node.attr == "backend" and isinstance(called, ast.Attribute) and called.attr == "get_current_target"


def _named(file: Names, node: ast.expr, depth: int) -> Side | None:
    name = file.qualified(node)
    if name == "torch.version.hip" or name in _OF_BUILDS:
        return Side.ROCM
    if name == "torch.version.cuda":
        return Side.CUDA
    last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    for shown in (last, (name or "").rpartition(".")[2]):
        if _ROCM_NAMES.fullmatch(shown):
            return Side.ROCM
        if _CUDA_NAMES.fullmatch(shown):
            return Side.CUDA
    if isinstance(node, ast.Name) and depth < _DEEPEST:
        found = file.scopes.scope_of[node].lookup(node.id)
        if (
            found
            and len(found[1]) == 1
            and (value := found[1][0].value) is not None
            and not isinstance(value, ast.Name)
        ):
            return truth(file, value, depth + 1)
    return None


def implied(file: Names, test: ast.expr, outcome: bool, depth: int = 0) -> Side | None:
    """Return the side that ``test`` having this outcome implies.

    ``a and b`` being true implies what either implies; ``a or b`` being false likewise.
    """
    known = truth(file, test)
    if known is not None:
        return known if outcome else _other(known)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return implied(file, test.operand, not outcome, depth)
    if depth < _DEEPEST and (value := _meant(file, test)) is not None:
        return implied(file, value, outcome, depth + 1)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) is outcome:
        sides = {side for value in test.values if (side := implied(file, value, outcome, depth))}
        return sides.pop() if len(sides) == 1 else None
    return None


def _meant(file: Names, test: ast.expr) -> ast.expr | None:
    """Return the expression that a name was bound to once, or that a function without arguments returns."""
    called = isinstance(test, ast.Call) and not (test.args or test.keywords)
    name = test.func if isinstance(test, ast.Call) and called else test
    if not isinstance(name, ast.Name) or name not in file.scopes.scope_of:
        return None
    found = file.scopes.scope_of[name].lookup(name.id)
    if not found or len(found[1]) != 1:
        return None
    if not called:
        value = found[1][0].value
        return value if isinstance(value, ast.BoolOp | ast.UnaryOp) else None
    function = found[1][0].node
    if not isinstance(function, ast.FunctionDef):
        return None
    body = [one for one in function.body if not (isinstance(one, ast.Import | ast.ImportFrom) or _is_text(one))]
    return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def proven(file: Names, value: ast.expr) -> bool:
    """Tell whether an expression is True with a ROCm build of torch and False with any other, by its form alone."""
    match value:
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return _hip(file, left)
        case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]):
            return file.qualified(value.func) == "builtins.bool" and (_hip(file, inner) or proven(file, inner))
        case ast.BoolOp(op=ast.And(), values=[guard, last]):
            return truth(file, guard) is Side.ROCM and isinstance(guard, ast.Call) and proven(file, last)
        case _:
            return False


def _hip(file: Names, node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value="hip"), ast.Constant(value=None)]):
            return file.qualified(owner) == "torch.version" and file.qualified(node.func) == "builtins.getattr"
        case _:
            return file.qualified(node) == "torch.version.hip"


def is_name(name: str) -> bool:
    """Tell whether a name says by itself that it is a flag for ROCm: gates that test it are then known again."""
    return _ROCM_NAMES.fullmatch(name) is not None


def proven_names(file: Names) -> dict[str, ast.stmt]:
    """Return the module-level names that are bound once, to a proven test, with the statement that binds them."""
    names: dict[str, ast.stmt] = {}
    for name, bindings in file.scopes.module.bindings.items():
        if len(bindings) != 1:
            continue
        binding = bindings[0]
        imported = (binding.imported or "").rsplit(".", 2)
        ours = len(imported) > 1 and imported[-1] == "is_rocm" and imported[-2] == FLAG_MODULE
        if (
            not isinstance(binding.node, ast.stmt)
            or file.scopes.parents.get(binding.node) is not file.scopes.module.node
        ):
            continue
        if ours or (binding.value is not None and proven(file, binding.value)):
            names[name] = binding.node
    return names
