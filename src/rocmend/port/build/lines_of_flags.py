"""Where options of a compiler stand in builds: the words of each statement, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from rocmend.port.build import make
from rocmend.port.build.file import TextFile
from rocmend.port.build.flags import nvcc_only

__all__ = ["Flags", "Word", "flags", "of_nvcc"]


class Word(NamedTuple):
    """A word: an option, its value, a file."""

    text: str
    start: int
    end: int


class Flags(NamedTuple):
    """The words of one statement.

    Attributes:
        words: In order.
        start: Of the statement.
        end: After it.
        name: The variable or command that they are given to.
        hidden: Options of nvcc within a function of make, which are no words of their own.
    """

    words: tuple[Word, ...]
    start: int
    end: int
    name: str
    hidden: bool = False


_TOKEN = re.compile(r"(?:\$\{[^{}]*\}|\\.|[^\s;<>\"\\])+", re.DOTALL)
_SETS = {"set", "list", "string", "target_compile_options", "add_compile_options", "set_source_files_properties"}
_SETS |= {"add_definitions", "target_link_options", "add_link_options", "set_target_properties", "set_property"}
_NVCC = re.compile(r"(?:^|/|\))nvcc(?:\.exe)?$")
_HIDDEN = re.compile(r"-gencode|--generate-code|-arch=sm|--expt-|-Xptxas|--use_fast_math|-Xcompiler")
_FOR_NVCC = re.compile(r"NVCC|CUDA|GENCODE|(?<![A-Z])CU_?FLAGS", re.IGNORECASE)


def of_nvcc(text: str) -> bool:
    """Tell whether a word is nvcc, wherever it lies."""
    return _NVCC.search(text.strip("\"'")) is not None


def flags(file: TextFile) -> Iterator[Flags]:
    """Yield the statements that hold options for nvcc."""
    for command in file.cmake:
        if command.name not in _SETS or command.settled:
            continue
        words = tuple(word for argument in command.arguments for word in _tokens(file, argument.start, argument.end))
        first = command.arguments[0].text if command.arguments else ""
        name = command.values()[1] if command.name in {"list", "string"} and len(words) > 1 else first
        if _given(words) or _FOR_NVCC.search(name) or "LANGUAGE:CUDA" in file.text[command.start : command.end]:
            yield Flags(words, command.start, command.end, name)
    yield from _of_make(file)
    for one in file.commands if not file.make else ():
        if not one.settled and one.words and of_nvcc(one.name):
            words = tuple(Word(word.value, word.start, word.end) for word in one.words)
            yield Flags(words, one.start, one.end, "nvcc")


def _tokens(file: TextFile, start: int, end: int) -> Iterator[Word]:
    for match in _TOKEN.finditer(file.text, start, end):
        at = match.start() + (match.group().startswith(":"))
        yield Word(file.text[at : match.end()], at, match.end())


def _of_make(file: TextFile) -> Iterator[Flags]:
    compilers = {one.name for one in file.make if one.what is make.What.ASSIGNMENT and _is_nvcc(file, one)}
    for one in file.make:
        if one.what is make.What.DIRECTIVE or one.settled:
            continue
        words = tuple(Word(*word) for word in make.words(file.text, one.value_start, one.value_end))
        called = words[0].text if one.what is make.What.RECIPE and words else ""
        uses = of_nvcc(called) or called.strip("$(){}") in compilers
        named = one.what is make.What.ASSIGNMENT and _FOR_NVCC.search(one.name) is not None
        hidden = any(word.text.startswith("$(") and _HIDDEN.search(word.text) for word in words)
        if uses or named or hidden or _given(words):
            yield Flags(words, one.start, one.end, one.name, hidden)


def _is_nvcc(file: TextFile, one: make.Statement) -> bool:
    return any(of_nvcc(word) for word in file.text[one.value_start : one.value_end].split())


def _given(words: tuple[Word, ...]) -> bool:
    return any(nvcc_only(word.text) for word in words)
