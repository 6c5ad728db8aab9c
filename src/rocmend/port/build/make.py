"""Makefiles: assignments, rules, recipe lines and conditional directives, with places.

What is read is GNU Make's language (https://www.gnu.org/software/make/manual/make.html).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from rocmend.port.build.lines import Line
from rocmend.port.nesting import MOST_NESTED, NestingError

__all__ = ["Statement", "What", "Word", "statements", "words"]


class What(StrEnum):
    """What a logical line is."""

    ASSIGNMENT = "assignment"
    RECIPE = "recipe"
    RULE = "rule"
    DIRECTIVE = "directive"


class Statement(NamedTuple):
    """A logical line: with the lines that it is continued on.

    Attributes:
        what: What it is.
        name: The variable of an assignment, the targets of a rule, the word of a directive.
        operator: Of an assignment: ``=``, ``:=``, ``?=``, ``+=`` …
        start: Of its first line.
        end: Of its last line, before the line end.
        value_start: Where the value, the recipe's command or the directive's condition begins.
        value_end: Where it ends, before a comment.
        settled: Whether it stands in a conditional that already tells ROCm and CUDA apart.
        fixed: Whether no conditional can be put around it: it stands within ``define``.
    """

    what: What
    name: str
    operator: str
    start: int
    end: int
    value_start: int
    value_end: int
    settled: bool = False
    fixed: bool = False


class Word(NamedTuple):
    """A word of a value: blanks within ``$(…)`` and quotes belong to it."""

    text: str
    start: int
    end: int


_ASSIGNMENT = re.compile(
    r"[ ]*(?:(?:export|override|private)[ \t]+)*(?P<name>[^\s:#=?+!]+)[ \t]*(?P<op>:::=|::=|:=|\?=|\+=|!=|=)[ \t]*"
)
_OF_TARGET = re.compile(
    r"(?P<targets>[^\t=#:][^=#:]*):[ \t]*(?:export[ \t]+)?(?P<name>[^\s:#=?+!]+)[ \t]*(?P<op>:=|\?=|\+=|=)[ \t]*"
)
_DIRECTIVE = re.compile(
    r"[ ]*(?P<word>ifdef|ifndef|ifeq|ifneq|else|endif|define|endef|-?include|sinclude|unexport|vpath|export)\b[ \t]*"
)
_RULE = re.compile(r"(?P<targets>[^\t#=][^#=]*?):(?!=)")
_WORD = re.compile(
    r"""(?:\$\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\$\{[^{}]*\}|\\[^\r\n]|"(?:[^"\\]|\\.)*"|'[^']*'|[^\s\\$]|\$)+""",
    re.DOTALL,
)
_ROCM = re.compile(r"(?<![A-Za-z])(?:[A-Za-z]*_)?(?:ROCM|HIP|HIPCC|rocm|hip|hipcc|AMD|amd)(?![A-Za-z])")
_OPENING = {"ifdef", "ifndef", "ifeq", "ifneq"}


def words(text: str, start: int, end: int) -> tuple[Word, ...]:
    """Return the words of a value; continuations are blanks."""
    return tuple(Word(match.group(), match.start(), match.end()) for match in _WORD.finditer(text, start, end))


def statements(text: str, lines: tuple[Line, ...]) -> tuple[Statement, ...]:
    """Return the logical lines of a file, without blank lines and comments."""
    return _settled(text, list(_parsed(text, lines)))


def _logical(text: str, lines: tuple[Line, ...]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of lines, joined where a line ends in a backslash."""
    at = 0
    while at < len(lines):
        first = at
        while _continued(text, lines[at]) and at + 1 < len(lines):
            at += 1
        yield lines[first].start, lines[at].end
        at += 1


def _continued(text: str, line: Line) -> bool:
    written = text[line.start : line.end]
    return (len(written) - len(written.rstrip("\\"))) % 2 == 1


def _parsed(text: str, lines: tuple[Line, ...]) -> Iterator[Statement]:
    in_define = 0
    for start, end in _logical(text, lines):
        written = text[start:end]
        if (
            not written.strip()
            or written.lstrip(" ").startswith("#")
            or (written.startswith("\t") and written.lstrip().startswith("#"))
        ):
            continue
        stop = start + len(_uncommented(written).rstrip())
        directive = _DIRECTIVE.match(text, start, stop)
        assignment = _ASSIGNMENT.match(text, start, stop)
        if directive and not assignment and not written.startswith("\t"):
            word = directive.group("word")
            in_define += {"define": 1, "endef": -1}.get(word, 0)
            yield Statement(What.DIRECTIVE, word, "", start, end, directive.end(), stop)
        elif written.startswith("\t"):
            code = start + len(written) - len(written.lstrip("\t @-+"))
            yield Statement(What.RECIPE, "", "", start, end, code, start + len(written.rstrip()), fixed=in_define > 0)
        elif assignment:
            yield _assigned(assignment, start, end, stop, fixed=in_define > 0)
        elif own := _OF_TARGET.match(text, start, stop):
            yield _assigned(own, start, end, stop, fixed=in_define > 0)
        elif rule := _RULE.match(text, start, stop):
            yield Statement(What.RULE, rule.group("targets"), "", start, end, rule.end(), stop, fixed=in_define > 0)


def _assigned(match: re.Match[str], start: int, end: int, stop: int, *, fixed: bool) -> Statement:
    value = min(match.end(), stop)
    return Statement(What.ASSIGNMENT, match.group("name"), match.group("op"), start, end, value, stop, fixed=fixed)


def _uncommented(written: str) -> str:
    """Cut a comment off a line that is no recipe."""
    if written.startswith("\t"):
        return written
    match = re.search(r"(?<!\\)#", written)
    return written[: match.start()] if match else written


def _settled(text: str, parsed: list[Statement]) -> tuple[Statement, ...]:
    """Mark the statements within conditionals of which a condition names ROCm."""
    chains: list[int] = []
    rocm: set[int] = set()
    around: list[tuple[int, ...]] = []
    for number, statement in enumerate(parsed):
        if statement.what is What.DIRECTIVE:
            if statement.name in _OPENING:
                chains.append(number)
                if len(chains) > MOST_NESTED:  # each statement notes all that are around it
                    raise NestingError("conditionals")
            if (
                chains
                and statement.name in {*_OPENING, "else"}
                and _ROCM.search(text, statement.value_start, statement.value_end)
            ):
                rocm.add(chains[-1])
        around.append(tuple(chains))
        if statement.what is What.DIRECTIVE and statement.name == "endif" and chains:
            chains.pop()
    return tuple(
        statement._replace(settled=any(chain in rocm for chain in held))
        for statement, held in zip(parsed, around, strict=True)
    )
