"""INI files such as ``setup.cfg``: sections, keys and the lines of their values, with places."""

from __future__ import annotations

import re
from typing import NamedTuple

from rocmend.port.build.lines import Line

__all__ = ["Row", "rows"]


class Row(NamedTuple):
    """A line of a value.

    Attributes:
        section: The section.
        key: The key that the line belongs to.
        text: Without blanks around it.
        start: Of the text.
        end: After it.
    """

    section: str
    key: str
    text: str
    start: int
    end: int


_SECTION = re.compile(r"\[([^\]]+)\]")
_KEY = re.compile(r"([^\s=:#;][^=:]*?)[ \t]*[=:][ \t]*")


def rows(text: str, lines: tuple[Line, ...]) -> tuple[Row, ...]:
    """Return the lines of all values."""
    found: list[Row] = []
    section = key = ""
    for line in lines:
        written = text[line.start : line.end]
        bare = written.strip()
        if not bare or bare[0] in "#;":
            continue
        if header := _SECTION.match(written):
            section, key = header.group(1).strip(), ""
        elif written[0] in " \t" and key:
            start = line.start + len(written) - len(written.lstrip())
            found.append(Row(section, key, bare, start, start + len(bare)))
        elif named := _KEY.match(written):
            key = named.group(1)
            if value := written[named.end() :].rstrip():
                start = line.start + named.end()
                found.append(Row(section, key, value, start, start + len(value)))
    return tuple(found)
