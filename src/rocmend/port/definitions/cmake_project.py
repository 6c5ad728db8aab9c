"""A file of CMake and those that it adds and includes, as far as they define macros.

The files are followed as CMake does from the outermost folder on: conditions, loops over known lists, functions, files
that are included and folders that are added. Conditions are read as a plain build for ROCm decides them: options have
their defaults, a variable that nothing sets is false. What depends on a condition that is not known, or on a command
that is not followed, may be defined or not, and is said so with its line.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_right
from collections import ChainMap
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec

from rocmend.core.documents import MALFORMED
from rocmend.port.build.cmake import Command, commands, unread_from
from rocmend.port.definitions.cmake_commands import ROOT, Commands
from rocmend.port.definitions.cmake_conditions import both, either, holds, names_rocm, negated
from rocmend.port.definitions.cmake_targets import Folder, Target, reached, wants
from rocmend.port.definitions.cmake_words import Word
from rocmend.port.definitions.macros import Definitions, Unknown
from rocmend.port.nesting import NestingError

__all__ = ["FILE", "Project", "Read", "parsed"]

FILE = "CMakeLists.txt"
_PRESETS = ("CMakePresets.json", "CMakeUserPresets.json")
_OPENING = {"function": "endfunction", "macro": "endmacro", "foreach": "endforeach", "while": "endwhile"}
_CLOSING = set(_OPENING.values())
_DEEPEST = 64
"""Files, functions and loops within each other."""
_SHOWN = 60

Read = Callable[[str], bytes | None]
"""Returns a file's bytes; None where there is none, or it cannot be read."""


@dataclass
class _Chain:
    """An ``if`` with its branches: whether this one is taken, whether one before it was, how many doubts there were."""

    holds: bool | None
    before: bool | None
    depth: int


class _File:
    """A file: its commands, and where the block ends that each of them opens."""

    def __init__(self, path: str, data: bytes) -> None:
        self.path = path
        text = _text(data)
        self._starts = [at for at, sign in enumerate(text) if sign == "\n"]
        self.commands = parsed(data)
        last = unread_from(text, self.commands)
        self.unread = f"{path}, line {self.line(last)} and below: that is no CMake" if last is not None else ""
        self.ends: dict[int, int] = {}
        opened: list[int] = []
        for number, command in enumerate(self.commands):
            if command.name in _OPENING:
                opened.append(number)
            elif command.name in _CLOSING and opened:
                self.ends[opened.pop()] = number
        self.ends.update(dict.fromkeys(opened, len(self.commands)))

    def line(self, at: int) -> int:
        return bisect_right(self._starts, at - 1) + 1

    def place(self, command: Command) -> str:
        words = " ".join(command.values())
        shown = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
        return f"{self.path}, line {self.line(command.start)}: {command.name}({shown})"


class _Function(NamedTuple):
    file: _File
    start: int
    end: int
    parameters: tuple[str, ...]
    is_macro: bool


