"""What a Makefile defines for the compiler of a source on ROCm. It is read, never executed.

Assignments, conditionals and the recipes of rules are followed as GNU Make does. What only a shell or one of Make's
functions could tell is unknown: neither branch of a condition that asks for it counts, and no option that holds it.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from bisect import bisect_right
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from rocmend.port.build.lines import Lines
from rocmend.port.build.make import Statement, What, statements, words
from rocmend.port.definitions.macros import Definitions, Unknown, of_options
from rocmend.port.nesting import NestingError

__all__ = ["MAKEFILES", "Makefile"]

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
"""In the order in which Make looks for them."""

_GIVEN = {"USE_ROCM": "1"}
"""Variables of the command line: how a ported Makefile is told to build for ROCm."""

_UNKNOWN = "\0"
_FILE = "\2"
"""Stands for what is not known but is a file's name."""
_MOST_NESTED = 16
_MOST_FILES = 64
_MOST_CHARACTERS = 1 << 16
_REFERENCE = re.compile(r"\$(?:\$|\(([^()$]*)\)|\{([^{}$]*)\}|([^\s(){}$]))")
_NAME = re.compile(r"[\w.-]+")
_OF_FILES = re.compile(
    r"[\w.-]+:.*|(?:wildcard|patsubst|notdir|basename|dir|abspath|realpath|addsuffix|addprefix|sort|filter(?:-out)?"
    r"|firstword|lastword|subst|suffix)\s.*",
    re.DOTALL,
)
_CONDITION = re.compile(r"\((?P<a>[^,]*),(?P<b>.*)\)|(?P<q>['\"])(?P<c>.*?)(?P=q)\s+(?P<r>['\"])(?P<d>.*)(?P=r)")
_BUILTIN = ("NVCCFLAGS", "CUDAFLAGS", "HIPFLAGS", "CXXFLAGS", "CPPFLAGS", "CFLAGS")
"""Variables that rules built into Make, or a rule in another file, give the compiler."""
_COMPILES = re.compile(r"(?:^|\s)-[co](?:\s|$)|\.(?:cu|cpp|cc|cxx|c|o)\b")
_NO_COMPILER = {"cmake", "ctest", "meson", "echo", "rm", "cp", "mv", "mkdir", "cd", "make", "ar", "python", "python3"}
_INCLUDES = {"include", "-include", "sinclude"}

Read = Callable[[str], bytes | None]
"""Returns a file's bytes; None where there is none, or it cannot be read."""


class _Rule(NamedTuple):
    place: str
    needs: str
    recipes: list[str]


class _Text(NamedTuple):
    path: str
    text: str
    starts: list[int]

    def place(self, at: int) -> str:
        return f"{self.path}, line {bisect_right(self.starts, at)}"


