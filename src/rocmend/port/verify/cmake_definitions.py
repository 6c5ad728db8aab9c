"""What CMake files define for the compiler on ROCm: of a folder and below, and of each target that lists a source.

Conditions are read as a plain build for ROCm decides them: options have their defaults, a variable that nothing sets is
false. What a comparison or a package that was searched for decides is left out, and so are functions and macros.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from rocmend.core.beneath import Beneath
from rocmend.core.errors import DataError
from rocmend.port.build.cmake import Command, commands
from rocmend.port.nesting import NestingError
from rocmend.port.verify.definitions import MACRO, Definitions, listed
from rocmend.port.verify.units import build_files

__all__ = ["of_unit"]

_FILE = "CMakeLists.txt"
_MAX_BYTES = 4 << 20
_ADDS = re.compile(
    r"(?:cuda_|hip_|pybind11_|python_|nanobind_|torch_)?add_(?:executable|library|module)|target_sources"
)
_OPTION = re.compile(rf"-([DU])[ ]?({MACRO})(?:=([\w.+-]*))?")
_PLAIN = re.compile(rf"(?:-D)?({MACRO})(?:=([\w.+-]*))?")
_OF_LANGUAGE = re.compile(r"\$<\$<COMPILE_LANG(?:UAGE|_AND_ID):([A-Z,]+)[^>]*>:([^<>]*)>")
_VARIABLE = re.compile(r"\$\{([\w.+/-]+)\}")
_SCOPES = {"PUBLIC", "PRIVATE", "INTERFACE", "BEFORE", "AFTER"}
_ROCM = re.compile(r"(?:\w+_)?(?:ROCM|HIP|AMD|AMDGPU)(?:_FOUND|_ENABLED|_PLATFORM)?", re.IGNORECASE)
_NVIDIA = re.compile(r"(?:\w+_)?(?:CUDA\w*|NVIDIA|NVCC)(?:_\w+)?", re.IGNORECASE)
_DENIES = re.compile(r"(?:^|_)(?:NO|NOT|DISABLE|WITHOUT|SKIP)(?:_|$)", re.IGNORECASE)
_TRUE = {"1", "ON", "YES", "TRUE", "Y"}
_FALSE = {"0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND", ""}
_SYSTEM = {"UNIX": True, "LINUX": True, "WIN32": False, "APPLE": False, "MSVC": False, "MINGW": False}
_ASKS = {"DEFINED", "TARGET", "EXISTS", "COMMAND", "POLICY", "TEST", "IS_DIRECTORY", "IS_ABSOLUTE"}
_MOST_WORDS = 100_000
"""Of all variables of a build, when they are put in for their names."""
_DEEPEST = 8


def of_unit(tree: Beneath, unit: str) -> tuple[list[Definitions], Definitions]:
    """Return what each target defines that lists a unit, and what is defined for the unit's folder.

    Args:
        tree: The project's folder.
        unit: The unit's path.
    """
    above = [(folder / _FILE).as_posix() for folder in PurePosixPath(unit).parents]
    others = (path for path in build_files(tree) if PurePosixPath(path).name == _FILE)
    ways: dict[str, Definitions] = {}
    for path in dict.fromkeys((*above, *others)):
        build = _build(tree, path)
        for target, made in build.of(unit) if build is not None else ():
            ways[target] = ways.get(target, Definitions({})) | made
    own = next(filter(None, (_build(tree, path) for path in above)), None)
    return list(ways.values()), own.folder if own is not None else Definitions({})


def _build(tree: Beneath, path: str) -> _Build | None:
    """Return what a file and those in the folders above it say; None where there is no such file."""
    if not tree.is_file(path):
        return None
    chain = []
    for folder in reversed(PurePosixPath(path).parents):
        one = (folder / _FILE).as_posix()
        if tree.is_file(one):
            with contextlib.suppress(OSError, DataError):
                chain.append((one, tree.document(one, _MAX_BYTES)))
    return _read(tuple(chain))


@lru_cache(maxsize=32)
def _read(chain: tuple[tuple[str, bytes], ...]) -> _Build | None:
    build = _Build(chain[0][0]) if chain else None
    for path, data in chain:
        with contextlib.suppress(NestingError):
            build.enter(path, commands(data.decode(errors="replace")))  # type: ignore[union-attr]  # there is one
    return build


class _Build:
    """What a file of CMake and those of the folders above it say.

    Attributes:
        folder: What is defined for all sources of the folder.
    """

    def __init__(self, first: str) -> None:
        self.folder = Definitions({})
        self._root = posixpath.dirname(first)
        self._path = first
        self._variables: dict[str, list[str]] = {}
        self._options: dict[str, bool | None] = {}
        self._words = 0
        self._sources: dict[str, list[str]] = {}
        self._own: dict[str, Definitions] = {}
        self._given: dict[str, Definitions] = {}
        self._linked: dict[str, list[str]] = {}

    def of(self, unit: str) -> Iterator[tuple[str, Definitions]]:
        """Yield the targets that list a unit, each with what it defines."""
        for target, sources in self._sources.items():
            if listed(unit, tuple(sources)):
                made = self.folder | self._own.get(target, Definitions({}))
                for other in self._reached(target):
                    made |= self._given.get(other, Definitions({}))
                yield target, made._replace(build=f"{self._path}, target {target}")

    def _reached(self, target: str) -> Iterator[str]:
        """Yield the targets that one is linked with, however far away."""
        seen = {target}
        waiting = list(self._linked.get(target, ()))
        while waiting:
            one = waiting.pop()
            if one not in seen:
                seen.add(one)
                yield one
                waiting += self._linked.get(one, ())

    def enter(self, path: str, all_commands: Sequence[Command]) -> None:
        """Read the file of a folder, after those above it. Targets are those of the last file."""
        here = posixpath.dirname(path)
        self._path = path
        self._sources = {}
        for name in ("CMAKE_SOURCE_DIR", "PROJECT_SOURCE_DIR"):
            self._variables.setdefault(name, [self._root or "."])
        self._variables["CMAKE_CURRENT_SOURCE_DIR"] = self._variables["CMAKE_CURRENT_LIST_DIR"] = [here or "."]
        chains: list[
            tuple[bool | None, bool | None]
        ] = []  # whether this branch is taken, and whether one before it was
        skipped = 0
        for command in all_commands:
            name = command.name
            if name in {"function", "macro"}:
                skipped += 1
            elif name in {"endfunction", "endmacro"}:
                skipped = max(0, skipped - 1)
            elif skipped:
                continue
            elif name == "if":
                holds = self._holds(command.values())
                chains.append((holds, holds))
            elif name in {"elseif", "else"} and chains:
                before = chains[-1][1]
                holds = _both(_not(before), True if name == "else" else self._holds(command.values()))
                chains[-1] = (holds, _either(before, holds))
            elif name == "endif" and chains:
                chains.pop()
            elif all(holds for holds, _ in chains):
                self._run(name, command)
            elif name in {"set", "option"} and command.arguments and all(holds is not False for holds, _ in chains):
                self._options[command.arguments[0].text] = None

    def _run(self, name: str, command: Command) -> None:
        words = self._put_in(command)
        first, rest = (words[0], words[1:]) if words else ("", [])
        match name:
            case "option":
                self._options[first] = _constant(rest[1]) if len(rest) > 1 else False
            case "set" if first:
                self._set(first, rest[: rest.index("CACHE")] if "CACHE" in rest else rest)
            case "list" if first == "APPEND" and rest:
                self._variables.setdefault(rest[0], []).extend(rest[1:])
            case "string" if first == "APPEND" and rest:
                self._set(rest[0], [*self._variables.get(rest[0], ()), *rest[1:]])
            case "file" if first in {"GLOB", "GLOB_RECURSE"} and rest:
                self._variables[rest[0]] = [one for one in rest[1:] if one not in {"CONFIGURE_DEPENDS", "RELATIVE"}]
            case "add_compile_definitions" | "add_definitions" | "add_compile_options":
                self.folder |= _defined(words, plain=name == "add_compile_definitions")
            case "target_compile_definitions" | "target_compile_options":
                self._of_target(first, rest, plain=name == "target_compile_definitions")
            case "target_link_libraries":
                self._linked.setdefault(first, []).extend(one for one in rest if one not in _SCOPES)
            case _ if _ADDS.fullmatch(name) and first:
                here = posixpath.dirname(self._path)
                paths = (
                    one if posixpath.isabs(one) else posixpath.join(here, one) for one in rest if one not in _SCOPES
                )
                self._sources.setdefault(first, []).extend(posixpath.normpath(one) for one in paths)

    def _set(self, name: str, words: list[str]) -> None:
        self._variables[name] = words
        self._options[name] = _constant(words[0]) if len(words) == 1 else bool(words) or None
        if name == "CMAKE_HIP_FLAGS":
            self.folder |= _defined([part for word in words for part in word.split()], plain=False)

    def _of_target(self, target: str, words: Iterable[str], *, plain: bool) -> None:
        scope = "PUBLIC"
        for word in words:
            if word in _SCOPES:
                scope = word
                continue
            made = _defined([word], plain=plain)
            if scope != "INTERFACE":
                self._own[target] = self._own.get(target, Definitions({})) | made
            if scope != "PRIVATE":
                self._given[target] = self._given.get(target, Definitions({})) | made

    def _put_in(self, command: Command) -> list[str]:
        """Return a command's words with the values of variables; those with others are left out."""
        words: list[str] = []
        for argument in command.arguments:
            whole = _VARIABLE.fullmatch(argument.text)
            if whole and not argument.quoted:
                found = self._variables.get(whole[1], [])
            else:
                text = _VARIABLE.sub(lambda name: " ".join(self._variables.get(name[1], [name[0]])), argument.text)
                found = [text] if argument.quoted or ";" not in text else text.split(";")
            self._words += len(found)
            if self._words > _MOST_WORDS:
                return words
            words += [one for one in found if "${" not in one]
        return words

    def _holds(self, words: Sequence[str]) -> bool | None:
        """Return whether a condition holds in a build for ROCm; None where that is not known."""
        reader = _Condition(words, self._name)
        try:
            value = reader.either(0)
        except (IndexError, RecursionError):
            return None
        return value if reader.at == len(words) else None

    def _name(self, word: str) -> bool | None:
        word = (_VARIABLE.fullmatch(word) or ["", word])[1]
        constant = _constant(word)
        if constant is not None:
            return constant
        if word in _SYSTEM:
            return _SYSTEM[word]
        side = _of_rocm(word)
        if side is not None:
            return side is not bool(_DENIES.search(word))
        if word in self._options:
            return self._options[word]
        return None if word.startswith("CMAKE_") or word.endswith("_FOUND") else False


