"""What rules for text report: one way to say that a place is rewritten where its file has room for a condition."""

from __future__ import annotations

from rocmend.core.records import Severity
from rocmend.port.build.file import TextFile
from rocmend.port.build.kinds import Kind, Manner, manner
from rocmend.port.records import Edit, Outcome
from rocmend.port.rule import Found

__all__ = ["commented", "note", "rewrite", "without"]


def rewrite(  # noqa: PLR0913  a rewrite has as many parts as it has
    file: TextFile,
    place: tuple[int, int],
    message: str,
    edits: tuple[Edit, ...],
    *,
    remedy: str,
    outcome: Outcome = Outcome.AUTO,
    severity: Severity | None = None,
    otherwise: Outcome = Outcome.MANUAL,
) -> Found:
    """Return a rewrite, or what is said instead where the file has no room for one.

    Args:
        file: The file.
        place: Start and end of the construct.
        message: What it is.
        edits: Its rewrite.
        remedy: What a person does where nothing can be rewritten.
        outcome: What is done with the rewrite. Files that are written beside the original are at most suggested, for
            nobody reads them yet; lists of requirements are plain enough to be written.
        severity: Where it is not the rule's own.
        otherwise: What is done where the rewrite is not possible.
    """
    possible = bool(edits) and all(file.region(edit.start, edit.end) is not None for edit in edits)
    if not possible:
        return Found(*place, message, (), otherwise, severity, remedy)
    if manner(file.kind) is Manner.BESIDE and file.kind is not Kind.REQUIREMENTS and outcome is Outcome.AUTO:
        outcome = Outcome.SUGGEST
    return Found(*place, message, edits, outcome, severity, remedy)


def note(place: tuple[int, int], message: str, remedy: str = "", severity: Severity | None = None) -> Found:
    """Return something worth knowing."""
    return Found(*place, message, (), Outcome.NOTE, severity, remedy)


def without(file: TextFile, start: int, end: int) -> Edit:
    """Return an edit that takes a word out of a line, with the blanks before it."""
    first = file.lines.at(start).start
    while start > first and file.text[start - 1] in " \t":
        start -= 1
    return Edit(start, end, b"")


def commented(file: TextFile, start: int, end: int, why: str) -> tuple[Edit, ...]:
    """Return edits that make comments of the lines of a place, the first with a reason before it."""
    number = file.lines.number(start)
    edits: list[Edit] = []
    while number < len(file.lines.all) and (number == file.lines.number(start) or file.lines.all[number].start < end):
        line = file.lines.all[number]
        indent = file.lines.indent(line.start)
        at = line.start + len(indent)
        reason = f"# ROCm: {why}{file.lines.newline}{indent}" if not edits else ""
        edits.append(Edit(at, at, f"{reason}# ".encode()))
        number += 1
    return tuple(edits)
