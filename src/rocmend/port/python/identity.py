"""Proof that a ported Python file does on CUDA what the original does: folding the flag gives the original's tree.

The original's tree and the ported one are walked together. Where they differ, the ported node must be a gate whose test
is the flag, and what it leaves when the flag is False must be what the original has there. All else is a difference.

A fold is only made where it is exact, and names that dropped code would bind are looked at: an assignment in a dropped
branch of a function makes its name local to the whole function, on CUDA too.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from typing import cast

from rocmend.core.errors import DataError
from rocmend.port.python.added import Added, added
from rocmend.port.python.file import PythonFile

__all__ = ["folds_back"]


class _DifferentError(Exception):
    """The two trees differ, with the line of the ported file."""


def folds_back(before: bytes, after: bytes, package_import: str = "") -> str | None:
    """Return why a ported file is not the original where the flag is False; None where it is.

    Args:
        before: The original.
        after: The ported file.
        package_import: As for ``write.ported``: needed where it names a flag of the project's own.
    """
    if before == after:
        return None
    try:
        original, ported = PythonFile("the original", before), PythonFile("the ported file", after)
    except DataError as error:
        return f"{error.subject} cannot be read: {error.message}"
    if original.encoding != ported.encoding:
        return f"the encoding changed from {original.encoding} to {ported.encoding}"
    found = added(original, ported, package_import)
    if isinstance(found, str):
        return found
    try:
        _Fold(original, ported, found).module()
    except _DifferentError as error:
        return str(error)
    return _no_longer_compiles(original, ported)


def _no_longer_compiles(original: PythonFile, ported: PythonFile) -> str | None:
    """Return the error that only the ported file gives: what the grammar allows and the compiler does not."""
    for file in (ported, original):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(file.text, file.path, "exec", dont_inherit=True)
        except SyntaxError as error:
            if file is original:
                return None
            reason = f"line {error.lineno}: {error.msg}"
        except (ValueError, RecursionError, MemoryError) as error:
            return f"{file.path} cannot be compiled: {error}"
        else:
            return None if file is ported else reason
    return None


class _Fold:
    def __init__(self, original: PythonFile, ported: PythonFile, found: Added) -> None:
        self.original = original
        self.ported = ported
        self.found = found

    def module(self) -> None:
        """Compare the modules; a docstring stays first, and so do imports from ``__future__``."""
        before, after = self.original.module.body, self.ported.module.body
        if _docstring(before) != _docstring(after):
            raise _DifferentError("the module's docstring is no longer its first statement")
        fresh = [at for at, node in enumerate(after) if node in self.found.statements]
        futures = [
            at for at, node in enumerate(after) if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        ]
        if fresh and futures and fresh[0] < futures[-1]:
            raise _DifferentError("an import from __future__ comes after other statements")
        self.block(before, after)

    def block(self, before: Sequence[ast.stmt], after: Sequence[ast.stmt]) -> None:
        """Compare two blocks, with the gates of the ported one folded away."""
        kept: list[ast.stmt] = []
        for node in after:
            expected = before[len(kept)] if len(kept) < len(before) else None
            kept += self.folded(node, expected)
        for one, other in zip(before, kept, strict=False):
            self.same(one, other)
        if len(before) < len(kept):
            raise self.different(kept[len(before)], "it is not in the original")
        if len(before) > len(kept):
            line = getattr(before[len(kept)], "lineno", 0)
            raise _DifferentError(f"line {line} of the original is missing")

    def folded(self, node: ast.stmt, expected: ast.stmt | None) -> list[ast.stmt]:
        """Return what is left of a statement on CUDA; a gate that the original has there is left as it is."""
        if node in self.found.statements:
            return []
        value = self.flag(node.test) if isinstance(node, ast.If) else None
        if not isinstance(node, ast.If) or value is None:
            return [node]
        if isinstance(expected, ast.If) and ast.dump(expected.test) == ast.dump(node.test):
            return [node]
        dropped, left = (node.orelse, node.body) if value else (node.body, node.orelse)
        self.droppable(dropped)
        result: list[ast.stmt] = []
        for inner in left:
            result += self.folded(inner, None if result else expected)
        return result

    def same(self, before: object, after: object) -> None:
        """Compare two nodes or values; raise where they differ and no gate explains it."""
        if isinstance(before, ast.AST) and isinstance(after, ast.AST):
            if not self._same_gate(before, after):
                after = self.reduced(after)
            if type(before) is not type(after):
                raise self.different(after, f"a {type(before).__name__} has become a {type(after).__name__}")
            self.fields(before, after)
        elif type(before) is not type(after) or repr(before) != repr(after):
            raise _DifferentError(f"{before!r} has become {after!r}")

    @staticmethod
    def _same_gate(before: ast.AST, after: ast.AST) -> bool:
        """Whether the original has a gate of its own here, with the same test."""
        if isinstance(before, ast.IfExp) and isinstance(after, ast.IfExp):
            return ast.dump(before.test) == ast.dump(after.test)
        if isinstance(before, ast.BoolOp) and isinstance(after, ast.BoolOp):
            return ast.dump(before.values[0]) == ast.dump(after.values[0]) and len(before.values) == len(after.values)
        return False

    def fields(self, before: ast.AST, after: ast.AST) -> None:
        for name in before._fields:
            one, other = getattr(before, name, None), getattr(after, name, None)
            if isinstance(one, list) and isinstance(other, list):
                self.lists(name, one, other, after)
            elif isinstance(one, ast.AST) != isinstance(other, ast.AST):
                raise self.different(after, f"its {name} differs")
            else:
                try:
                    self.same(one, other)
                except _DifferentError as error:
                    if isinstance(one, ast.AST) or str(error).startswith("line"):
                        raise
                    raise self.different(after, f"its {name}: {error}") from error

    def lists(self, name: str, before: list[object], after: list[object], node: ast.AST) -> None:
        if any(isinstance(item, ast.stmt) for item in (*before, *after)):
            if name == "body" and _docstring(before) != _docstring(after):
                raise self.different(node, "its docstring is no longer its first statement")
            self.block(cast("list[ast.stmt]", before), cast("list[ast.stmt]", after))
            return
        kept = [item for item in after if not self.empty(item)] if len(after) > len(before) else after
        if isinstance(node, ast.Dict) and kept is not after:
            raise self.different(node, "entries were added to it")
        if len(before) != len(kept):
            raise self.different(node, f"its {name} were {len(before)} and are {len(kept)}")
        for one, other in zip(before, kept, strict=True):
            if (one is None) != (other is None):
                raise self.different(node, f"its {name} differ")
            if one is not None:
                self.same(one, other)

    def empty(self, item: object) -> bool:
        """Tell whether an argument or element is unpacked from nothing on CUDA: ``*([…] if is_rocm else [])``."""
        if not (isinstance(item, ast.Starred) or (isinstance(item, ast.keyword) and item.arg is None)):
            return False
        value = item.value
        if not isinstance(value, ast.IfExp) or self.flag(value.test) is None:
            return False
        match self.reduced(value):
            case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
                return True
            case _:
                return False

    def reduced(self, node: ast.AST) -> ast.AST:
        """Return what is left of an expression on CUDA, where its outermost part is a gate."""
        if isinstance(node, ast.IfExp):
            value = self.flag(node.test)
            if value is None:
                return node
            self.droppable([node.orelse if value else node.body])
            return self.reduced(node.body if value else node.orelse)
        if isinstance(node, ast.BoolOp):
            value = self.flag(node.values[0])
            neutral = isinstance(node.op, ast.And)
            if value is not neutral or value is None:
                return node
            rest = node.values[1:]
            return self.reduced(rest[0]) if len(rest) == 1 else ast.copy_location(ast.BoolOp(node.op, rest), node)
        return node

    def flag(self, test: ast.expr) -> bool | None:
        """Return what a test is where the flag is False, if that alone decides it."""
        match test:
            case ast.Name(id=name) if name in self.found.names:
                return False
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                value = self.flag(operand)
                return None if value is None else not value
            case ast.BoolOp(op=op, values=values):
                value = self.flag(values[0])
                decides = value is not None and value is isinstance(op, ast.Or)
                if decides:
                    self.droppable(values[1:])
                return value if decides else None
            case _:
                return None

    def droppable(self, nodes: Sequence[ast.AST]) -> None:
        """Check that code which is never executed on CUDA has no effect on the names of the function around it."""
        for top in nodes:
            for node in ast.walk(top):
                if isinstance(node, ast.Yield | ast.YieldFrom):
                    raise self.different(node, "a yield in code for ROCm makes the function a generator on CUDA too")
                if isinstance(node, ast.Global | ast.Nonlocal | ast.AnnAssign):
                    raise self.different(node, "a declaration in code for ROCm holds on CUDA too")
                if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
                    raise self.different(node, "an import of all names in code for ROCm cannot be followed")
            self.bindings(top)

    def bindings(self, top: ast.AST) -> None:
        """Check that a name bound by dropped code in a function is local to it anyway, or read nowhere in it."""
        inside = set(ast.walk(top))
        scopes = {
            scope for scope in self.ported.scopes.scope_of.values() if scope.of_function and scope.node not in inside
        }
        for scope in scopes:
            for name, bindings in scope.bindings.items():
                here = [binding for binding in bindings if binding.node in inside]
                if not here or any(binding.node not in inside and self.kept(binding.node) for binding in bindings):
                    continue
                if any(
                    isinstance(node, ast.Name) and node.id == name and self.kept(node) for node in ast.walk(scope.node)
                ):
                    raise self.different(here[0].node, f"it makes {name!r} a local name of the function on CUDA too")

    def kept(self, node: ast.AST) -> bool:
        """Tell whether a node is executed on CUDA: it stands in no branch that is dropped."""
        child = node
        if node not in self.ported.scopes.scope_of:  # inside an f-string
            return True
        while (parent := self.ported.parent(child)) is not None:
            if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
                value = self.flag(parent.test)
                in_body = child in parent.body if isinstance(parent.body, list) else child is parent.body
                if value is not None and value is not in_body:
                    return False
            child = parent
        return True

    @staticmethod
    def different(node: object, why: str) -> _DifferentError:
        return _DifferentError(f"line {getattr(node, 'lineno', '?')}: {why}")


def _docstring(block: Sequence[object]) -> str | None:
    first = block[0] if block else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        return first.value.value
    return None
