"""Rules of the house that no linter has: who may touch the file system in the rooms that handle strangers' trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "rocmend"
ROOMS = ("port", "codeobject", "machine", "lab/load.py", "kb/load.py")
HELPERS = (
    "read with rocmend.core.documents (bounded, regular files only), in a project's tree with rocmend.core.beneath or "
    "rocmend.port.steady, on a machine with rocmend.machine.root; write with rocmend.core.files.write_atomic"
)

METHODS = frozenset(
    [
        "open",
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "unlink",
        "rename",
        "mkdir",
        "rmdir",
        "touch",
        "chmod",
        "symlink_to",
        "hardlink_to",
    ]
)
OS = frozenset(
    [
        "open",
        "remove",
        "unlink",
        "rename",
        "replace",
        "mkdir",
        "makedirs",
        "rmdir",
        "removedirs",
        "link",
        "symlink",
        "chmod",
        "chown",
        "truncate",
        "mkfifo",
    ]
)
SHUTIL = frozenset(
    [
        "copy",
        "copy2",
        "copyfile",
        "copyfileobj",
        "copymode",
        "copystat",
        "copytree",
        "move",
        "rmtree",
        "unpack_archive",
        "chown",
    ]
)
OWN = frozenset({"root", "archive", "files", "resources", "joinpath"})
"""Names of what is no path: a ``Root``, an ``Archive``, a package's own files."""

ALLOWED = {
    # the helpers themselves
    "codeobject/reader.py": "the reader that all files of code objects are opened by",
    "machine/files.py": "opens a machine's files: regular, bounded, no link where it is captured",
    "port/transaction.py": "the one place that changes a project's files, and what it keeps of them",
    # our own files: caches, what is shipped, what a tool of ours has just written, /proc
    "codeobject/hip/cache.py": "our own cache",
    "codeobject/hip/compiler.py": "a temporary folder of ours, and a source of ours",
    "codeobject/hip/dependencies.py": "what our compiler wrote, and the headers that it read",
    "codeobject/hip/toolchain.py": "headers of the installed toolchain",
    "machine/capture.py": "makes the folder of a capture, which the user names",
    "machine/collectors/access.py": "/etc/group of this machine, bounded",
    "machine/software/packages.py": "dpkg's status of this machine, bounded",
    "port/cache.py": "our own cache, and our own sources",
    "port/support/is_rocm.py": "given to projects: reads the version of the torch that is installed there",
    "port/worker.py": "/proc/self",
    # verification works in folders of its own, into which a project's files were copied
    "port/verify/amd.py": "sysfs of this machine",
    "port/verify/identity.py": "a tree of ours",
    "port/verify/execution.py": "the temporary home of what is run",
    "port/verify/nvidia.py": "what a compiler has just written for us",
    "port/verify/programs.py": "a tree of ours",
    "port/verify/python_child.py": "the job that the parent wrote",
    "port/verify/python_run.py": "the job and results of a child of ours",
    "port/verify/python_tree.py": "a tree of ours",
    "port/verify/recording.py": "what a recording has just written for us",
    "port/verify/reverse.py": "a tree of ours",
    "port/verify/running.py": "a tree of ours",
    "port/verify/translated.py": "a tree of ours",
    "port/verify/trees.py": "makes the trees of both sides",
}
"""Modules of these rooms that may open, change or remove files by their paths, each with what they do it to."""


def touches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and name of each call that opens, changes or removes a file by its path."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id == "open":
            yield node.lineno, "open"
        elif isinstance(called, ast.Attribute):
            base = called.value
            owner = base.id if isinstance(base, ast.Name) else ""
            if owner in {"os", "shutil"}:
                if called.attr in (OS if owner == "os" else SHUTIL):
                    yield node.lineno, f"{owner}.{called.attr}"
            elif called.attr in METHODS and owner != "self" and not OWN.intersection(_names(base)):
                yield node.lineno, f".{called.attr}"


def _names(base: ast.expr) -> set[str]:
    """Return the names in an expression that something is called on: ``self.root``, ``files(…).joinpath``."""
    found = set()
    while True:
        if isinstance(base, ast.Call):
            base = base.func
        elif isinstance(base, ast.Attribute):
            found.add(base.attr)
            base = base.value
        else:
            return found | ({base.id} if isinstance(base, ast.Name) else set())


def modules() -> Iterator[tuple[str, ast.AST]]:
    for room in ROOMS:
        place = SOURCE / room
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_rooms_that_handle_strangers_trees_touch_files_only_where_it_is_allowed() -> None:
    found = {name: list(touches(tree)) for name, tree in modules()}
    new = [
        f"src/rocmend/{name}:{line}: {call} in a room that handles strangers' trees: {HELPERS}."
        for name, calls in found.items()
        for line, call in calls
        if name not in ALLOWED
    ]
    assert not new, "\n".join(new)
    stale = [name for name in ALLOWED if not found.get(name)]
    assert not stale, f"these touch no files any more, take them off ALLOWED: {', '.join(stale)}"


@pytest.mark.parametrize(
    ("source", "call"),
    [
        ("open('x')", "open"),
        ("path.open()", ".open"),
        ("(root / 'x').read_text()", ".read_text"),
        ("self.path.read_bytes()", ".read_bytes"),
        ("Path('x').unlink()", ".unlink"),
        ("os.open('x', 0)", "os.open"),
        ("shutil.rmtree('x')", "shutil.rmtree"),
    ],
)
def test_a_direct_call_is_seen(source: str, call: str) -> None:
    assert [name for _, name in touches(ast.parse(source))] == [call]


@pytest.mark.parametrize(
    "source",
    ["root.read_text('/x')", "self.root.read_bytes('/x')", "files('x').joinpath('y').read_text()", "os.getpid()"],
)
def test_what_goes_through_a_helper_is_none(source: str) -> None:
    assert not list(touches(ast.parse(source)))


def test_prose_of_the_documentation_is_wrapped() -> None:
    long = []
    docs = SOURCE.parents[1] / "docs"
    made = (docs / "reference" / "generated", docs / "_build")
    for path in sorted(docs.rglob("*.md")):
        if any(path.is_relative_to(folder) for folder in made):
            continue
        code = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            code ^= line.startswith("```")
            if len(line) > 300 and not code and not line.startswith("|"):
                long.append(f"{path.name}:{number}")
    assert not long
