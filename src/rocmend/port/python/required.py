"""Statements that fail where PyTorch has no CUDA version, and so on ROCm.

A project means "this needs a GPU" by most of them; one whose message names ROCm refuses it on purpose.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rocmend.port.python.flags import Names, Side, implied

__all__ = ["CUDA_VERSION", "Operand", "Requirement", "requirement"]

CUDA_VERSION = "torch.version.cuda"
_EXITS = {"sys.exit", "builtins.exit", "builtins.quit", "os._exit", "os.abort"}
_REFUSES = re.compile(r"\b(?:ROCm|HIP|AMD)\b", re.IGNORECASE)
_DEEPEST = 3


class Operand(NamedTuple):
    """A part of a test, and the value of it that makes the statement fail."""

    node: ast.expr
    failing: bool


class Requirement(NamedTuple):
    """What makes a statement fail on ROCm.

    Attributes:
        operands: The parts of its test that do, and those beside them that read the CUDA version.
        otherwise: Whether it fails in its ``else``: the CUDA version is asked for to do something with it.
        refuses: Whether its message names ROCm.
    """

    operands: list[Operand]
    otherwise: bool
    refuses: bool


def requirement(file: Names, node: ast.If | ast.Assert) -> Requirement | None:
    """Return why an assertion, or an ``if`` that raises or exits, fails on ROCm; None where it need not.

    One in a ``try`` is the project's own way to go on without CUDA.
    """
    if isinstance(node, ast.Assert):
        failing: list[ast.AST] = [node.msg] if node.msg else []
        outcome, otherwise = False, False
    elif _fails(file, node.body):
        failing, outcome, otherwise = list(node.body), True, False
    elif _fails(file, node.orelse):
        failing, outcome, otherwise = list(node.orelse), False, True
    else:
        return None
    operands = list(_operands(file, node.test, outcome))
    if not operands or _caught(file, node):
        return None
    texts = [one.value for part in failing for one in ast.walk(part) if isinstance(one, ast.Constant)]
    refuses = any(isinstance(text, str) and _REFUSES.search(text) for text in texts)
    return Requirement(operands, otherwise, refuses)


def _fails(file: Names, block: Sequence[ast.stmt]) -> bool:
    last = block[-1] if block else None
    if isinstance(last, ast.Raise):
        return last.exc is not None and "Skip" not in ast.dump(last.exc)
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and file.qualified(last.value.func) in _EXITS


def _operands(file: Names, test: ast.expr, outcome: bool) -> Iterator[Operand]:
    """Yield the parts of a test that give it this outcome on ROCm, and what reads the version beside them."""
    if _no_version(file, test, outcome):
        yield Operand(test, outcome)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _operands(file, test.operand, not outcome)
    elif isinstance(test, ast.BoolOp):
        conjunction = isinstance(test.op, ast.And)
        found = {one: list(_operands(file, one, outcome)) for one in test.values}
        others = [one for one in test.values if not found[one]]
        if not any(found.values()) or any(implied(file, one, conjunction) is Side.CUDA for one in others):
            return
        if conjunction is outcome:  # every part has to have the outcome: one that is not about CUDA decides
            if outcome:
                yield from (inner for parts in found.values() for inner in parts)
            return
        first = next(at for at, one in enumerate(test.values) if found[one])
        for at, one in enumerate(test.values):
            yield from found[one] or ([Operand(one, outcome)] if at > first and _reads_version(file, one) else [])


def _no_version(file: Names, test: ast.expr, outcome: bool, depth: int = 0) -> bool:
    """Whether a test has this outcome just because there is no CUDA version."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _no_version(file, operand, not outcome, depth)
        case ast.Compare(left=left, ops=[op], comparators=[ast.Constant(value=None)]):
            asks = ast.Is | ast.Eq if outcome else ast.IsNot | ast.NotEq
            return isinstance(op, asks) and file.qualified(left) == CUDA_VERSION
        case ast.Call(func=ast.Name(id="bool"), args=[value], keywords=[]):
            return _no_version(file, value, outcome, depth)
        case ast.Name() | ast.Attribute() | ast.Call() if file.qualified(test) == CUDA_VERSION:
            return not outcome
        case ast.Name(id=name) if depth < _DEEPEST and test in file.scopes.scope_of:
            found = file.scopes.scope_of[test].lookup(name)
            bound = found[1][0].value if found and len(found[1]) == 1 else None
            return bound is not None and _no_version(file, bound, outcome, depth + 1)
        case _:
            return False


def _reads_version(file: Names, node: ast.expr) -> bool:
    return any(
        isinstance(one, ast.Name | ast.Attribute) and file.qualified(one) == CUDA_VERSION for one in ast.walk(node)
    )


def _caught(file: Names, node: ast.stmt) -> bool:
    """Whether a statement stands in a ``try`` of its function that catches something."""
    child: ast.AST = node
    while (parent := file.scopes.parents.get(child)) is not None and not isinstance(child, ast.FunctionDef):
        if isinstance(parent, ast.Try) and parent.handlers and child in parent.body:
            return True
        child = parent
    return False
