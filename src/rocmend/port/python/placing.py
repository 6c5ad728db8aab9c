"""Where a file gets the names that its rewritten code uses: an import among its imports, or a definition."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple, TypeGuard

from rocmend.port.python.file import PythonFile
from rocmend.port.records import Edit

__all__ = [
    "DEFINITION",
    "TORCH_DEFINITION",
    "behind",
    "definition",
    "imports",
    "imports_at_all",
    "opens_with",
    "run_of",
]

TORCH_DEFINITION = 'FLAG = getattr(TORCH.version, "hip", None) is not None'
"""The definition in a file of no package, where torch is imported above it."""

DEFINITION = '''\
def _torch_is_for_rocm():
    """Tell whether the installed PyTorch is built for ROCm, without importing it."""
    import importlib.util
    import pathlib
    import re

    try:
        found = importlib.util.find_spec("torch")
        text = pathlib.Path(found.origin).with_name("version.py").read_text(encoding="utf-8")
    except (AttributeError, ImportError, OSError, TypeError, ValueError):
        return False
    return re.search(r"^hip\\b[^=\\n]*=[ \\t]*[\\"']", text, re.MULTILINE) is not None


FLAG = _torch_is_for_rocm()
'''
"""The definition in a file of no package where torch is not imported yet: to import it earlier could change things."""


class _Head(NamedTuple):
    """The beginning of a module: what an insertion must come behind, its imports, and what it must come before."""

    behind: list[ast.stmt]
    imports: list[ast.stmt]
    next: ast.stmt | None


def _head(file: PythonFile, before: int, start: ast.stmt | None = None) -> _Head:
    """Return the beginning of a module, or of a later run of imports that begins with ``start``."""
    body = file.module.body
    if start is not None:
        at = body.index(start)
        return _Head(body[:at], *_imports_from(file, at, before))
    at = 0
    if (
        body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        at = 1
    while at < len(body) and isinstance(node := body[at], ast.ImportFrom) and node.module == "__future__":
        at += 1
    return _Head(body[:at], *_imports_from(file, at, before))


def _imports_from(file: PythonFile, at: int, before: int) -> tuple[list[ast.stmt], ast.stmt | None]:
    body = file.module.body
    found: list[ast.stmt] = []
    while at < len(body) and isinstance(body[at], ast.Import | ast.ImportFrom) and file.span(body[at])[0] < before:
        if file.span(body[at])[1] > before or _line_end(file, body[at]) > before:
            break
        found.append(body[at])
        at += 1
    return found, body[at] if at < len(body) else None


def run_of(file: PythonFile, package: str, before: int) -> ast.stmt | None:
    """Return the first import of a run of top-level imports that imports a package, and ends before an offset.

    What comes behind such a run imports the package no earlier than the file does, whatever it sets up before.
    """
    first: ast.stmt | None = None
    for node in file.module.body:
        if file.span(node)[1] > before or _line_end(file, node) > before:
            return None
        if not isinstance(node, ast.Import | ast.ImportFrom) or getattr(node, "module", "") == "__future__":
            first = None
            continue
        first = first or node
        if package in _packages(node):
            return first
    return None


def behind(file: PythonFile, node: ast.stmt) -> int:
    """Return the offset of the line behind a statement."""
    return _line_end(file, node)


def imports_at_all(file: PythonFile, package: str) -> bool:
    """Tell whether a module's own statements import a package anywhere, for sure or not."""
    nodes: list[ast.Import | ast.ImportFrom] = [*file.of(ast.Import), *file.of(ast.ImportFrom)]
    return any(package in _packages(node) for node in nodes if not file.scope(node).of_function)


def opens_with(file: PythonFile, package: str, before: int) -> bool:
    """Tell whether a package is among the imports that a module begins with."""
    return any(package in _packages(node) for node in _head(file, before).imports if _is_import(node))


def _is_import(node: ast.stmt) -> TypeGuard[ast.Import | ast.ImportFrom]:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _packages(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.ImportFrom):
        return set() if node.level else {(node.module or "").partition(".")[0]}
    return {alias.name.partition(".")[0] for alias in node.names}


def imports(file: PythonFile, wanted: dict[str, list[str]], before: int) -> Edit:
    """Return the edit that imports names from support modules of one package, where isort would have them.

    Modules that are named absolutely come no earlier than the file's own first import of their package.

    Args:
        file: The file.
        wanted: By dotted module, absolute or relative, what to import: ``name`` or ``name as other``.
        before: The offset of the first use.
    """
    line = "".join(f"from {module} import {', '.join(sorted(wanted[module]))}\n" for module in sorted(wanted))
    module = min(wanted)
    later = None if module.startswith(".") else run_of(file, module.partition(".")[0], before)
    head = _head(file, before)
    if later is not None and later not in head.imports:
        head = _head(file, before, later)
    if not head.imports:
        return _opening(file, head, line)
    own = [node for node in head.imports if _same_section(node, module)]
    if own:
        for node in own:
            if isinstance(node, ast.ImportFrom) and _key(node) > module.lower():
                at = _line_start(file, node, _previous(head, node))
                return Edit(at, at, line.encode())
        at = _line_end(file, own[-1])
        return Edit(at, at, _on_a_line(file, at, line) + _blank(file, at, own[-1]))
    local = [node for node in head.imports if isinstance(node, ast.ImportFrom) and node.level]
    if local and not module.startswith("."):
        at = _line_start(file, local[0], _previous(head, local[0]))
        return Edit(at, at, (line + "\n").encode())
    at = _line_end(file, head.imports[-1])
    return Edit(at, at, _on_a_line(file, at, "\n" + line) + _blank(file, at, None))


