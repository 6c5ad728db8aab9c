"""What a project asks to have installed: its metadata and its lists of requirements, and where it gets them from."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from rocmend.core.beneath import Beneath, UnsafePathError
from rocmend.core.documents import PYTHON_BYTES
from rocmend.core.errors import DataError
from rocmend.port.build.dependencies import Where, canonical, parsed
from rocmend.port.build.file import TextFile
from rocmend.port.build.indexes import Serves, serves
from rocmend.port.build.kinds import Kind
from rocmend.port.build.lines import shown
from rocmend.port.python.syntax import why_not
from rocmend.port.settings import project_document, table_in

__all__ = ["Asked", "Project", "Unread", "project"]

_MAX_BYTES = 1 << 20
_MOST_PATTERNS = 64
_MOST_FOLDERS = 1000  # that a pattern of a uv workspace is looked for in
_FILES = ("pyproject.toml", "setup.cfg", "requirements.txt")
_MOST_LISTS = 64
_MOST_TOLD = 200
_INCLUDES = re.compile(r"""(?m)^[ \t]*(?:-r[ \t=]*|--requirement[ \t=]+)("[^"\n]+"|'[^'\n]+'|[^\s#]+)""")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class Asked(NamedTuple):
    """A requirement of a project.

    Attributes:
        name: The package, in its canonical form.
        text: As pip takes it, where it comes from included.
        extras: Its extras.
        version: Its specifier.
        path: The file that asks.
        line: Of the requirement, from 1.
        build: Whether it is needed to build the project only.
        optional: The extra or group that it belongs to; empty where it always is.
        local: A folder of the project that it is; empty where it is none.
        rocm: Whether its file gets it from an index for ROCm.
    """

    name: str
    text: str
    extras: tuple[str, ...]
    version: str
    path: str
    line: int
    build: bool = False
    optional: str = ""
    local: str = ""
    rocm: bool = False


class Unread(msgspec.Struct, frozen=True):
    """A file that may ask for more, and was not read.

    Attributes:
        path: As the project names it, relative to it where it lies within.
        reason: Why, in words that go on from the path.
    """

    path: str
    reason: str


class Project(NamedTuple):
    """What a project asks for.

    Attributes:
        asked: Its requirements, in the order of its files.
        requires_python: Its specifier of interpreters; empty where there is none.
        installable: Whether pip can install the project itself.
        unread: What was not read: requirements in it are not among these.
    """

    asked: tuple[Asked, ...]
    requires_python: str
    installable: bool
    unread: tuple[Unread, ...] = ()


def project(root: Path) -> Project:
    """Return what the project in a folder asks for: by its pyproject.toml, setup.cfg, setup.py and requirements.txt.

    Lists of requirements that these include are read too.
    """
    try:
        with Beneath(root) as tree:
            return _project(tree)
    except (FileNotFoundError, NotADirectoryError):
        return Project((), "", installable=False)


def _project(tree: Beneath) -> Project:
    asked: list[Asked] = []
    unread: dict[str, str] = {}
    document = _document(tree, unread)
    names = [name for name in _FILES if name not in unread]
    included: set[str] = set()
    for name in names:
        data = _bytes(tree, name, unread)
        if data is None and name in included:
            unread.setdefault(name, "is not there")
        if data is not None:
            asked += _of_text(tree, name, data, document, unread)
            for other in _included(name, data, unread):
                included.add(other)
                if other not in names and len(names) >= _MOST_LISTS:
                    unread.setdefault(other, f"is one of more than {_MOST_LISTS} requirements files")
                elif other not in names:
                    names.append(other)
    asked += _of_setup(tree, unread)
    table = table_in(document, "project")
    requires = table.get("requires-python", "")
    installable = any(map(tree.is_file, ("setup.py", "setup.cfg"))) or "build-system" in document or bool(table)
    unique = {(one.name, one.text, one.build): one for one in reversed(asked)}
    return Project(
        tuple(reversed(unique.values())),
        requires if isinstance(requires, str) else "",
        installable,
        tuple(Unread(path, reason) for path, reason in islice(unread.items(), _MOST_TOLD)),
    )


def _included(name: str, data: bytes, unread: dict[str, str]) -> Iterator[str]:
    """Yield the lists that a list of requirements includes, relative to the project; note those outside of it."""
    if name in _FILES[:2]:
        return
    for match in _INCLUDES.finditer(data.decode("utf-8", "replace")):
        written = match.group(1).strip("\"'")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), written))
        if _ADDRESS.match(written):
            unread.setdefault(written, "is a URL, and nothing is downloaded")
        elif path.startswith("/") or path.split("/")[0] == "..":
            unread.setdefault(path, "is outside the project")
        else:
            yield path


