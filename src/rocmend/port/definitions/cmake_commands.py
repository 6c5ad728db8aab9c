"""What CMake's commands do to variables, targets and definitions; those that are not followed leave doubts."""

from __future__ import annotations

import posixpath
import re
from collections import ChainMap
from collections.abc import Iterable, MutableMapping, Sequence
from itertools import count

from rocmend.port.build.cmake import Command
from rocmend.port.definitions.cmake_conditions import names_rocm, of_option
from rocmend.port.definitions.cmake_targets import PROPERTIES, Folder, Target
from rocmend.port.definitions.cmake_words import VARIABLE, Doubt, Word, constant, definitions_of, words_of
from rocmend.port.definitions.macros import Definitions, Unknown

__all__ = ["ROOT", "Commands"]

ROOT = "/@"
"""Stands for the project's folder, so that paths are absolute as they are in CMake."""
_ADDS = re.compile(r"(?:cuda_|hip_|pybind11_|python_|nanobind_|torch_)?add_(?:executable|library|module)")
_SCOPES = {"PUBLIC", "PRIVATE", "INTERFACE"}
_KINDS = {"STATIC", "SHARED", "MODULE", "OBJECT", "EXCLUDE_FROM_ALL", "WIN32", "MACOSX_BUNDLE", "BEFORE", "AFTER"}
_GLOBS = {"CONFIGURE_DEPENDS", "FOLLOW_SYMLINKS"}
_SETS = re.compile(
    r"string|list|math|file|cmake_path|execute_process|separate_arguments|get_\w+|find_\w+|check_\w+|try_\w+|pkg_\w+"
)
"""Commands that may give the variables that they name another value."""
_FLAGS = {
    "HIP": ("CMAKE_HIP_FLAGS", "HIP_HIPCC_FLAGS", "HIP_CLANG_FLAGS"),
    "CXX": ("CMAKE_CXX_FLAGS",),
}
_MOST_WORDS = 200_000


