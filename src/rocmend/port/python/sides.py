"""Which side a node stands on: executed on ROCm, on CUDA, or on both, from the tests around it."""

from __future__ import annotations

import ast
from typing import NamedTuple

from rocmend.port.python.flags import Names, Side, implied
from rocmend.port.python.required import requirement

__all__ = ["Sides"]


class _Exits(NamedTuple):
    """What the statements of a block say of those after them.

    Attributes:
        places: The place of each in the block.
        first: The place of the first that leaves the rest to one side; past the last one where none does.
        side: That side.
    """

    places: dict[ast.AST, int]
    first: int
    side: Side | None


class Sides:
    """Where the nodes of one file are executed; found once for each."""

    def __init__(self, file: Names) -> None:
        self._file = file
        self._known: dict[ast.AST, Side] = {}
        self._blocks: dict[tuple[ast.AST, str], _Exits] = {}

    def of(self, node: ast.AST) -> Side:
        """Return where a node is executed, from the tests that it stands under in its file."""
        found: Side | None = None
        passed: list[ast.AST] = []
        child = node
        parents = self._file.scopes.parents
        while found is None:
            found = self._known.get(child)
            parent = parents.get(child)
            if found is None:
                passed.append(child)
                found = Side.BOTH if parent is None else self._under(child, parent)
            if parent is not None:
                child = parent
        self._known.update(dict.fromkeys(passed, found))
        return found

    def _under(self, child: ast.AST, parent: ast.AST) -> Side | None:
        """Return what a node's parent says of where it is executed."""
        found: Side | None = None
        if isinstance(parent, ast.If | ast.While) and child is not parent.test:
            inside = child in self._exits(parent, "body").places
            found = implied(self._file, parent.test, inside) if inside or not self._required(parent) else None
        elif isinstance(parent, ast.IfExp) and child is not parent.test:
            found = implied(self._file, parent.test, child is parent.body)
        elif isinstance(parent, ast.BoolOp):
            found = self._after_exits(child, parent, "values")
        if found is None and isinstance(child, ast.stmt):
            blocks = (self._after_exits(child, parent, name) for name in ("body", "orelse", "finalbody"))
            found = next((side for side in blocks if side is not None), None)
        return found

    def _after_exits(self, child: ast.AST, parent: ast.AST, name: str) -> Side | None:
        """Return what statements before ``child`` imply: ``if is_rocm: return`` leaves the rest to CUDA."""
        if not isinstance(getattr(parent, name, None), list):
            return None
        exits = self._exits(parent, name)
        return exits.side if exits.places.get(child, 0) > exits.first else None

    def _exits(self, parent: ast.AST, name: str) -> _Exits:
        key = parent, name
        if key not in self._blocks:
            block: list[ast.AST] = getattr(parent, name)
            places = {node: number for number, node in enumerate(block)}
            told = ((number, side) for number, one in enumerate(block) if (side := self._leaves_to(parent, one)))
            self._blocks[key] = _Exits(places, *next(told, (len(block), None)))
        return self._blocks[key]

    def _leaves_to(self, parent: ast.AST, one: ast.AST) -> Side | None:
        """Return the side that what comes after a statement, or after an operand of ``and`` and ``or``, is left to."""
        if isinstance(parent, ast.BoolOp):
            return implied(self._file, one, isinstance(parent.op, ast.And)) if isinstance(one, ast.expr) else None
        if self._required(one):
            return None
        if isinstance(one, ast.Assert):
            return implied(self._file, one.test, True)
        if isinstance(one, ast.If) and not one.orelse and _leaves(one.body):
            return implied(self._file, one.test, False)
        return None

    def _required(self, one: ast.AST) -> bool:
        """Whether a statement fails on ROCm by mistake: a port lets ROCm pass, and what comes after it runs there."""
        found = requirement(self._file, one) if isinstance(one, ast.If | ast.Assert) else None
        return found is not None and not (found.refuses or found.otherwise)


def _leaves(block: list[ast.stmt]) -> bool:
    last = block[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _leaves(last.body) and _leaves(last.orelse)
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)