def _bytes(tree: Beneath, path: str, unread: dict[str, str], max_bytes: int = _MAX_BYTES) -> bytes | None:
    """Return a file's bytes; None where it is not there, and where it cannot be read, which is noted."""
    try:
        return tree.document(path, max_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except DataError as error:
        unread.setdefault(path, _reason(error))
        return None


def _reason(error: DataError) -> str:
    return error.message.rstrip(".")


def _document(tree: Beneath, unread: dict[str, str], folder: str = "") -> dict[str, Any]:
    """Return a folder's pyproject.toml; empty where it has none, and where it is refused, which is noted."""
    try:
        return project_document(tree, folder)
    except DataError as error:
        unread.setdefault(f"{folder}/pyproject.toml".lstrip("/"), _reason(error))
        return {}


def _of_text(
    tree: Beneath, name: str, data: bytes, document: dict[str, Any], unread: dict[str, str]
) -> Iterator[Asked]:
    try:
        file = TextFile(name if name in _FILES else "requirements.txt", data)  # a list that is included has any name
        optional, found = _optional(file), file.dependencies
    except DataError as error:
        unread.setdefault(name, _reason(error))
        return
    except RecursionError:
        unread.setdefault(name, "is nested too deeply")
        return
    sources = _Sources(tree, document, unread)
    for one in found:
        if one.where in {Where.COMMAND, Where.CONDA}:
            continue
        text = shown(file.text[one.start : one.end]).split(" #", 1)[0].strip()
        text, local = sources.of(one.name, text) if file.kind is Kind.TOML else (text, "")
        line = file.lines.number(one.start) + 1
        build = one.where is Where.BUILD
        rocm = not build and serves(file, one) is Serves.ROCM
        group = optional.get(one.start, "")
        yield Asked(one.name, text, one.extras, one.version, name, line, build, group, local, rocm)


def _optional(file: TextFile) -> dict[int, str]:
    """Return the extra or group that a requirement belongs to, by its place; none where it always is wanted."""
    found = {
        row.start: row.key for row in reversed(file.rows) if row.section.startswith("options.extras_require")
    }  # the first at a place is the one that counts
    for value in reversed(file.values):
        if value.keys[:1] == ("dependency-groups",) or value.keys[:2] == ("project", "optional-dependencies"):
            found[value.start] = value.keys[-1]
    return found


class _Sources:
    """Where uv gets a project's requirements from: pip does not read uv's table."""

    def __init__(self, tree: Beneath, document: dict[str, Any], unread: dict[str, str]) -> None:
        self._tree = tree
        self._unread = unread
        self._workspace = table_in(document, "tool", "uv", "workspace")
        tables = reversed(table_in(document, "tool", "uv", "sources").items())
        self._tables = {canonical(name): table for name, table in tables}

    def of(self, name: str, text: str) -> tuple[str, str]:
        """Return a requirement with where uv gets it from, and the folder that it is."""
        table = self._tables.get(name)
        if not isinstance(table, dict):
            return text, ""
        if isinstance(table.get("git"), str):
            revision = next((table[key] for key in ("rev", "tag", "branch") if isinstance(table.get(key), str)), "")
            folder = f"#subdirectory={table['subdirectory']}" if isinstance(table.get("subdirectory"), str) else ""
            return f"{name} @ git+{table['git']}{'@' + revision if revision else ''}{folder}", ""
        if isinstance(table.get("url"), str):
            return f"{name} @ {table['url']}", ""
        if isinstance(table.get("path"), str):
            return text, table["path"]
        return text, self._members.get(name, "") if table.get("workspace") else ""

    @cached_property
    def _members(self) -> dict[str, str]:
        """Return the folders of the members of uv's workspace by their names; only what lies within the project."""
        patterns = self._workspace.get("members", [])
        found: dict[str, str] = {}
        for pattern in patterns[:_MOST_PATTERNS] if isinstance(patterns, list) else []:
            parts = PurePosixPath(str(pattern)).parts
            if not parts or parts[0] == "/" or ".." in parts or parts.count("**") > 1:
                continue
            for folder in sorted(islice(_folders(self._tree, parts), _MOST_FOLDERS)):
                name = canonical(str(table_in(_document(self._tree, self._unread, folder), "project").get("name", "")))
                found.setdefault(name, folder)
        return found


def _folders(tree: Beneath, parts: Sequence[str], at: str = "") -> Iterator[str]:
    """Yield the folders below one that a pattern means, which is given in parts; links are none."""
    if not parts:
        if at:
            yield at
        return
    here, *rest = parts
    if here == "**":
        yield from _folders(tree, rest, at)
    try:
        with tree.listed(at) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except (OSError, UnsafePathError):
        return
    for name in names:
        below = f"{at}/{name}" if at else name
        if here == "**":
            yield from _folders(tree, parts, below)
        elif fnmatchcase(name, here):
            yield from _folders(tree, rest, below)


def _of_setup(tree: Beneath, unread: dict[str, str]) -> Iterator[Asked]:
    """Yield what setup.py says in so many words; what it computes is not known."""
    data = _bytes(tree, "setup.py", unread, PYTHON_BYTES)
    try:
        module = ast.parse(data or b"")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = why_not((data or b"").decode("latin-1"), error).rstrip(".")
        unread.setdefault("setup.py", f"cannot be parsed: {why}")
        return
    lists = {
        target.id: node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(module):
        if not isinstance(node, ast.keyword) or node.arg not in {"install_requires", "setup_requires"}:
            continue
        value = lists.get(node.value.id, node.value) if isinstance(node.value, ast.Name) else node.value
        for item in value.elts if isinstance(value, ast.List | ast.Tuple) else []:
            if isinstance(item, ast.Constant) and isinstance(item.value, str):
                known = parsed(item.value)
                if known is not None:
                    build = node.arg == "setup_requires"
                    yield Asked(known[0], item.value.strip(), known[1], known[2], "setup.py", item.lineno, build)