class Project(Commands):
    """What a file of CMake, and those that it adds and includes, define.

    Args:
        read: Returns files.
        language: Of the sources that are asked for: ``HIP`` or ``CXX``.
        path: The file.
        above: The project of a folder above it, whose settings hold here too.
        whole: The file's functions are read as if they were called, for other files may call them.
    """

    def __init__(
        self, read: Read, language: str, path: str, above: Project | None = None, *, whole: bool = False
    ) -> None:
        targets: MutableMapping[str, Target] = {} if above is None else ChainMap({}, above.targets)
        super().__init__(language, targets)
        self.folders: dict[str, Folder] = {}
        self._read = read
        self.functions: dict[str, _Function] = {} if above is None else dict(above.functions)
        self._whole = whole
        self._bases = [0]
        self._depth = 0
        parent = above.folder_of(path) if above is not None else None
        if above is not None:
            self.chosen, self.names, self.of_sources = above.chosen, dict(above.names), list(above.of_sources)
            self.everywhere = above.everywhere
        else:
            root = posixpath.join(ROOT, posixpath.dirname(path)).rstrip("/")
            self.frames = [{"USE_ROCM": [Word("ON")], "CMAKE_HIP_COMPILER": [Word("hipcc")]}]
            for name in ("CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR"):
                self.frames[0][name] = [Word(root)]
            self._presets(posixpath.dirname(path))
        self._enter(path, parent)
        if self.exhausted:
            self.everywhere |= Definitions({}, unknown=(Unknown("", f"{path}: the project's CMake is too large"),))

    # -- what it comes to ----------------------------------------------------------------------------------------------

    def of_unit(self, unit: str) -> Iterator[Definitions]:
        """Yield what each target defines that lists a unit."""
        for name, target in list(self.targets.items()):
            if target.folder is not None and target.lists(unit):
                made = self._made_of(target.folder) | target.own
                for other in reached(target, self.targets, self.names):
                    made |= other.given
                yield (made | self._of_source(unit))._replace(build=f"{target.folder.path}, target {name}")

    def of_folder_of(self, unit: str) -> Definitions:
        """Return what is defined for a source that no target lists."""
        folder = self.folder_of(unit)
        if folder is None:
            return self.everywhere
        made = self._made_of(folder) | self._of_source(unit)
        for target in self.targets.values():
            here = posixpath.dirname(target.folder.path) if target.folder is not None else ""
            if target.untold and (not here or unit.startswith(f"{here}/")):  # it may be one of them
                made |= target.own.doubted(target.untold)
                for other in reached(target, self.targets, self.names):
                    made |= other.given.doubted(target.untold)
        return made

    def folder_of(self, path: str) -> Folder | None:
        """Return the nearest folder that holds a path."""
        paths = ((one / FILE).as_posix() for one in PurePosixPath(path).parents)
        return next((self.folders[one] for one in paths if one in self.folders), None)

    def _made_of(self, folder: Folder) -> Definitions:
        return folder.made | self.flags(folder) | self.everywhere

    def _of_source(self, unit: str) -> Definitions:
        made = Definitions({})
        for pattern, one in self.of_sources:
            if wants((pattern,), unit):
                made |= one
        return made

    # -- files ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _known(self) -> dict[str, _File | None]:
        return {}

    def _file(self, path: str) -> _File | None:
        if path not in self._known:
            data = self._read(path)
            self._known[path] = _File(path, data) if data is not None else None
        return self._known[path]

    def _enter(self, path: str, parent: Folder | None) -> None:
        """Read the file of a folder."""
        file = self._file(path)
        if file is None or path in self.folders:
            return
        variables = {**(parent.variables if parent is not None else {}), **self.frames[-1]}
        variables["CMAKE_CURRENT_SOURCE_DIR"] = [Word(posixpath.join(ROOT, posixpath.dirname(path)).rstrip("/"))]
        outer, frames = self.folder, self.frames
        self.folder = self.folders[path] = Folder(path, variables, within=tuple(self.doubts), parent=parent)
        if parent is not None:
            self.folder.made, self.folder.options = parent.made, parent.options
        self.frames = [*frames, variables]
        self._execute(file)
        for function in self.functions.values() if self._whole else ():
            self._within(function.file, function.start, function.end)
        self.folder, self.frames = outer, frames

    def _execute(self, file: _File) -> None:
        """Read a file in the present folder."""
        if file.unread:
            self.folder.made |= Definitions({}, unknown=(Unknown("", file.unread),))
        self.chosen |= any(map(_chooses, file.commands))
        before = self.variables.get("CMAKE_CURRENT_LIST_DIR")
        here = [Word(posixpath.join(ROOT, posixpath.dirname(file.path)).rstrip("/"))]
        self.variables["CMAKE_CURRENT_LIST_DIR"] = here
        self._within(file, 0, len(file.commands))
        if before is not None:
            self.variables["CMAKE_CURRENT_LIST_DIR"] = before

    def _within(self, file: _File, start: int, end: int) -> None:
        """Execute commands that a ``return`` ends."""
        depth = len(self.doubts)
        self._bases.append(depth)
        self._block(file, start, end)
        self._bases.pop()
        del self.doubts[depth:]

    def _include(self, name: str) -> None:
        here = self.variables["CMAKE_CURRENT_SOURCE_DIR"][0].text
        is_path = "." in name or "/" in name
        places = [here, *(word.text for word in self.variables.get("CMAKE_MODULE_PATH", ()) if not is_path)]
        for place in places:
            path = posixpath.normpath(posixpath.join(place, name if is_path else f"{name}.cmake"))
            file = self._file(path.removeprefix(f"{ROOT}/")) if path.startswith(f"{ROOT}/") else None
            if file is not None:
                self._execute(file)
                return
        if is_path or "$" in name:
            self.untold()

    def _presets(self, folder: str) -> None:
        """Note the variables that a preset may set."""
        for name in _PRESETS:
            path = posixpath.join(folder, name)
            data = self._read(path)
            if data is None:
                continue
            try:
                presets = msgspec.json.decode(data, type=_Presets)
            except MALFORMED:
                self.everywhere |= Definitions({}, unknown=(Unknown("", f"{path} could not be read"),))
                continue
            if presets.include:
                self.everywhere |= Definitions({}, unknown=(Unknown("", f"{path}: the presets that it includes"),))
            for preset in presets.configurePresets:
                for variable, given in (preset.cacheVariables or {}).items():
                    value = given.get("value") if isinstance(given, dict) else given
                    doubt = self.doubt(f"{path}: a preset sets {variable}")
                    if variable != "USE_ROCM":
                        text = str(value).upper() if isinstance(value, bool) else str(value or "")
                        self.frames[0].setdefault(variable, []).append(Word(text, (doubt,)))

    # -- blocks --------------------------------------------------------------------------------------------------------

    def _block(self, file: _File, start: int, end: int) -> bool | None:
        """Execute commands; return whether a ``return`` or ``break`` ended them, None where one may have."""
        if self._depth >= _DEEPEST:
            self.untold()
            return False
        self._depth += 1
        chains: list[_Chain] = []
        base = len(self.doubts)
        left: bool | None = False
        at = start
        while at < end and not self.exhausted:
            command = file.commands[at]
            name = command.name
            live = all(chain.holds is not False for chain in chains)
            self.place = file.place(command)
            ended: bool | None = False
            if name in _OPENING:
                if live:
                    ended = self._open(file, command, at)
                at = file.ends[at]
            elif name in {"if", "elseif", "else", "endif"}:
                self._turn(chains, command, live=live)
            elif live and name in {"return", "break", "continue"}:
                ended = True if len(self.doubts) <= (self._bases[-1] if name == "return" else base) else None
            elif live:
                self._do(command)
            if ended:
                left = True
                break
            if ended is None:
                left = None
                self.doubts.insert(base, self.doubt())
                for chain in chains:
                    chain.depth += 1
            at += 1
        del self.doubts[base:]
        self._depth -= 1
        return left

    def _turn(self, chains: list[_Chain], command: Command, *, live: bool) -> None:
        if command.name == "if":
            value = holds(command.arguments, self.variables, self.targets) if live else False
            chains.append(_Chain(value, value, len(self.doubts)))
        elif not chains:
            return
        else:
            chain = chains[-1]
            del self.doubts[chain.depth :]
            if command.name == "endif":
                chains.pop()
                return
            outer = all(one.holds is not False for one in chains[:-1])
            plain = command.name == "else" or not outer
            asked = True if plain else holds(command.arguments, self.variables, self.targets)
            chain.holds = both(negated(chain.before), asked) if outer else False
            chain.before = either(chain.before, chain.holds)
        if chains[-1].holds is None:
            self.doubts.append(self.doubt())

    def _open(self, file: _File, command: Command, at: int) -> bool | None:
        """Execute a loop, or note a function; return whether a ``return`` ended it."""
        start, end = at + 1, file.ends[at]
        if command.name in {"function", "macro"}:
            first, *rest = command.values() or ("",)
            self.functions[first.lower()] = _Function(file, start, end, tuple(rest), command.name == "macro")
            return False
        values = self._values(command) if command.name == "foreach" else None
        name = next(iter(command.values()), "")
        if values is not None:
            for value in values:
                self.set(name, [value])
                if self.exhausted:
                    break
                self._block(file, start, end)
            return self._returns(file, start, end)
        self.doubts.append(self.doubt())
        if command.name == "foreach":
            self.set(name, [Word(f"${{{name}}}")])
        self._block(file, start, end)
        self.doubts.pop()
        return self._returns(file, start, end)

    def _returns(self, file: _File, start: int, end: int) -> bool | None:
        """Return None where a loop may end the file."""
        return None if any(one.name == "return" for one in file.commands[start:end]) else False

    def _values(self, command: Command) -> list[Word] | None:
        """Return what a loop goes over; None where that is not known."""
        words = self.words(command)[1:]
        texts = [word.text for word in words]
        if texts[:1] == ["RANGE"]:
            if not all(one.isdecimal() for one in texts[1:]) or not 1 < len(texts) <= 4:
                return None
            first, last, step = ([0, int(texts[1]), 1] if len(texts) == 2 else [*map(int, texts[1:]), 1])[:3]
            return [Word(str(number)) for number in range(first, last + 1, max(1, step))[:1000]]
        if texts[:1] == ["IN"]:
            found, kind = [], ""
            for word in words[1:]:
                if word.text in {"LISTS", "ITEMS"}:
                    kind = word.text
                elif kind == "LISTS":
                    if word.text not in self.variables:
                        return None
                    found += self.variables[word.text]
                elif kind == "ITEMS":
                    found.append(word)
                else:
                    return None
            words = found
        return None if any("$" in word.text for word in words) else words

    def _do(self, command: Command) -> None:
        function = self.functions.get(command.name)
        if function is not None:
            self._call(function, command)
        elif command.name == "include":
            for word in self.words(command)[:1]:
                self._include(word.text)
        elif command.name == "add_subdirectory":
            for word in self.words(command)[:1]:
                here = self.variables["CMAKE_CURRENT_SOURCE_DIR"][0].text
                path = posixpath.normpath(posixpath.join(here, word.text, FILE))
                if path.startswith(f"{ROOT}/"):
                    self._enter(path.removeprefix(f"{ROOT}/"), self.folder)
        else:
            self.run(command)

    def _call(self, function: _Function, command: Command) -> None:
        given = self.words(command)
        bound = dict(zip(function.parameters, ([word] for word in given), strict=False))
        bound |= {"ARGN": given[len(function.parameters) :], "ARGV": given, "ARGC": [Word(str(len(given)))]}
        if function.is_macro:
            before = {name: self.variables[name] for name in bound if name in self.variables}
            self.variables.update(bound)
            self._within(function.file, function.start, function.end)
            for name in bound:
                self.variables.pop(name, None)
            self.variables.update(before)
            return
        self.frames.append({**self.variables, **bound})
        self._within(function.file, function.start, function.end)
        self.frames.pop()


class _Preset(msgspec.Struct):
    cacheVariables: dict[str, object] | None = None  # noqa: N815  as CMake has it


class _Presets(msgspec.Struct):
    configurePresets: list[_Preset] = []  # noqa: N815  as CMake has it
    include: list[str] = []


def _text(data: bytes) -> str:
    return data.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")


def parsed(data: bytes) -> tuple[Command, ...]:
    """Return the commands of a file."""
    try:
        return commands(_text(data))
    except NestingError:
        return ()


def _chooses(command: Command) -> bool:
    """Tell whether a command lets a build choose ROCm: an option or a further branch of the project's own."""
    words = command.values()
    if command.name in {"option", "cmake_dependent_option"}:
        return bool(words) and bool(names_rocm(words[0]))
    return command.name == "elseif" and any(names_rocm(word) for word in words)
