"""Finding and parsing knowledge entries."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from rocmend.core.documents import parse_toml, read_document
from rocmend.core.errors import DataError
from rocmend.core.records import Remedy, Source
from rocmend.core.suggest import unknown
from rocmend.kb.action import Action, resolved
from rocmend.kb.compiled import Compiled, read_compiled, stamps_of, write_compiled
from rocmend.kb.entry import Entry, Install, Status
from rocmend.kb.indexes import TABLE, Index, UnknownIndexError, fill_indexes, read_indexes

ENTRIES = Path(__file__).with_name("entries")
ACTIONS = Path(__file__).with_name("actions")
EXTRA_VARIABLE = "ROCMEND_KB"
"""Environment variable that names a directory of further entries, laid out as ours."""
MAX_FILE_BYTES = 256 * 1024

_FENCE = "+++\n"
_SOURCE_FIELDS = frozenset(Source.__struct_fields__)
_REMEDY_FIELDS = frozenset(Remedy.__struct_fields__)
_PATH_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(\d+|\.\.\.)\]")


class LoadProblem(msgspec.Struct, frozen=True):
    """An entry that could not be loaded; the others still are.

    Attributes:
        path: The file.
        line: Where in it, from 1; 0 where the whole file is meant.
        reason: What is wrong.
    """

    path: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.reason}" if self.line else f"{self.path}: {self.reason}"


class EntryFormatError(ValueError):
    """A file that is no entry.

    Args:
        line: Where, from 1; 0 where the whole file is meant.
        reason: What is wrong.
    """

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        self.reason = reason
        super().__init__(reason)


class Knowledge(msgspec.Struct, frozen=True):
    """Every entry that could be loaded.

    Attributes:
        entries: By id, in the order of ids; their remedies hold what they take from actions.
        problems: Files that could not be loaded, and duplicate ids.
        paths: Each entry's file, by id.
        actions: What several entries ask for, by id.
        indexes: Where packages are installed from, by id.
    """

    entries: Mapping[str, Entry]
    problems: tuple[LoadProblem, ...] = ()
    paths: Mapping[str, str] = {}
    actions: Mapping[str, Action] = {}
    indexes: Mapping[str, Index] = {}

    def current(self) -> Knowledge:
        """Return it without the archived entries."""
        kept = {key: entry for key, entry in self.entries.items() if entry.status is not Status.ARCHIVED}
        return msgspec.structs.replace(self, entries=kept)

    def get(self, entry_id: str) -> Entry:
        """Return the entry with this id.

        Raises:
            UsageError: There is none; the nearest ids are named.
        """
        entry = self.entries.get(entry_id)
        if entry is not None:
            return entry
        raise unknown("knowledge", "entry", entry_id, self.entries, listed="rocmend kb search WORDS")


def load_entries(directory: Path | None = None, *, builtin: bool = True) -> Knowledge:
    """Load the entries that come with rocmend and those of a further directory.

    Args:
        directory: Laid out as ``<topic>/<id>.md``; without it, the one that ``ROCMEND_KB`` names, if any.
        builtin: Load the entries that come with rocmend, too.
    """
    if directory is None and os.environ.get(EXTRA_VARIABLE):
        directory = Path(os.environ[EXTRA_VARIABLE])
    problems: list[LoadProblem] = []
    if directory is not None and not directory.is_dir():
        problems.append(
            LoadProblem(str(directory), 0, f"not a directory; it is set by {EXTRA_VARIABLE} or the argument")
        )
    collecting = gc.isenabled()
    gc.disable()  # thousands of small objects that all live: a collection finds nothing and takes a third of the time
    try:
        loaded, actions, indexes = _builtin(problems) if builtin else ({}, {}, _indexes(problems))
        if directory is not None:
            loaded |= _parse_all(_files(directory), problems, indexes)
            actions |= _actions(directory / "actions", problems, indexes)
    finally:
        if collecting:
            gc.enable()
    return _gathered(loaded, actions, problems, indexes)


_Loaded = tuple[dict[str, Entry], dict[str, Action], dict[str, Index]]


def _indexes(problems: list[LoadProblem]) -> dict[str, Index]:
    """Return the table of indexes; where it cannot be read, that is a problem and the table is empty."""
    try:
        return read_indexes()
    except OSError as error:
        problems.append(LoadProblem(str(TABLE), 0, error.strerror or str(error)))
    except (DataError, UnicodeDecodeError, msgspec.ValidationError, RecursionError) as error:
        problems.append(LoadProblem(str(TABLE), 0, str(error)))
    return {}


def _builtin(problems: list[LoadProblem]) -> _Loaded:
    """Return what comes with rocmend, entries by path: as kept from the last time where no file has changed."""
    paths = _files(ENTRIES)

    def parsed() -> _Loaded:
        indexes = _indexes(problems)
        return _parse_all(paths, problems, indexes), _actions(ACTIONS, problems, indexes), indexes

    try:
        stamps = stamps_of([*paths, *_action_files(ACTIONS), str(TABLE)])
    except OSError:  # a file that went between listing and looking, or a dangling link: parsing says which
        return parsed()
    kept = read_compiled(stamps)
    if kept is not None:
        return kept.entries, kept.actions, kept.indexes
    before = len(problems)
    made = parsed()
    if len(problems) == before:
        write_compiled(Compiled(stamps, *made))
    return made


def _gathered(
    loaded: dict[str, Entry],
    actions: dict[str, Action],
    problems: list[LoadProblem],
    indexes: Mapping[str, Index],
) -> Knowledge:
    """Return entries by id; the second of two with the same id is a problem."""
    entries: dict[str, Entry] = {}
    paths: dict[str, str] = {}
    for path, entry in loaded.items():
        if entry.id in entries:
            problems.append(LoadProblem(path, 2, f"the id {entry.id!r} is taken by {paths[entry.id]}"))
            continue
        entries[entry.id] = _with_actions(entry, actions)
        paths[entry.id] = path
    return Knowledge({key: entries[key] for key in sorted(entries)}, tuple(problems), paths, actions, indexes)


def _with_actions(entry: Entry, actions: dict[str, Action]) -> Entry:
    if not any(remedy.action for remedy in entry.remedy):
        return entry
    return msgspec.structs.replace(entry, remedy=tuple(resolved(remedy, actions) for remedy in entry.remedy))


def _action_files(directory: Path) -> list[str]:
    return [f"{directory}/{name}" for name in _names(str(directory)) if name.endswith(".toml")]


def _actions(directory: Path, problems: list[LoadProblem], indexes: Mapping[str, Index]) -> dict[str, Action]:
    """Return the actions of a folder by id; what cannot be read is added to the problems."""
    actions: dict[str, Action] = {}
    for path in _action_files(directory):
        name = path.rpartition("/")[2].removesuffix(".toml")
        try:
            text = fill_indexes(read_document(Path(path), max_bytes=MAX_FILE_BYTES).decode(), indexes)
            raw = parse_toml(text, "action")
            actions[name] = msgspec.convert({**raw, "id": name}, Action, strict=True)
        except OSError as error:
            problems.append(LoadProblem(path, 0, error.strerror or str(error)))
        except (DataError, UnicodeDecodeError, UnknownIndexError, msgspec.ValidationError, RecursionError) as error:
            problems.append(LoadProblem(path, 0, str(error)))
    return actions


def _files(directory: Path) -> list[str]:
    base = str(directory)
    found: list[str] = []
    for topic in _names(base):
        folder = f"{base}/{topic}"
        found += [f"{folder}/{name}" for name in _names(folder) if name.endswith(".md")]
    return found


def _names(directory: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(directory) if not name.startswith("."))  # noqa: PTH208  pathlib doubles the time
    except OSError:
        return []


def _parse_all(paths: list[str], problems: list[LoadProblem], indexes: Mapping[str, Index]) -> dict[str, Entry]:
    """Return entries by path; what cannot be parsed is added to the problems."""
    loaded: dict[str, Entry] = {}
    for path in paths:
        data = b""
        try:
            data = _read(path)
            loaded[path] = parse_entry(data.decode(), topic=path.split("/")[-2], indexes=indexes)
        except OSError as error:
            problems.append(LoadProblem(path, 0, error.strerror or str(error)))
        except UnicodeDecodeError as error:
            problems.append(LoadProblem(path, data.count(b"\n", 0, error.start) + 1, "not valid UTF-8"))
        except EntryFormatError as error:
            problems.append(LoadProblem(path, error.line, error.reason))
    return loaded


def _read(path: str) -> bytes:
    try:
        return read_document(Path(path), max_bytes=MAX_FILE_BYTES)
    except DataError as error:
        raise EntryFormatError(0, error.message.removeprefix("is ").removesuffix(".")) from None


def parse_entry(text: str, *, topic: str = "", indexes: Mapping[str, Index] | None = None) -> Entry:
    """Return the entry that a file's text holds.

    Args:
        text: TOML front matter between ``+++`` lines, then Markdown.
        topic: The folder's name.
        indexes: What ``{index:ID}`` and the indexes of ways to install are filled in from.

    Raises:
        EntryFormatError: It holds none.
    """
    indexes = indexes or {}
    text = text.replace("\r\n", "\n")
    try:
        text = fill_indexes(text, indexes)
    except UnknownIndexError as error:
        raise EntryFormatError(text.count("\n", 0, error.position) + 1, str(error)) from None
    if not text.startswith(_FENCE):
        raise EntryFormatError(1, "the first line is not +++")
    end = text.find("\n" + _FENCE, len(_FENCE) - 1)
    if end < 0:
        raise EntryFormatError(1, "the front matter has no closing +++ line")
    front = text[len(_FENCE) : end + 1]
    try:
        raw = parse_toml(front, "entry")
    except DataError as error:
        place = re.search(r"\bline (\d+)\b", error.message)
        line = int(place[1]) + 1 if place else front.count("\n") + 1
        raise EntryFormatError(line, error.message.removeprefix("is ").removesuffix(".")) from None
    for name in ("topic", "body"):
        if name in raw:
            raise EntryFormatError(_line_of(front, (name,)), f"{name!r} is not written: it comes from the file")
    raw["topic"] = topic
    raw["body"] = text[end + 1 + len(_FENCE) :].strip()
    try:
        entry = msgspec.convert(raw, Entry, strict=True)
    except (msgspec.ValidationError, RecursionError) as error:
        message, _, where = str(error).partition(" - at `$")
        steps = tuple(match[1] or match[2] for match in _PATH_STEP.finditer(where))
        if "unknown field" in message:
            steps = (*steps, message.rpartition("unknown field ")[2].strip("`"))
        shown = f"{where.rstrip('`').lstrip('.')}: " if where else ""
        raise EntryFormatError(_line_of(front, steps), f"{shown}{message}") from None
    _check_fields(front, raw, "source", _SOURCE_FIELDS)
    _check_fields(front, raw, "remedy", _REMEDY_FIELDS)
    if not any(install.index for install in entry.install):
        return entry
    installs = tuple(_with_index(install, number, front, indexes) for number, install in enumerate(entry.install))
    return msgspec.structs.replace(entry, install=installs)


def _with_index(install: Install, number: int, front: str, indexes: Mapping[str, Index]) -> Install:
    """Return a way to install with what it takes from its index: the address, and the targets where it names none."""
    if not install.index:
        return install
    row = indexes.get(install.index)
    if row is None:
        line = _line_of(front, ("install", str(number), "index"))
        raise EntryFormatError(line, f"no index has the id {install.index!r}; known: {', '.join(indexes)}")
    command = install.command.replace("{index}", row.url)
    return msgspec.structs.replace(install, command=command, gfx=install.gfx or row.targets)


def _check_fields(front: str, raw: dict[str, Any], table: str, known: frozenset[str]) -> None:
    """Refuse unknown fields in records of the core, which are read leniently elsewhere."""
    for index, item in enumerate(raw.get(table, ())):
        for name in item:
            if name not in known:
                line = _line_of(front, (table, str(index), name))
                raise EntryFormatError(line, f"{table}[{index}]: unknown field `{name}`")


def _line_of(front: str, steps: tuple[str, ...]) -> int:
    """Return the line of the file that a path into the front matter is written on, as near as can be told."""
    lines = front.split("\n")
    start = 0
    table = steps[0] if steps else ""
    index = int(steps[1]) if len(steps) > 1 and steps[1].isdigit() else 0
    heads = [number for number, line in enumerate(lines) if re.match(rf"\[+\s*{re.escape(table)}\s*\]+", line)]
    if table and heads:
        start = heads[min(index, len(heads) - 1)]
    for name in reversed([step for step in steps if not step.isdigit() and step != "..."]):
        for number in range(start, len(lines)):
            if number > start and lines[number].startswith("[") and heads:
                break
            if re.match(rf"\s*\"?{re.escape(name)}\"?\s*[=.]", lines[number]):
                return number + 2
    return start + 2