def _blank(file: PythonFile, at: int, own: ast.stmt | None) -> bytes:
    """Return the blank line that a section of imports ends with, where none follows at ``at``."""
    rest = file.data[at:].lstrip(b" \t")
    following = own is not None and re.match(rb"(?:from|import)\b", rest) is not None
    return b"" if not rest or rest[:1] in b"\r\n" or following else b"\n"


def definition(file: PythonFile, flag: str, before: int) -> Edit:
    """Return the edit that defines the flag in a file of no package, behind its imports."""
    head = _head(file, before)
    later = run_of(file, "torch", before)
    if later is not None and not _torch(head.imports):
        head = _head(file, before, later)
    torch = _torch(head.imports)
    if torch:
        line = TORCH_DEFINITION.replace("TORCH", torch).replace("FLAG", flag) + "\n"
        at = _line_end(file, head.imports[-1])
        return Edit(at, at, _on_a_line(file, at, "\n" + line) + _blank(file, at, None))
    text = DEFINITION.replace("FLAG", flag)
    if not head.imports:
        return _opening(file, head, text)
    at = _line_end(file, head.imports[-1])
    return Edit(at, at, _on_a_line(file, at, "\n\n" + text) + _blank(file, at, None))


def _torch(found: list[ast.stmt]) -> str:
    """Return the name that torch is imported as."""
    for node in found:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch" or (alias.name.startswith("torch.") and not alias.asname):
                    return alias.asname or "torch"
    return ""


def _opening(file: PythonFile, head: _Head, text: str) -> Edit:
    """Insert before the first statement behind docstring and ``__future__`` imports."""
    blank = "\n\n" if isinstance(head.next, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else "\n"
    if head.next is None:
        at = len(file.data)
        return Edit(at, at, _on_a_line(file, at, text))
    at = _line_start(file, head.next, head.behind[-1] if head.behind else None)
    follows = isinstance(head.next, ast.Import | ast.ImportFrom) and not text.startswith("def ")
    return Edit(at, at, (text + ("" if follows and _same_section(head.next, text.split()[1]) else blank)).encode())


def _on_a_line(file: PythonFile, at: int, text: str) -> bytes:
    """Return text that begins a line at ``at``: where a file ends without a line end, one is put before."""
    begins = at == 0 or file.data[at - 1 : at] in {b"\n", b"\r"}
    return (text if begins else "\n" + text).encode()


def _previous(head: _Head, node: ast.stmt) -> ast.stmt | None:
    before = [*head.behind, *head.imports]
    at = before.index(node)
    return before[at - 1] if at else None


def _line_end(file: PythonFile, node: ast.stmt) -> int:
    """Return the offset behind the line on which a statement ends."""
    end = file.span(node)[1]
    found = [at for at in (file.data.find(b"\n", end),) if at >= 0]
    if found:
        return found[0] + 1
    at = file.data.find(b"\r", end)
    return at + 1 if at >= 0 else len(file.data)


def _line_start(file: PythonFile, node: ast.stmt, previous: ast.stmt | None) -> int:
    """Return the offset of the line on which a statement starts, comments directly above it included.

    Without a statement before it, comments above stay above: they are the file's.
    """
    start = file.data.rfind(b"\n", 0, file.span(node)[0]) + 1
    decorators = getattr(node, "decorator_list", [])
    if decorators:
        start = file.data.rfind(b"\n", 0, file.span(decorators[0])[0]) + 1
    if previous is None:
        return max(start, 3 if file.data.startswith(b"\xef\xbb\xbf") else 0)
    limit = _line_end(file, previous)
    while start > limit:
        above = file.data.rfind(b"\n", 0, start - 1) + 1
        if above < limit or not file.data[above:start].strip().startswith(b"#"):
            break
        start = above
    return max(start, limit)


def _key(node: ast.ImportFrom) -> str:
    return ("." * node.level + (node.module or "")).lower()


def _same_section(node: ast.AST | None, module: str) -> bool:
    """Whether an import belongs where ``module`` belongs: relative ones, or those of the same package."""
    if isinstance(node, ast.ImportFrom):
        if module.startswith(".") or node.level:
            return bool(node.level) and module.startswith(".")
        return (node.module or "").split(".", 1)[0] == module.split(".", 1)[0]
    if isinstance(node, ast.Import):
        return any(alias.name.split(".", 1)[0] == module.split(".", 1)[0] for alias in node.names)
    return False
