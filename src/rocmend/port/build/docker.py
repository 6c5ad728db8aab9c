"""Dockerfiles: their instructions, with places (https://docs.docker.com/reference/dockerfile/)."""

from __future__ import annotations

import re
from typing import NamedTuple

from rocmend.port.build.lines import Line

__all__ = ["Instruction", "instructions"]


class Instruction(NamedTuple):
    """An instruction.

    Attributes:
        keyword: In capitals.
        start: Of the keyword.
        end: Of its last line, before the line end.
        body: What follows the keyword, up to ``end``; comment lines within it are blanked, so places stay the same.
        body_start: Where the body begins in the file.
    """

    keyword: str
    start: int
    end: int
    body: str
    body_start: int


_KEYWORD = re.compile(r"[ \t]*([A-Za-z]+)[ \t]+")
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)([A-Za-z_][A-Za-z0-9_]*)\1")
_ESCAPE = re.compile(r"#[ \t]*escape[ \t]*=[ \t]*([\\`])", re.IGNORECASE)


def instructions(text: str, lines: tuple[Line, ...]) -> tuple[Instruction, ...]:
    """Return the instructions of a Dockerfile."""
    found: list[Instruction] = []
    head = _ESCAPE.match(text, lines[0].start) if lines else None
    escape = head.group(1) if head else "\\"
    at = 0
    while at < len(lines):
        line = lines[at]
        written = text[line.start : line.end]
        keyword = _KEYWORD.match(written)
        if not written.strip() or written.lstrip().startswith("#") or keyword is None:
            at += 1
            continue
        last, body = _body(text, lines, at, escape, line.start + keyword.end())
        start = line.start + keyword.start(1)
        found.append(Instruction(keyword.group(1).upper(), start, lines[last].end, body, line.start + keyword.end()))
        at = last + 1
    return tuple(found)


def _body(text: str, lines: tuple[Line, ...], at: int, escape: str, start: int) -> tuple[int, str]:
    """Return the number of an instruction's last line, and its body with comment lines blanked."""
    parts = [text[start : lines[at].end]]
    last = at
    while text[lines[last].start : lines[last].end].rstrip().endswith(escape) and last + 1 < len(lines):
        following = last + 1
        while following < len(lines) - 1 and _passed_over(text, lines[following]):
            following += 1
        for number in range(last + 1, following + 1):
            between = text[lines[number - 1].end : lines[number].start]
            written = text[lines[number].start : lines[number].end]
            blank = number < following or _passed_over(text, lines[number])
            parts += [(" " * len(between) if number > last + 1 else between), " " * len(written) if blank else written]
        last = following
    names = [match.group(2) for match in _HEREDOC.finditer("".join(parts))]
    for name in names:
        while last + 1 < len(lines):
            last += 1
            written = text[lines[last].start : lines[last].end]
            parts += [text[lines[last - 1].end : lines[last].start], written]
            if written.lstrip("\t") == name:
                break
    return last, "".join(parts)


def _passed_over(text: str, line: Line) -> bool:
    written = text[line.start : line.end].strip()
    return not written or written.startswith("#")
