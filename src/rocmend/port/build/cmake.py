"""CMake files: their commands, arguments and blocks, with places.

The grammar is that of https://cmake.org/cmake/help/latest/manual/cmake-language.7.html: one command a line, arguments
that are quoted, bracketed or bare, comments of one line or in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rocmend.port.nesting import MOST_NESTED, NestingError

__all__ = ["Argument", "Command", "commands", "unread_from"]


class Argument(NamedTuple):
    """An argument of a command.

    Attributes:
        text: As it is read: without quotes or brackets.
        start: Of the text, without a quote.
        end: After it.
        quoted: Whether it stands in quotes or brackets, so that blanks belong to it.
    """

    text: str
    start: int
    end: int
    quoted: bool


class Command(NamedTuple):
    """A command.

    Attributes:
        name: In small letters.
        arguments: In order; parentheses within conditions are arguments of their own.
        start: Of the name.
        end: After the closing parenthesis.
        settled: Whether it stands in a block that already tells ROCm and CUDA apart.
        conditions: The conditions of the blocks around it, outermost first.
    """

    name: str
    arguments: tuple[Argument, ...]
    start: int
    end: int
    settled: bool = False
    conditions: tuple[str, ...] = ()

    def values(self) -> tuple[str, ...]:
        """Return the arguments' texts."""
        return tuple(argument.text for argument in self.arguments)


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BLANK = re.compile(r"[ \t\r\n]+")
_BRACKET = re.compile(r"\[(=*)\[")
_BARE = re.compile(r'(?:\$\([^()\n]*\)|\\.|"[^"\n]*"|[^\s()#"\\])+', re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ROCM = re.compile(r"(?<![A-Za-z])(?:[A-Za-z]*_)?(?:ROCM|HIP|rocm|hip|Hip|HSA|AMDGPU|AMD_GPU)(?![a-z])")

_PAIRED = re.compile(r"\A(\w+)_(?:ROCM|HIP)\Z")
"""A variable that asks for ROCm, and what it begins with; not USE_ROCM, of which ported files are full."""


def commands(text: str) -> tuple[Command, ...]:
    """Return the commands of a file; what follows something that is no CMake is left out."""
    return tuple(_settled(list(_parsed(text))))


def unread_from(text: str, found: Sequence[Command]) -> int | None:
    """Return where something begins that is no CMake, so that the commands end there; None where all were read."""
    last = found[-1].end if found else 3 if text.startswith("\xef\xbb\xbf") else 0
    at = _skipped(text, last)
    return at if at < len(text) else None


def _skipped(text: str, at: int) -> int:
    """Return the place after blanks and comments."""
    while True:
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        if at >= len(text) or text[at] != "#":
            return at
        bracket = _BRACKET.match(text, at + 1)
        if bracket:
            close = text.find(f"]{bracket.group(1)}]", bracket.end())
            at = len(text) if close < 0 else close + len(bracket.group(1)) + 2
        else:
            line = text.find("\n", at)
            at = len(text) if line < 0 else line


def _parsed(text: str) -> Iterator[Command]:
    at = 3 if text.startswith("\xef\xbb\xbf") else 0
    while True:
        at = _skipped(text, at)
        name = _NAME.match(text, at)
        if name is None:
            return
        opened = name.end()
        while opened < len(text) and text[opened] in " \t":
            opened += 1
        if text[opened : opened + 1] != "(":
            return
        arguments, end = _arguments(text, opened + 1)
        if end < 0:
            return
        yield Command(name.group().lower(), tuple(arguments), name.start(), end)
        at = end


def _arguments(text: str, at: int) -> tuple[list[Argument], int]:
    """Return the arguments from a place and the place after the closing parenthesis, -1 where there is none."""
    found: list[Argument] = []
    depth = 1
    while True:
        at = _skipped(text, at)
        if at >= len(text):
            return found, -1
        sign = text[at]
        if sign in "()":
            depth += 1 if sign == "(" else -1
            if depth == 0:
                return found, at + 1
            found.append(Argument(sign, at, at + 1, quoted=False))
            at += 1
            continue
        if quoted := _QUOTED.match(text, at):
            found.append(Argument(quoted.group(1), quoted.start(1), quoted.end(1), quoted=True))
            at = quoted.end()
            continue
        if bracket := _BRACKET.match(text, at):
            close = text.find(f"]{bracket.group(1)}]", bracket.end())
            if close < 0:
                return found, -1
            found.append(Argument(text[bracket.end() : close], bracket.end(), close, quoted=True))
            at = close + len(bracket.group(1)) + 2
            continue
        bare = _BARE.match(text, at)
        if bare is None:
            return found, -1
        found.append(Argument(bare.group(), bare.start(), bare.end(), quoted=False))
        at = bare.end()


def _settled(parsed: list[Command]) -> Iterator[Command]:
    """Mark the commands within if-chains of which a condition names ROCm, and note the conditions around each.

    A file with `if(BUILD_HIP)` tells the two apart where it says `if(BUILD_CUDA)`, too.
    """
    alone = {command.values()[0] for command in parsed if command.name == "if" and len(command.arguments) == 1}
    of_cuda = {f"{prefix}_CUDA" for name in alone - {"USE_ROCM"} for prefix in _PAIRED.findall(name)}
    chains: list[list[int]] = []
    conditions: list[str] = []
    rocm: set[int] = set()
    within: list[tuple[tuple[int, ...], tuple[str, ...]]] = []
    for number, command in enumerate(parsed):
        written = " ".join(command.values())
        if command.name == "if":
            chains.append([number])
            conditions.append(written)
            if len(chains) > MOST_NESTED:  # each command notes all that are around it
                raise NestingError("conditions")
        elif command.name in {"elseif", "else"} and chains:
            negated = conditions[-1] if conditions[-1].startswith("NOT NOT ") else f"NOT {conditions[-1]}"
            conditions[-1] = written if command.name == "elseif" else negated
        if command.name in {"if", "elseif"} and chains and (_ROCM.search(written) or written in of_cuda):
            rocm.add(chains[-1][0])
        within.append((tuple(chain[0] for chain in chains), tuple(conditions)))
        if command.name == "endif" and chains:
            chains.pop()
            conditions.pop()
    for command, (around, held) in zip(parsed, within, strict=True):
        yield command._replace(settled=any(chain in rocm for chain in around), conditions=held)