class _Condition:
    """Reads the words of a condition; a value None is one that is not known."""

    def __init__(self, words: Sequence[str], name: Callable[[str], bool | None]) -> None:
        self.words = words
        self.name = name
        self.at = 0

    def either(self, depth: int) -> bool | None:
        value = self.both(depth)
        while self.at < len(self.words) and self.words[self.at] == "OR":
            self.at += 1
            value = _either(value, self.both(depth))
        return value

    def both(self, depth: int) -> bool | None:
        value = self.one(depth)
        while self.at < len(self.words) and self.words[self.at] == "AND":
            self.at += 1
            value = _both(value, self.one(depth))
        return value

    def one(self, depth: int) -> bool | None:
        if depth > _DEEPEST * 8:
            raise RecursionError
        word = self.words[self.at]
        self.at += 1
        if word == "NOT":
            return _not(self.one(depth + 1))
        if word == "(":
            value = self.either(depth + 1)
            self.at += 1
            return value
        if word in _ASKS:
            self.at += 1
            return None
        if self.at < len(self.words) and self.words[self.at] not in {"AND", "OR", ")"}:  # a comparison
            self.at += 2
            return _of_rocm(self.words[self.at - 1]) if self.words[self.at - 2] == "STREQUAL" else None
        return self.name(word)


