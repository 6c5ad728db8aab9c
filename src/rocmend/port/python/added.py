"""What a port may add to a Python file: imports of the support modules, and the flag's definition, in known forms."""

from __future__ import annotations

import ast
from typing import NamedTuple

from rocmend.port.python.compiled import in_compiled
from rocmend.port.python.file import PythonFile
from rocmend.port.python.flags import proven_names
from rocmend.port.python.gates import FLAG
from rocmend.port.python.placing import DEFINITION, TORCH_DEFINITION
from rocmend.port.python.units import UNITS

__all__ = ["Added", "added"]


class Added(NamedTuple):
    """What was added.

    Attributes:
        statements: The statements of the ported module that the original does not have.
        names: The names of the flag.
        reused: Those that the original has itself.
    """

    statements: set[ast.stmt]
    names: set[str]
    reused: set[str]


def added(original: PythonFile, ported: PythonFile, package_import: str = "") -> Added | str:
    """Return what was added to a file, or why that is not allowed.

    Args:
        original: The file as it was.
        ported: The file as it is.
        package_import: ``package.module:NAME`` where the project has a flag of its own there.
    """
    own = {ast.dump(node) for node in original.module.body}
    statements: set[ast.stmt] = set()
    names: set[str] = set()
    bound: set[str] = set()
    for node in ported.module.body:
        if ast.dump(node) in own:
            continue
        support = _support(node, package_import)
        defined = _defined(original, ported, node)
        if support:
            statements.add(node)
            bound |= set(support)
            names |= {name for name, of in support.items() if of == FLAG}
        elif isinstance(defined, str):
            return defined
        elif defined:
            statements.add(node)
            bound |= set(defined)
            names |= set(defined) - {"_torch_is_for_rocm"}
    reused = set(proven_names(original)) & set(proven_names(ported))
    why = _misused(original, ported, bound, names | reused)
    return why or Added(statements, names | reused, reused)


def _support(node: ast.stmt, package_import: str) -> dict[str, str]:
    """Return the names that an import of a support module binds, and what they are there; empty for anything else."""
    if not isinstance(node, ast.ImportFrom):
        return {}
    module, _, own = package_import.partition(":")
    if own and "." * node.level + (node.module or "") == module and {alias.name for alias in node.names} == {own}:
        return {alias.asname or alias.name: FLAG for alias in node.names}
    last = (node.module or "").rpartition(".")[2]
    for unit in UNITS.values():
        if unit.file == f"{last}.py":
            known = all(alias.name in unit.exports for alias in node.names)
            return {alias.asname or alias.name: alias.name for alias in node.names} if known else {}
    return {}


def _defined(original: PythonFile, ported: PythonFile, node: ast.stmt) -> set[str] | str:
    """Return the names that a definition in a known form binds, or why it is none."""
    if isinstance(node, ast.FunctionDef) and node.name == "_torch_is_for_rocm":
        known = ast.parse(DEFINITION).body[0]
        return {node.name} if ast.dump(known) == ast.dump(node) else f"line {node.lineno}: {node.name} was changed"
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
        return set()
    name = node.targets[0].id
    shown = ast.unparse(node.value)
    if shown == "_torch_is_for_rocm()":
        return {name}
    torch = shown.removeprefix("getattr(").partition(".")[0]
    torch = torch if torch.isidentifier() else "torch"
    known_value = ast.parse(TORCH_DEFINITION.partition("=")[2].strip().replace("TORCH", torch), mode="eval").body
    if ast.dump(known_value) != ast.dump(node.value):
        return set()
    imported = [bound for bound in original.scopes.module.bindings.get(torch, ()) if bound.imported == "torch"]
    above = [bound for bound in ported.scopes.module.bindings.get(torch, ()) if bound.node in ported.module.body]
    if not imported or not above or all(getattr(bound.node, "lineno", 0) > node.lineno for bound in above):
        return f"line {node.lineno}: the definition uses torch before it is imported"
    return {name}


def _misused(original: PythonFile, ported: PythonFile, bound: set[str], flags: set[str]) -> str:
    """Return why an added name or a flag does not mean everywhere what it is taken for; empty where it does."""
    for name in sorted(bound):
        if _occurs(original, name):
            return f"the original uses the name {name} for something else"
    stores = [
        node.id for node in ast.walk(ported.module) if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    ]
    for name in sorted(bound | flags):
        if stores.count(name) > 1 or len(ported.scopes.module.bindings.get(name, ())) != 1:
            return f"{name} is bound more than once"
        for scope in set(ported.scopes.scope_of.values()) - {ported.scopes.module}:
            if name in scope.bindings or name in scope.global_names:
                return f"{name} is bound in a scope of its own"
    if ported.scopes.module.stars and any(not name.startswith("_") for name in bound & flags):
        return "an import of all names could bind the flag again"
    return _misread(ported, bound) or next(
        (why for name in sorted(bound | flags) if (why := _used_too_early(ported, name, name in bound))), ""
    )


def _misread(file: PythonFile, bound: set[str]) -> str:
    """Return where an added name is read by another compiler, which has no such name."""
    for node in ast.walk(file.module):
        if isinstance(node, ast.Name) and node.id in bound and in_compiled(file, node):
            return f"line {node.lineno}: {node.id} is read in a function that another compiler reads"
    return ""


def _used_too_early(file: PythonFile, name: str, anywhere: bool) -> str:
    """Return where a name is used above the statement that binds it: anywhere, or outside functions only."""
    bound = file.scopes.module.bindings[name][0].node
    for node in ast.walk(file.module):
        if not (isinstance(node, ast.Name) and node.id == name and node.lineno < getattr(bound, "lineno", 0)):
            continue
        scope = file.scopes.scope_of.get(node)
        if anywhere or not (scope and scope.of_function):
            return f"line {node.lineno}: {name} is used before it is bound"
    return ""


def _occurs(file: PythonFile, name: str) -> bool:
    if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(file.module)):
        return True
    return any(name in scope.bindings or name in scope.global_names for scope in set(file.scopes.scope_of.values()))
