"""Writing a ported Python file: the issues' edits, and the names that they use brought into it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from rocmend.core.errors import UnitError
from rocmend.port.edits import applied, compatible
from rocmend.port.python.file import PythonFile
from rocmend.port.python.flags import FLAG_MODULE, proven_names
from rocmend.port.python.gates import FLAG
from rocmend.port.python.placing import behind, definition, imports, imports_at_all, opens_with, run_of
from rocmend.port.python.units import UNITS, module_of
from rocmend.port.records import Edit, Issue

__all__ = ["ported"]

_OTHER_FLAG = "_is_rocm"
_BESIDE = """__import__("sys").path.append(__import__("os").path.dirname(__import__("os").path.abspath(__file__)))"""
_BRANCH_IMPORT = re.compile(r"\bfrom (_rocm_\w+) import ([^\n]*)")


def _modules(text: bytes, package_import: str) -> bytes:
    """Give imports of support modules in a branch for ROCm the package that the modules are in.

    Beside a file of no package they are found wherever the file is executed from: a tool may do that with a search path
    of its own. The line for that binds no name, which could hide one of the function around it.
    """

    def placed(found: re.Match[str]) -> str:
        module = module_of(package_import.partition(":")[0], found[1].removeprefix(f"{FLAG_MODULE}_"))
        line = found[0].replace(found[1], module, 1)
        if package_import:
            return line
        before = found.string[: found.start()]
        indent = before[before.rfind("\n") + 1 :]
        return f"{_BESIDE}\n{indent}{line}" if not indent.strip() else line

    return _BRANCH_IMPORT.sub(placed, text.decode()).encode()


def ported(data: bytes, issues: Sequence[Issue], package_import: str) -> bytes:
    """Return a file with its issues' edits made and the names that they use imported or defined.

    Args:
        data: The file.
        issues: Those whose edits are to be made.
        package_import: The module that defines ``is_rocm``, absolute or relative (``package._rocm``, ``._rocm``);
            ``package.module:NAME`` where the project has such a flag of its own; empty for a file of no package, which
            gets a definition (other support modules are then imported from beside it).

    Returns:
        The ported file, in the encoding and with the line ends of the original. Without edits, ``data`` itself.

    Raises:
        UnitError: Edits contradict each other, or the file has other uses for the names that they need.
        DataError: The file cannot be parsed.
    """
    edits = compatible(edit for issue in issues for edit in issue.edits)
    if not edits:
        return data
    file = PythonFile(issues[0].path, data)
    inside = {
        name for edit in edits for line in _BRANCH_IMPORT.finditer(edit.text.decode()) for name in line[2].split()
    }
    texts = _BRANCH_IMPORT.sub("", "\n".join(edit.text.decode() for edit in edits))
    first = min(edit.start for edit in edits)
    added: list[Edit] = []
    wanted: dict[str, list[str]] = {}
    renamed: dict[str, str] = {}
    edits = [Edit(edit.start, edit.end, _modules(edit.text, package_import)) for edit in edits]
    for unit in UNITS.values():
        used = [name for name in unit.exports if re.search(rf"\b{name}\b", texts) and name not in inside]
        if not used:
            continue
        if unit.name == "is_rocm":
            name, defined = _flag(file, package_import, first, wanted)
            renamed[FLAG] = name
            added += [defined] if defined else []
        else:
            _unit(file, unit.name, used, package_import, first, wanted)
    if wanted and not package_import:
        added = [_on_rocm(file, renamed[FLAG], wanted, added)]
    elif wanted:
        added.append(imports(file, wanted, first))
    for name, other in renamed.items():
        edits = [
            Edit(edit.start, edit.end, re.sub(rf"\b{name}\b", other, edit.text.decode()).encode()) for edit in edits
        ]
    return applied(data, _in_line_ends(file, _joined([*added, *edits])))


def _flag(file: PythonFile, package_import: str, first: int, wanted: dict[str, list[str]]) -> tuple[str, Edit | None]:
    """Return the flag's name in a file, and the edit that defines it there; what is to be imported joins ``wanted``."""
    for known, node in proven_names(file).items():
        top = node
        if file.span(top)[1] <= first and not _rebound(file, known):
            return known, None
    name = _OTHER_FLAG if file.scopes.module.stars or _taken(file, FLAG) else FLAG
    if _taken(file, name):
        raise UnitError("port", f"{file.path} uses the names {FLAG} and {_OTHER_FLAG} for other things.",
                        next_step="Rename one of them, or port the file by hand.")  # fmt: skip
    module, _, own = package_import.partition(":")
    if not module or _too_early(file, module, first):
        return name, definition(file, name, first)
    if own and not opens_with(file, "torch", first):  # the project's own flag may import torch, ours does not
        module, own = module_of(module, "is_rocm"), ""
    own = own or FLAG
    wanted.setdefault(module, []).append(own if own == name else f"{own} as {name}")
    return name, None