class Makefile:
    """A Makefile, with those that it includes.

    Args:
        path: Within the project.
        read: Returns the project's files.
    """

    def __init__(self, path: str, read: Read) -> None:
        self._read = read
        self._values = dict(_GIVEN)
        self._rules: list[_Rule] = []
        self._left = _MOST_FILES
        self._path = path
        self._unread: tuple[Unknown, ...] = ()
        self._enter(path, f"{path} cannot be read")

    def definitions(self, unit: str) -> Definitions:
        """Return what a source is compiled with; of two definitions of a macro the last holds.

        Args:
            unit: The source's path, relative to the Makefile's folder.
        """
        rules = [rule for rule in self._rules if any(self._compiling(rule))]
        ranks = ([rule for rule in rules if rank(self._words(rule), unit)] for rank in (_names, _matches))
        chosen = next(filter(None, ranks), rules)
        made = [self._of_rule(rule, unit) for rule in chosen]
        if not made:
            made = [self._of_texts([self._expanded(f"$({name})") for name in _BUILTIN], self._path)]
        first = made[0]
        for rule, other in zip(chosen[1:], made[1:], strict=True):
            one, two = _as_items(first), _as_items(other)
            names = {item[0] for item in one ^ two}
            first = Definitions(
                {name: value for name, value in first.defined.items() if name not in names},
                first.undefined - names,
                unknown=(
                    *first.unknown,
                    *other.unknown,
                    *(Unknown(name, f"{rule.place}: another recipe") for name in names),
                ),
            )
        return first._replace(build=self._path, unknown=tuple(dict.fromkeys((*self._unread, *first.unknown))))

    def _of_rule(self, rule: _Rule, unit: str) -> Definitions:
        lines = list(self._compiling(rule))
        named = [line for line in lines if unit in line.split()]
        return self._of_texts(named or lines, f"{rule.place}: its recipe")

    def _of_texts(self, texts: list[str], place: str) -> Definitions:
        made = Definitions({})
        for text in texts:
            one = of_options(_shell(text), place)
            undone = made.undefined - one.defined.keys()
            kept = {name: value for name, value in made.defined.items() if name not in one.undefined}
            made = Definitions(kept | one.defined, undone | one.undefined, unknown=(*made.unknown, *one.unknown))
        return made

    def _enter(self, path: str, missing: str) -> None:
        """Read a file; one that is not there may define anything, where that is said."""
        data = self._read(path) if self._left > 0 else None
        self._left -= 1
        if data is None:
            self._unread += (Unknown("", missing),) if missing else ()
            return
        lines = Lines(data)
        file = _Text(path, lines.text, [line.start for line in lines.all])
        try:
            found = statements(lines.text, lines.all)
        except NestingError:
            self._unread += (Unknown("", f"{path} is nested too deep"),)
            return
        holds: list[bool | None] = []  # of each conditional around a statement
        for one in found:
            if one.what is What.DIRECTIVE and one.name in {"ifeq", "ifneq", "ifdef", "ifndef", "else", "endif"}:
                self._turn(file, one, holds)
            elif all(value is not False for value in holds):
                self._follow(file, one, sure=all(holds))

    def _words(self, rule: _Rule) -> list[str]:
        return self._expanded(rule.needs).split()

    def _compiling(self, rule: _Rule) -> Iterator[str]:
        """Yield the recipe lines of a rule that may call a compiler."""
        for line in rule.recipes:
            text = self._expanded(line)
            program = PurePosixPath((text.split() or [""])[0]).name
            compiles = text == _UNKNOWN or _COMPILES.search(text.replace(_FILE, ".o"))
            if program not in _NO_COMPILER and compiles:
                yield text

    def _turn(self, file: _Text, one: Statement, holds: list[bool | None]) -> None:
        value = file.text[one.value_start : one.value_end].strip()
        if one.name == "endif":
            del holds[-1:]
        elif one.name != "else":
            holds.append(self._true(one.name, value))
        elif holds:
            word, _, rest = value.partition(" ")
            before = holds[-1]
            # what stands after a branch that was taken is not, whatever it asks for
            other = None if before is None or before else True
            holds[-1] = False if before else other
            if word and before is False:
                holds[-1] = self._true(word, rest.strip())

    def _true(self, word: str, text: str) -> bool | None:
        """Tell whether a condition holds; None where that is unknown."""
        if word in {"ifdef", "ifndef"}:
            value = self._values.get(text, "")
            known = value != ""
            return None if _UNKNOWN in value else known is (word == "ifdef")
        found = _CONDITION.fullmatch(text)
        if found is None:
            return None
        one, other = (
            self._expanded(part or "").strip() for part in (found["a"] or found["c"], found["b"] or found["d"])
        )
        if _UNKNOWN in one + other or _FILE in one + other:
            return None
        return (one == other) is (word == "ifeq")

    def _follow(self, file: _Text, one: Statement, *, sure: bool) -> None:
        value = " ".join(word.text for word in words(file.text, one.value_start, one.value_end))
        value = value.replace("\\\n", " ")
        if one.what is What.ASSIGNMENT and _NAME.fullmatch(one.name) and one.name not in _GIVEN and not one.fixed:
            head = file.text[one.start : one.value_start]
            self._assign(one, value, sure=sure and ":" not in head.partition(one.name)[0])
        elif one.what is What.RULE:
            self._rules.append(_Rule(file.place(one.start), value, []))
        elif one.what is What.RECIPE and self._rules and not one.fixed:
            line = file.text[one.value_start : one.value_end].replace("\\\n", " ")
            self._rules[-1].recipes.append(line if sure else _doubted(line))
        elif one.what is What.DIRECTIVE and one.name in _INCLUDES:
            for name in self._expanded(value).split():
                place = f"{file.place(one.start)}: {one.name} {value}"
                if _UNKNOWN in name or _FILE in name or posixpath.isabs(name):
                    self._unread += (Unknown("", place),) if not name.endswith(".d") and one.name == "include" else ()
                    continue
                path = posixpath.normpath(posixpath.join(posixpath.dirname(self._path), name))
                self._enter(path, place if one.name == "include" else "")

    def _assign(self, one: Statement, value: str, *, sure: bool) -> None:
        name, before = one.name, self._values.get(one.name)
        if not sure:
            made = self._expanded(value).replace("$", "$$") if one.operator in {":=", "::=", ":::="} else value
            both = f"{_doubted(made)}" if before is None else f"{before} {_doubted(made)}"
            self._values[name] = (
                both if one.operator == "+=" else f"{_doubted(before or '')} {_doubted(made)}"
            ).strip()
            self._values[name] = self._values[name][:_MOST_CHARACTERS] or _UNKNOWN
            return
        match one.operator:
            case "=":
                self._values[name] = value
            case "+=":
                self._values[name] = f"{before} {value}" if before else value
            case "?=":
                self._values.setdefault(name, value)
            case ":=" | "::=" | ":::=":
                self._values[name] = self._expanded(value).replace("$", "$$")
            case _:
                self._values[name] = _UNKNOWN
        self._values[name] = self._values[name][:_MOST_CHARACTERS]

    def _expanded(self, text: str) -> str:
        for _ in range(_MOST_NESTED):
            made = _REFERENCE.sub(self._one, text)[:_MOST_CHARACTERS]
            if made == text:
                return made.replace("\1", "$")
            text = made
        return _UNKNOWN

    def _one(self, found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "\1"
        name = next(part for part in found.groups() if part is not None)
        if name[:1] in {"@", "<", "^", "*", "?", "+"}:
            return _FILE
        if _NAME.fullmatch(name):
            return self._values.get(name, "")
        # a function, or a value with its endings replaced
        inner = name.partition(":")[0]
        named = self._values.get(inner, "") if _NAME.fullmatch(inner) else ""
        files = _OF_FILES.fullmatch(name) and not any(sign in f" {name} {named}" for sign in (" -", ",-", _UNKNOWN))
        return _FILE if files else _UNKNOWN


def _doubted(text: str) -> str:
    """Return words as those that may be there."""
    return " ".join(word + _UNKNOWN for word in text.split())


def _as_items(made: Definitions) -> set[tuple[str, str | None]]:
    return {*made.defined.items(), *((name, None) for name in made.undefined)}


def _names(needs: list[str], unit: str) -> bool:
    """Tell whether a rule names a source among what it needs."""
    return any(PurePosixPath(one).as_posix() == unit for one in needs if _UNKNOWN not in one)


def _matches(needs: list[str], unit: str) -> bool:
    """Tell whether a rule is for all sources of a kind."""
    return any("%" in one and unit.endswith(one.rpartition("%")[2]) for one in needs)


def _shell(text: str) -> list[str]:
    """Return the words of a command as a shell reads them; one that is not known where it does not."""
    try:
        return shlex.split(text)
    except ValueError:
        return [_UNKNOWN]
