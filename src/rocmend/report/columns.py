"""How text and tables are laid out in columns, words whole: an id, a key or a path that is broken cannot be copied."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.cells import cell_len

__all__ = ["fold", "widths"]

_PROSE = 30
"""A column with more columns of text than this holds sentences …"""
_PROSE_LEAST = 14
"""… which are not readable in fewer than this."""


_BETWEEN_WORDS = re.compile(r" (?!%(?!\w))")
"""``95 %`` is one word."""


def fold(text: str, room: int) -> list[str]:
    """Break a text into lines between its words; a word that is wider than the room has a line of its own.

    Args:
        text: The text; its own line breaks and its blanks within a line are kept.
        room: Columns.
    """
    lines = []
    for paragraph in text.split("\n"):
        line, *words = _BETWEEN_WORDS.split(paragraph)
        for word in words:
            longer = f"{line} {word}"
            if cell_len(longer) <= room:
                line = longer
            elif not line.strip():
                line = word
            else:
                lines.append(line.rstrip())
                line = word
        lines.append(line.rstrip())
    return lines


def widths(rows: Sequence[Sequence[str]], room: int, gap: int) -> list[int] | None:
    """Share a line among the columns of a table.

    Args:
        rows: Its cells, those of the head too.
        room: Columns of the terminal.
        gap: Blanks between two columns of the table.

    Returns:
        The width of each, or None where they do not fit with their words whole.
    """
    columns = list(zip(*rows, strict=True))
    natural = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    least = [
        max(
            (cell_len(word) for cell in column for line in cell.split("\n") for word in _BETWEEN_WORDS.split(line)),
            default=0,
        )
        for column in columns
    ]
    least = [
        max(low, min(_PROSE_LEAST, high) if high > _PROSE else 0) for low, high in zip(least, natural, strict=True)
    ]
    left = room - gap * (len(columns) - 1)
    if sum(least) > left:
        return None
    most = max(natural, default=0)
    while sum(found := [max(low, min(high, most)) for low, high in zip(least, natural, strict=True)]) > left:
        most -= 1
    # what the common limit leaves over
    for index, high in enumerate(natural):
        more = min(high - found[index], left - sum(found))
        found[index] += max(0, more)
    return found