def _too_early(file: PythonFile, module: str, first: int) -> bool:
    """Tell whether a file would import its package earlier than it does: before a path or a variable is set, say."""
    if module.startswith("."):
        return False
    package = module.partition(".")[0]
    return imports_at_all(file, package) and run_of(file, package, first) is None


def _unit(  # noqa: PLR0913, PLR0917  what is imported, from where, and where it may stand
    file: PythonFile, unit: str, used: list[str], package_import: str, first: int, wanted: dict[str, list[str]]
) -> None:
    module = module_of(package_import.partition(":")[0], unit)
    missing = [
        name
        for name in used
        if not any(
            (bound.imported or "").endswith(f"{module.lstrip('.')}.{name}")
            for bound in file.scopes.module.bindings.get(name, [])
        )
    ]
    if missing and package_import and _too_early(file, module, first):
        raise UnitError("port", f"{file.path} imports its package only after the code that needs {module}.",
                        next_step="Port the file by hand.")  # fmt: skip
    for name in missing:
        if _taken(file, name):
            raise UnitError("port", f"{file.path} uses the name {name} for something else.",
                            next_step="Port the file by hand.")  # fmt: skip
    if missing:
        wanted.setdefault(module, []).extend(missing)


def _on_rocm(file: PythonFile, flag: str, wanted: dict[str, list[str]], added: list[Edit]) -> Edit:
    """Return the edit that imports modules from beside a file of no package, on ROCm alone, behind the flag.

    On CUDA nothing says that they would be found: the file may be executed as part of a package that it is not in here.
    """
    lines = [f"    from {module} import {', '.join(sorted(names))}\n" for module, names in sorted(wanted.items())]
    block = f"if {flag}:\n    {_BESIDE}\n{''.join(lines)}"
    if not added:
        at = behind(file, proven_names(file)[flag])
        return Edit(at, at, block.encode())
    defined = added[0]
    text = defined.text.decode()
    head = text.rstrip("\n")
    return Edit(defined.start, defined.end, f"{head}\n{block}{text[len(head) + 1 :]}".encode())


def _taken(file: PythonFile, name: str) -> bool:
    """Tell whether a file has a name in any scope, as its own or as a name from elsewhere."""
    if any(node.id == name for node in file.of(ast.Name)):
        return True
    return any(name in scope.bindings or name in scope.global_names for scope in set(file.scopes.scope_of.values()))


def _rebound(file: PythonFile, name: str) -> bool:
    """Tell whether a scope other than the module binds a name, which would hide the module's."""
    scopes = set(file.scopes.scope_of.values()) - {file.scopes.module}
    return any(name in scope.bindings or name in scope.global_names for scope in scopes)


def _joined(edits: list[Edit]) -> list[Edit]:
    """Join insertions at one place into one edit, in the order given."""
    made: dict[tuple[int, int], Edit] = {}
    for edit in edits:
        key = (edit.start, edit.end)
        if edit.start == edit.end and key in made:
            made[key] = Edit(edit.start, edit.end, made[key].text + edit.text)
        else:
            made[key] = edit
    return list(made.values())


def _in_line_ends(file: PythonFile, edits: list[Edit]) -> list[Edit]:
    """Give inserted lines the file's line ends and encoding."""
    head = file.data[: 1 << 16]
    ending = b"\r\n" if head.count(b"\r\n") * 2 > head.count(b"\n") else b"\n"
    if ending == b"\n" and b"\n" not in head and b"\r" in head:
        ending = b"\r"
    return [Edit(edit.start, edit.end, edit.text.replace(b"\n", ending)) for edit in edits]
