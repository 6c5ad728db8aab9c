"""What a Makefile defines for the compiler of a source on ROCm. It is read, never executed.

Assignments, conditionals and the recipes of rules are followed as GNU Make does. What only a shell or one of Make's
functions could tell is unknown: neither branch of a condition that asks for it counts, and no option that holds it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from rocmend.port.build.lines import Lines
from rocmend.port.build.make import Statement, What, statements, words

__all__ = ["MAKEFILES", "make_options"]

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
"""In the order in which Make looks for them."""

_GIVEN = {"USE_ROCM": "1"}
"""Variables of the command line: how a ported Makefile is told to build for ROCm."""

_UNKNOWN = "\0"
_MOST_NESTED = 16
_MOST_CHARACTERS = 1 << 16
_REFERENCE = re.compile(r"\$(?:\$|\(([^()$]*)\)|\{([^{}$]*)\}|([^\s(){}$]))")
_INNER = re.compile(r"\$(?:\([^()$]*\)|\{[^{}$]*\})")
_NAME = re.compile(r"[\w.-]+")
_CONDITION = re.compile(r"\((?P<a>[^,]*),(?P<b>.*)\)|(?P<q>['\"])(?P<c>.*?)(?P=q)\s+(?P<r>['\"])(?P<d>.*)(?P=r)")
_BUILTIN = ("NVCCFLAGS", "CUDAFLAGS", "HIPFLAGS", "CXXFLAGS", "CPPFLAGS", "CFLAGS")
"""Variables that rules built into Make, or a rule in another file, give the compiler."""
_COMPILES = re.compile(r"(?:^|\s)-[co](?:\s|$)|\.(?:cu|cpp|cc|cxx|c|o)\b")
_NO_COMPILER = {"cmake", "ctest", "meson", "echo", "rm", "cp", "mv", "mkdir", "cd", "make", "ar", "python", "python3"}


class _Rule(NamedTuple):
    needs: str
    recipes: list[str]


def make_options(data: bytes, unit: str) -> list[str]:
    """Return the options that a Makefile compiles a source with, as words.

    Args:
        data: The Makefile's bytes.
        unit: The source's path, relative to the Makefile's folder.
    """
    return _Makefile(data).options(unit)


class _Makefile:
    def __init__(self, data: bytes) -> None:
        lines = Lines(data)
        self._text = lines.text
        self._values = dict(_GIVEN)
        self._rules: list[_Rule] = []
        holds: list[bool | None] = []  # of each conditional around a statement
        for one in statements(lines.text, lines.all):
            if one.what is What.DIRECTIVE and one.name in {"ifeq", "ifneq", "ifdef", "ifndef", "else", "endif"}:
                self._turn(one, holds)
            elif all(holds):
                self._follow(one)

    def options(self, unit: str) -> list[str]:
        rules = [rule for rule in self._rules if any(self._compiling(rule))]
        chosen = next((rule for rank in (_names, _matches) for rule in rules if rank(self._words(rule), unit)), None)
        chosen = chosen or next(iter(rules), None)
        texts = list(self._compiling(chosen)) if chosen else [self._expanded(f"$({name})") for name in _BUILTIN]
        return [word for text in texts for word in _shell(text) if _UNKNOWN not in word]

    def _words(self, rule: _Rule) -> list[str]:
        return self._expanded(rule.needs).split()

    def _compiling(self, rule: _Rule) -> Iterator[str]:
        """Yield the recipe lines of a rule that may call a compiler."""
        for line in rule.recipes:
            text = self._expanded(line)
            program = PurePosixPath((text.split() or [""])[0]).name
            if program not in _NO_COMPILER and _COMPILES.search(text):
                yield text

    def _turn(self, one: Statement, holds: list[bool | None]) -> None:
        value = self._text[one.value_start : one.value_end].strip()
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
            known = self._values.get(text, "") != ""
            return known is (word == "ifdef")
        found = _CONDITION.fullmatch(text)
        if found is None:
            return None
        one, other = (
            self._expanded(part or "").strip() for part in (found["a"] or found["c"], found["b"] or found["d"])
        )
        if _UNKNOWN in one + other:
            return None
        return (one == other) is (word == "ifeq")

    def _follow(self, one: Statement) -> None:
        value = " ".join(word.text for word in words(self._text, one.value_start, one.value_end))
        value = value.replace("\\\n", " ")
        if one.what is What.ASSIGNMENT and _NAME.fullmatch(one.name) and one.name not in _GIVEN:
            self._assign(one, value)
        elif one.what is What.RULE:
            self._rules.append(_Rule(value, []))
        elif one.what is What.RECIPE and self._rules:
            line = self._text[one.value_start : one.value_end].replace("\\\n", " ")
            self._rules[-1].recipes.append(line)

    def _assign(self, one: Statement, value: str) -> None:
        name, before = one.name, self._values.get(one.name)
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
        if name in {"@", "<", "^", "*", "?", "+"}:
            return _UNKNOWN
        # a function, or a value with its endings replaced
        return self._values.get(name, "") if _NAME.fullmatch(name) else _UNKNOWN


def _names(needs: list[str], unit: str) -> bool:
    """Tell whether a rule names a source among what it needs."""
    return any(PurePosixPath(one).as_posix() == unit for one in needs if _UNKNOWN not in one)


def _matches(needs: list[str], unit: str) -> bool:
    """Tell whether a rule is for all sources of a kind."""
    return any("%" in one and unit.endswith(one.rpartition("%")[2]) for one in needs)


def _shell(text: str) -> list[str]:
    """Return the words of a command as a shell reads them; none where it does not."""
    try:
        return shlex.split(text)
    except ValueError:
        return []
