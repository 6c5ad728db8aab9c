"""Imports of a library: where they stand, and whether the file can do without."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocmend.port.python.file import PythonFile

__all__ = ["attempted", "bound_names", "imports_of", "of_tests", "optional", "unless_own", "without"]

_AVAILABLE = re.compile(r"available|find_spec|installed|\bhas_|_has_|HAVE_|supports?_|TYPE_CHECKING", re.IGNORECASE)

_STARTED = {"CalledProcessError", "TimeoutExpired", "SubprocessError", "TimeoutError", "ValueError", "IndexError"}
"""What a program raises, or what it printed, after it was started."""

_TESTS = re.compile(r"(?:^|/)(?:tests?|testing)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py\Z")


def imports_of(file: PythonFile, *libraries: str) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """Yield the imports of libraries or their modules, guarded or not, each with the library."""
    nodes: list[ast.Import | ast.ImportFrom] = [*file.of(ast.Import), *file.of(ast.ImportFrom)]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            modules = [] if node.level else [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            modules = [alias.name for alias in node.names]
        for library in libraries:
            if any(module == library or module.startswith(library + ".") for module in modules):
                yield node, library
                break


def unless_own(*libraries: str) -> tuple[str, ...]:
    """Return the files of which a project has one where a library is its own, as `Issue.unless` has them."""
    return tuple(f"{library.partition('.')[0]}/__init__.py" for library in libraries)


def optional(file: PythonFile, node: ast.stmt) -> bool:
    """Tell whether a file goes on without an import: a ``try`` or a test of availability stands around it."""
    child: ast.AST = node
    while (parent := file.parent(child)) is not None:
        if isinstance(parent, ast.Try | ast.TryStar) and child in parent.body and any(map(_catches, parent.handlers)):
            return True
        if isinstance(parent, ast.If) and child is not parent.test and _AVAILABLE.search(file.source(parent.test)):
            return True
        if isinstance(parent, ast.With) and "suppress" in file.source(parent.items[0].context_expr):
            return True
        child = parent
    return False


def attempted(file: PythonFile, node: ast.AST) -> bool:
    """Tell whether a ``try`` around a node says what happens where a program that it starts is not there."""
    child = node
    while (parent := file.parent(child)) is not None:
        if isinstance(parent, ast.Try | ast.TryStar) and child in parent.body and any(map(_lacks, parent.handlers)):
            return True
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return False
        child = parent
    return False


def of_tests(path: str) -> bool:
    """Tell whether a file belongs to a project's tests, by its name: what it expects is not what is built or run."""
    return _TESTS.search(path) is not None


def _catches(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else "Exception"
    return bool(re.search(r"\b(?:ImportError|ModuleNotFoundError|Exception|BaseException)\b", caught))


def _lacks(handler: ast.ExceptHandler) -> bool:
    """Whether a handler is reached where a program is not there: not that for one that was started and failed."""
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(ast.unparse(one).rpartition(".")[2] not in _STARTED for one in types)


def bound_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    """Return the names that an import binds; empty where they are not known, or more than names."""
    if any(alias.name == "*" for alias in node.names):
        return []
    if isinstance(node, ast.Import) and any("." in alias.name and not alias.asname for alias in node.names):
        return []
    return [alias.asname or alias.name for alias in node.names]


def without(node: ast.Import | ast.ImportFrom) -> str:
    """Return the statement that binds an import's names to None; empty where that cannot be said."""
    names = bound_names(node)
    return " = ".join([*names, "None"]) if names else ""