def _of_rocm(word: str) -> bool | None:
    """Tell whether a word stands for ROCm; False where it stands for CUDA, None where it says neither."""
    rocm, nvidia = bool(_ROCM.fullmatch(word)), bool(_NVIDIA.fullmatch(word))
    return None if rocm == nvidia else rocm


def _constant(word: str) -> bool | None:
    upper = word.upper()
    return True if upper in _TRUE else False if upper in _FALSE or upper.endswith("-NOTFOUND") else None


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


def _both(one: bool | None, other: bool | None) -> bool | None:
    return False if one is False or other is False else None if one is None or other is None else True


def _either(one: bool | None, other: bool | None) -> bool | None:
    return _not(_both(_not(one), _not(other)))


def _defined(words: Iterable[str], *, plain: bool) -> Definitions:
    """Return the macros of definitions or options; those of another language or condition are left out."""
    defined: dict[str, str] = {}
    undefined: set[str] = set()
    for word in words:
        of_language = _OF_LANGUAGE.fullmatch(word)
        if of_language and "HIP" not in of_language[1].split(","):
            continue
        for one in re.split(r"[;\s]+", of_language[2]) if of_language else [word]:
            if plain and (found := _PLAIN.fullmatch(one)):
                defined[found[1]] = "1" if found[2] is None else found[2]
            elif option := _OPTION.fullmatch(one):
                kind, name, value = option.groups()
                if kind == "U":
                    undefined.add(name)
                else:
                    defined[name] = "1" if value is None else value
    return Definitions(defined, frozenset(undefined))
