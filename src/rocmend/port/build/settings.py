"""Variables that a file sets, whatever its kind: ``export A=b``, ``ENV A=b``, ``A: b``, ``set(ENV{A} b)``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rocmend.port.build import shell
from rocmend.port.build.kinds import Kind
from rocmend.port.build.make import What

if TYPE_CHECKING:
    from rocmend.port.build.file import TextFile

__all__ = ["Setting", "settings"]


class Setting(NamedTuple):
    """A variable that is set.

    Attributes:
        name: The variable.
        value: Without quotes.
        start: Of the value as it is written, quotes included where they are the shell's.
        end: After it.
        name_start: Where the name begins.
        whole: The place of what sets it: to be left out as a whole.
        settled: Whether a condition on ROCm stands around it already.
        sole: Whether nothing else is done by what sets it.
    """

    name: str
    value: str
    start: int
    end: int
    name_start: int
    whole: tuple[int, int]
    settled: bool = False
    sole: bool = True


_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=", re.DOTALL)
_NAME = re.compile(r"[A-Z][A-Z0-9_]+\Z")
_CMAKE_ENV = re.compile(r"ENV\{([A-Za-z_][A-Za-z0-9_]*)\}\Z")
_DECLARES = {"export", "declare", "typeset", "readonly", "local"}


def settings(file: TextFile) -> Iterator[Setting]:
    """Yield the variables that a file sets."""
    if file.kind is Kind.SHELL:
        yield from _of_shell(file)
    elif file.kind is Kind.DOCKERFILE:
        yield from _of_docker(file)
    elif file.kind is Kind.ENV:
        yield from _of_env(file)
    elif file.kind is Kind.MAKE:
        yield from _of_make(file)
        yield from _of_shell(file)
    elif file.kind is Kind.CMAKE:
        yield from _of_cmake(file)
    elif file.kind in {Kind.TOML, Kind.JSON}:
        for held in file.values:
            if held.keys and _NAME.match(held.keys[-1]):
                yield Setting(held.keys[-1], held.text, held.start, held.end, held.start, (held.start, held.end))
    else:
        yield from _of_yaml(file)
        yield from _of_shell(file)


def _of_shell(file: TextFile) -> Iterator[Setting]:
    """Yield assignments that stand alone, before a command, and after ``export`` or ``env``."""
    for command in file.commands:
        words = list(command.assignments)
        alone = len(words) == len(command.words)
        if command.name in _DECLARES or command.name == "env":
            words += [word for word in command.arguments if _ASSIGNED.match(word.text)]
            alone = len(words) == 1 and command.name != "env"
        for word in words:
            yield _word(word, command, sole=alone and len(words) == 1)


def _word(word: shell.Word, command: shell.Command, *, sole: bool) -> Setting:
    name, _, value = word.value.partition("=")
    start = word.start + len(word.text.partition("=")[0]) + 1
    whole = (command.start, command.end) if sole else (word.start, word.end)
    return Setting(name.rstrip("+"), value, start, word.end, word.start, whole, command.settled, sole)


def _of_docker(file: TextFile) -> Iterator[Setting]:
    for step in file.instructions:
        if step.keyword not in {"ENV", "ARG"}:
            continue
        held = [
            one
            for command in shell.script(file.uncommented, step.body_start, step.body_start + len(step.body)).commands
            for one in command.words
        ]
        pairs = [word for word in held if _ASSIGNED.match(word.text)]
        if step.keyword == "ENV" and held and not _ASSIGNED.match(held[0].text):
            if len(held) > 1:
                name, first, last = held[0], held[1], held[-1]
                value = step.body[first.start - step.body_start : last.end - step.body_start]
                yield Setting(name.text, value, first.start, last.end, name.start, (step.start, step.end))
            continue
        for word in pairs:
            name_text, _, value = word.value.partition("=")
            start = word.start + len(name_text) + 1
            whole = (step.start, step.end) if len(pairs) == 1 else (word.start, word.end)
            yield Setting(name_text, value, start, word.end, word.start, whole, sole=len(pairs) == 1)
    yield from _of_shell(file)


def _of_env(file: TextFile) -> Iterator[Setting]:
    for line in file.lines.all:
        written = file.text[line.start : line.end]
        match = re.match(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)=", written)
        if match:
            start = line.start + match.end()
            value = written[match.end() :].strip()
            yield Setting(
                match.group(1), value.strip("\"'"), start, line.end, line.start + match.start(1), (line.start, line.end)
            )


def _of_yaml(file: TextFile) -> Iterator[Setting]:
    """Yield ``NAME: value``, ``- NAME=value`` and Kubernetes's ``name``/``value`` pairs."""
    named = ""
    for entry in file.yaml:
        line = file.lines.all[entry.line]
        whole = (line.start, line.end)
        if entry.key == "name" and _NAME.match(entry.value):
            named = entry.value
        elif entry.key == "value" and named:
            yield Setting(named, entry.value, entry.start, entry.end, entry.key_start, whole, sole=False)
            named = ""
        elif entry.key:
            if _NAME.match(entry.key) and not entry.block and entry.value:
                yield Setting(entry.key, entry.value, entry.start, entry.end, entry.key_start, whole)
            named = ""
        elif pair := _ASSIGNED.match(entry.value):
            start = entry.start + pair.end()
            yield Setting(pair.group(1), entry.value[pair.end() :], start, entry.end, entry.start, whole)


def _of_make(file: TextFile) -> Iterator[Setting]:
    for one in file.make:
        if one.what is What.ASSIGNMENT:
            value = file.text[one.value_start : one.value_end]
            whole = (one.start, one.end)
            yield Setting(
                one.name, value, one.value_start, one.value_end, file.text.find(one.name, one.start), whole, one.settled
            )


def _of_cmake(file: TextFile) -> Iterator[Setting]:
    for command in file.cmake:
        if command.name != "set" or len(command.arguments) < 2:
            continue
        if name := _CMAKE_ENV.match(command.arguments[0].text):
            start, end = command.arguments[1].start, command.arguments[-1].end
            whole = (command.start, command.end)
            value = file.text[start:end]
            yield Setting(name.group(1), value, start, end, command.arguments[0].start, whole, command.settled)