class Commands:
    """The state of a CMake project while its files are read.

    Attributes:
        targets: By name.
        names: Other names of targets, each with what it stands for.
        of_sources: Definitions for single sources: the path's pattern, with what is defined.
        everywhere: What may be defined for all sources.
        exhausted: The project is larger than what is read of one.
    """

    def __init__(self, language: str, targets: MutableMapping[str, Target]) -> None:
        self.language = language
        self.targets = targets
        self.names: dict[str, str] = {}
        self.of_sources: list[tuple[str, Definitions]] = []
        self.everywhere = Definitions({})
        self.exhausted = False
        self.folder = Folder("", {})
        self.frames: list[MutableMapping[str, list[Word]]] = [{}]
        self.doubts: list[Doubt] = []
        self.place = ""
        self.chosen = False
        self._numbers = count(1)
        self._words = 0

    @property
    def variables(self) -> MutableMapping[str, list[Word]]:
        """Return the variables of the function or folder that is read."""
        return self.frames[-1]

    def doubt(self, why: str = "") -> Doubt:
        """Return a new doubt."""
        return Doubt(next(self._numbers), why or self.place)

    def words(self, command: Command) -> list[Word]:
        """Return the words of a command."""
        words = words_of(command.arguments, self.variables)
        self._words += len(words) + 1
        self.exhausted |= self._words > _MOST_WORDS
        return words

    def run(self, command: Command) -> None:  # noqa: C901, PLR0912  a case for each command
        """Do what a command does."""
        words = self.words(command)
        texts = [word.text for word in words]
        name, first = command.name, texts[0] if texts else ""
        match name:
            case "set" | "unset" | "option" | "cmake_dependent_option" if first:
                self._variable(name, first, words[1:])
            case "list" | "separate_arguments" if texts:
                self._list(name, texts, words)
            case "string" if first == "APPEND" and words[1:]:
                text = "".join(word.text for word in (*self.variables.get(texts[1], ()), *words[2:]))
                self.set(texts[1], [Word(text, _doubts((*self.variables.get(texts[1], ()), *words[2:])))])
            case "file" if first in {"GLOB", "GLOB_RECURSE"} and texts[1:]:
                deep = first == "GLOB_RECURSE"
                self.set(texts[1], [Word(_glob(one, deep=deep)) for one in _after_relative(texts[2:])])
            case "aux_source_directory" if texts[1:]:
                self.set(texts[1], [*self.variables.get(texts[1], ()), Word(posixpath.join(first, "*"))])
            case "cmake_parse_arguments":
                self._parse_arguments(words)
            case "project" if first:
                self.set("PROJECT_NAME", [Word(first)])
                self.set("PROJECT_SOURCE_DIR", self.variables["CMAKE_CURRENT_SOURCE_DIR"])
            case "add_compile_definitions" | "add_definitions" | "remove_definitions":
                self._of_folder(name, words)
            case "add_compile_options":
                made = self._defined(words, self.folder.within, plain=False)
                self.folder.options |= made
            case "target_compile_definitions" | "target_compile_options" if first:
                self._of_target(first, words[1:], plain=name == "target_compile_definitions")
            case "target_link_libraries" if first:
                self._link(first, texts[1:])
            case "target_sources" if first:
                self._add_sources(self.target(first), texts[1:])
            case "set_property" | "set_target_properties" | "set_source_files_properties" | "set_directory_properties":
                self._properties(name, words)
            case "cmake_language":
                self.untold()
            case _ if _ADDS.fullmatch(name) and first:
                self._add(first, words[1:])
            case _ if _SETS.fullmatch(name):
                self._forget(texts)

    def untold(self) -> None:
        """Note that a command may define anything for the folder."""
        self.folder.made |= Definitions({}, unknown=(Unknown("", self.place),))

    # -- variables -----------------------------------------------------------------------------------------------------

    def set(self, name: str, words: Iterable[Word], *, above: bool = False) -> None:
        """Give a variable a value; the one before stays possible where it is not known whether this is executed."""
        frame = self.frames[-2] if above and len(self.frames) > 1 else self.variables
        doubts = tuple(one for one in self.doubts if one not in self.folder.within)
        if not doubts:
            frame[name] = list(words)
            return
        every = dict.fromkeys((*frame.get(name, ()), *words))
        frame[name] = [Word(word.text, (*word.doubts, *doubts)) for word in every] or [Word("", doubts)]

    def _variable(self, command: str, name: str, rest: Sequence[Word]) -> None:
        texts = [word.text for word in rest]
        if command == "unset":
            if self.doubts:
                self.set(name, ())
            else:
                self.variables.pop(name, None)
        elif command == "set" and "CACHE" in texts:
            if name not in self.variables or "FORCE" in texts:
                self._option(name, rest[: texts.index("CACHE")])
            else:
                self._preset(name, rest[: texts.index("CACHE")])
        elif command == "set":
            above = texts[-1:] == ["PARENT_SCOPE"]
            self.set(name, rest[:-1] if above else rest, above=above)
        elif name in self.variables:
            self._preset(name, rest[1:2])
        else:
            default = rest[1:2] or [Word("OFF")]
            doubt = (self.doubt(),) if command == "cmake_dependent_option" else ()
            self._option(name, [Word(word.text, (*word.doubts, *doubt)) for word in default])

    def _option(self, name: str, words: Sequence[Word]) -> None:
        """Set what a person may choose."""
        plain = constant(words[0].text) if len(words) == 1 else None
        if plain is not None and names_rocm(name) is not None:
            value = of_option(name, plain, chosen=self.chosen)
            words = [Word("ON" if value or value is None else "OFF", (self.doubt(),) if value is None else ())]
        self.set(name, words)

    def _preset(self, name: str, words: Sequence[Word]) -> None:
        """Note the default of what a preset may set."""
        known = self.variables[name]
        if known and all(word.doubts for word in known):
            self.variables[name] = [*known, *(Word(word.text, known[0].doubts) for word in words)]

    def _forget(self, texts: Iterable[str]) -> None:
        """Note that the values of variables are no longer known."""
        for one in texts:
            if one in self.variables:
                self.set(one, [Word(f"${{{one}}}")])

    def _list(self, command: str, texts: Sequence[str], words: Sequence[Word]) -> None:
        if command == "separate_arguments":
            parts = words[2:] or self.variables.get(texts[0], [])
            self.set(texts[0], [Word(one, word.doubts) for word in parts for one in word.text.split()])
            return
        name = texts[1] if len(texts) > 1 else ""
        known = self.variables.get(name, [])
        match texts[0]:
            case "APPEND" | "PREPEND":
                self.set(name, [*known, *words[2:]] if texts[0] == "APPEND" else [*words[2:], *known])
            case "REMOVE_ITEM" if known:
                self.set(name, [word for word in known if word.text not in texts[2:]])
            case "FILTER" | "REMOVE_AT" | "POP_BACK" | "POP_FRONT" if known:
                doubt = self.doubt()
                self.set(name, [Word(word.text, (*word.doubts, doubt)) for word in known])
            case "TRANSFORM" if texts[2:3] in (["PREPEND"], ["APPEND"]) and len(texts) == 4:
                before, after = (texts[3], "") if texts[2] == "PREPEND" else ("", texts[3])
                self.set(name, [Word(f"{before}{word.text}{after}", word.doubts) for word in known])
            case "REMOVE_DUPLICATES" | "SORT" | "REVERSE":
                pass
            case _:
                self._forget(texts[1:])

    def _parse_arguments(self, words: Sequence[Word]) -> None:
        texts = [word.text for word in words]
        if texts[:1] == ["PARSE_ARGV"] and len(texts) > 5:
            prefix, lists = texts[2], texts[3:6]
            given = self.variables.get("ARGV", [])[int(texts[1]) if texts[1].isdecimal() else 0 :]
        elif len(texts) > 3:
            prefix, lists, given = texts[0], texts[1:4], list(words[4:])
        else:
            return
        options, single, several = (one.split(";") for one in lists)
        found: dict[str, list[Word]] = {name: [Word("OFF")] for name in options if name}
        at = ""
        for word in given:
            if word.text in options:
                found[word.text], at = [Word("ON", word.doubts)], ""
            elif word.text in (*single, *several):
                at = word.text
                found[at] = []
            elif at:
                found[at].append(word)
        for name in filter(None, (*options, *single, *several)):
            self.variables.pop(f"{prefix}_{name}", None)
            if name in found:
                self.set(f"{prefix}_{name}", found[name])
            else:
                self.set(f"{prefix}_{name}", [])

    # -- definitions ---------------------------------------------------------------------------------------------------

    def _defined(self, words: Iterable[Word], within: Sequence[Doubt], *, plain: bool) -> Definitions:
        known = frozenset(one.number for one in within)
        return self._sure(definitions_of(words, self.place, self.language, known, plain=plain), within)

    def _sure(self, made: Definitions, within: Sequence[Doubt]) -> Definitions:
        doubt = next((one.why for one in self.doubts if one not in within), "")
        return made.doubted(doubt) if doubt else made

    def _of_folder(self, name: str, words: Sequence[Word]) -> None:
        made = self._defined(words, self.folder.within, plain=name == "add_compile_definitions")
        if name != "remove_definitions":
            self.folder.made |= made
            return
        before = self.folder.made
        taken, maybe = made.defined.keys(), tuple(one for one in made.unknown if one.name in ("", *before.defined))
        left = {name: value for name, value in before.defined.items() if name not in taken}
        unknown = tuple(one for one in before.unknown if not one.name or one.name not in taken)
        self.folder.made = before._replace(defined=left, unknown=(*unknown, *maybe))

    def flags(self, folder: Folder) -> Definitions:
        """Return what a folder's variables of options define."""
        made = Definitions({})
        within = frozenset(one.number for one in folder.within)
        for name in (one for flags in _FLAGS[self.language] for one in (flags, *_of_types(folder, flags))):
            place = f"{folder.path}: {name}"
            of_one = definitions_of(folder.variables.get(name, ()), place, self.language, within, plain=False)
            made |= of_one if name in _FLAGS[self.language] else _but_ndebug(of_one).doubted(place)
        return made

    # -- targets -------------------------------------------------------------------------------------------------------

    def target(self, name: str) -> Target:
        """Return a target by its name; one that is not there is made without sources."""
        name = self.names.get(name, name)
        if name not in self.targets:
            self.targets[name] = Target()
        return self.targets[name]

    def _add(self, name: str, words: Sequence[Word]) -> None:
        texts = [word.text for word in words]
        if texts[:1] == ["ALIAS"] and texts[1:]:
            self.names[name] = self.names.get(texts[1], texts[1])
            return
        if "IMPORTED" in texts:
            return
        known = (self.targets.maps[0] if isinstance(self.targets, ChainMap) else self.targets).get(name)
        if known is None or (known.folder is not None and not self.doubts):
            known = self.targets[name] = Target()
        known.folder, known.within = self.folder, (*known.within, *self.doubts)
        options = self._defined((word for word in words if word.text.startswith("-")), known.within, plain=False)
        known.own = self.folder.options | known.own | options
        self._add_sources(known, texts)

    def _add_sources(self, target: Target, texts: Iterable[str]) -> None:
        here = self.variables["CMAKE_CURRENT_SOURCE_DIR"][0].text
        for text in texts:
            if text in _SCOPES or text in _KINDS or text.startswith(("-", "$<TARGET_OBJECTS:")):
                continue
            if VARIABLE.search(text) or "$<" in text:
                target.untold = target.untold or self.place
            path = posixpath.normpath(posixpath.join(here, text))
            if path.startswith(f"{ROOT}/"):
                target.sources.append(path.removeprefix(f"{ROOT}/"))

    def _of_target(self, name: str, words: Iterable[Word], *, plain: bool) -> None:
        if "${" in name:
            self.folder.made |= self._defined(words, self.folder.within, plain=plain).doubted(self.place)
            return
        target = self.target(name)
        scope = "PUBLIC"
        groups: dict[str, list[Word]] = {}
        for word in words:
            if word.text in _SCOPES:
                scope = word.text
            elif word.text not in _KINDS:
                groups.setdefault(scope, []).append(word)
        for scope, given in groups.items():
            made = self._defined(given, target.within, plain=plain)
            if scope != "INTERFACE":
                target.own |= made
            if scope != "PRIVATE":
                target.given |= made

    def _link(self, name: str, texts: Iterable[str]) -> None:
        target, scope = self.target(name), "PUBLIC"
        for text in texts:
            if text in _SCOPES:
                scope = text
            else:
                target.links.append((text, scope))

    def _properties(self, command: str, words: Sequence[Word]) -> None:
        """Read properties that define macros."""
        texts = [word.text for word in words]
        word = "PROPERTY" if command == "set_property" else "PROPERTIES"
        if word not in texts:
            return
        at = texts.index(word)
        if command == "set_property":
            kind, subjects = texts[0], [one for one in texts[1:at] if one not in {"APPEND", "APPEND_STRING"}]
            pairs = [(texts[at + 1], words[at + 2 :])] if texts[at + 1 :] else []
        else:
            kind = {"set_target_properties": "TARGET", "set_directory_properties": "DIRECTORY"}.get(command, "SOURCE")
            subjects = texts[:at]
            pairs = list(zip(texts[at + 1 :: 2], ([one] for one in words[at + 2 :: 2]), strict=False))
        for name, values in pairs:
            plain = PROPERTIES.get(name.removeprefix("INTERFACE_"))
            if plain is not None:
                self._property(kind, subjects, name, values, plain=plain)

    def _property(self, kind: str, subjects: Sequence[str], name: str, words: Sequence[Word], *, plain: bool) -> None:
        if kind == "TARGET":
            scope = "INTERFACE" if name.startswith("INTERFACE_") else "PRIVATE"
            for subject in subjects:
                self._of_target(subject, [Word(scope), *words], plain=plain)
        elif kind == "SOURCE":
            made = self._defined(words, (), plain=plain)
            here = self.variables["CMAKE_CURRENT_SOURCE_DIR"][0].text
            for subject in subjects:
                path = posixpath.normpath(posixpath.join(here, subject)).removeprefix(f"{ROOT}/")
                self.of_sources.append(("**/*", made.doubted(self.place)) if "$" in subject else (path, made))
        elif not subjects or kind == "GLOBAL":
            self.folder.made |= self._defined(words, self.folder.within, plain=plain)
        else:  # of another folder
            self.everywhere |= self._defined(words, (), plain=plain).doubted(self.place)


def _doubts(words: Iterable[Word]) -> tuple[Doubt, ...]:
    return tuple(dict.fromkeys(doubt for word in words for doubt in word.doubts))


def _after_relative(texts: Sequence[str]) -> list[str]:
    """Return the patterns of a glob, without the options before them."""
    at = texts.index("RELATIVE") if "RELATIVE" in texts else -2
    return [one for number, one in enumerate(texts) if number not in {at, at + 1} and one not in _GLOBS]


def _glob(text: str, *, deep: bool) -> str:
    folder, slash, name = text.rpartition("/")
    return f"{folder}{slash}**/{name}" if deep else text


def _of_types(folder: Folder, flags: str) -> list[str]:
    """Return the variables of options for one type of build."""
    return [name for name in folder.variables if re.fullmatch(rf"{flags}_(?!INIT)[A-Z]+", name)]


def _but_ndebug(made: Definitions) -> Definitions:
    """Leave out what says no more than that assertions are on or off."""
    left = {name: value for name, value in made.defined.items() if name != "NDEBUG"}
    return made._replace(defined=left, undefined=made.undefined - {"NDEBUG"})
