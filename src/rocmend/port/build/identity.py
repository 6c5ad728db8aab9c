"""Proving that a text file's NVIDIA side is what it was: without ``USE_ROCM`` it is the original.

Byte for byte, after lines that a port indented within its conditions have moved back.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from rocmend.port.build import make
from rocmend.port.build.file import TextFile
from rocmend.port.build.gates import GATES, UNIT, movable
from rocmend.port.build.kinds import Kind, Manner, manner

__all__ = ["broken", "restored"]


class _Role(Enum):
    ROCM = "opens the ROCm branch"
    OTHER = "opens the branch for everything else"
    FOREIGN = "opens another condition"
    ELSE = "else"
    ELSEIF = "else with a condition"
    CLOSE = "closes"


class _Mark(NamedTuple):
    line: int
    role: _Role


def broken(path: str, before: bytes, after: bytes) -> str | None:
    """Return why the NVIDIA side of a ported file is not the original; None where it is.

    A file whose ROCm side is written beside it is not touched, so there is nothing to break.
    """
    kind = TextFile(path, before).kind
    if manner(kind) is Manner.BESIDE or before == after:
        return None
    if manner(kind) is Manner.NONE:
        return "it is a file type without conditions, and it was changed"
    if restored(path, after) == restored(path, before):
        return None
    return "without USE_ROCM it differs from the original"


def restored(path: str, data: bytes) -> bytes:
    """Return a file as a build without ``USE_ROCM`` reads it: conditions on it alone folded away.

    Args:
        path: Its name says its kind; of a kind without conditions nothing is folded.
        data: Its bytes.
    """
    file = TextFile(path, data)
    marks = list(_marks(file))
    if not any(mark.role in {_Role.ROCM, _Role.OTHER} for mark in marks):
        return data
    dropped, branches = _dropped(marks)
    lines = file.lines.all
    moved = _moved(file, branches)
    kept = b"".join(
        data[line.start + (len(UNIT) if number in moved else 0) : line.next]
        for number, line in enumerate(lines)
        if number not in dropped
    )
    head = data[: lines[0].start]
    last = lines[-1]
    if len(lines) - 1 in dropped and last.end == last.next:
        kept = kept.removesuffix(file.lines.newline.encode())
    return head + kept


def _marks(file: TextFile) -> Iterator[_Mark]:
    if file.kind is Kind.CMAKE:
        yield from _of_cmake(file)
    elif file.kind is Kind.MAKE:
        yield from _of_make(file)
    elif file.kind is Kind.SHELL:
        yield from _of_shell(file)


def _of_cmake(file: TextFile) -> Iterator[_Mark]:
    roles = {"elseif": _Role.ELSEIF, "else": _Role.ELSE, "endif": _Role.CLOSE}
    for command in file.cmake:
        line = file.lines.number(command.start)
        if command.name == "if":
            alone = file.lines.number(command.end) == line
            known = {("USE_ROCM",): _Role.ROCM, ("NOT", "USE_ROCM"): _Role.OTHER}
            yield _Mark(line, known.get(command.values(), _Role.FOREIGN) if alone else _Role.FOREIGN)
        elif command.name in roles:
            yield _Mark(line, roles[command.name])


def _of_make(file: TextFile) -> Iterator[_Mark]:
    gate = GATES[Kind.MAKE]
    for one in file.make:
        if one.what is not make.What.DIRECTIVE:
            continue
        line = file.lines.number(one.start)
        written = file.text[one.start : one.end].strip()
        if one.name in {"ifdef", "ifndef", "ifeq", "ifneq"}:
            yield _Mark(line, {gate.rocm: _Role.ROCM, gate.other: _Role.OTHER}.get(written, _Role.FOREIGN))
        elif one.name == "else":
            yield _Mark(line, _Role.ELSEIF if one.value_end > one.value_start else _Role.ELSE)
        elif one.name == "endif":
            yield _Mark(line, _Role.CLOSE)


def _of_shell(file: TextFile) -> Iterator[_Mark]:
    """Yield our own conditions: what stands within them are plain statements, so the next ``fi`` is theirs."""
    gate = GATES[Kind.SHELL]
    roles = {gate.rocm: _Role.ROCM, gate.other: _Role.OTHER}
    inside = False
    for number, line in enumerate(file.lines.all):
        written = file.text[line.start : line.end].strip()
        if not inside and written in roles:
            yield _Mark(number, roles[written])
            inside = True
        elif inside and written in {gate.otherwise, gate.close}:
            yield _Mark(number, _Role.ELSE if written == gate.otherwise else _Role.CLOSE)
            inside = written != gate.close


def _moved(file: TextFile, branches: list[tuple[int, int]]) -> set[int]:
    """Return the lines of branches that are indented within them, all of a branch or none; none that may not be."""
    moved: set[int] = set()
    for first, last in branches:
        indent = file.lines.indent(file.lines.all[first].start) + UNIT
        inside = [number for number in range(first + 1, last) if _text(file, number).strip()]
        lines = [_text(file, number) for number in inside]
        if all(line.startswith(indent) for line in lines) and file.kind and movable(file.kind, _bytes(lines)):
            moved.update(inside)
    return moved


def _bytes(lines: list[str]) -> bytes:
    return "\n".join(lines).encode("utf-8", "replace")


def _text(file: TextFile, number: int) -> str:
    line = file.lines.all[number]
    return file.text[line.start : line.end]


def _dropped(marks: list[_Mark]) -> tuple[set[int], list[tuple[int, int]]]:
    """Return the lines that a build without ``USE_ROCM`` does not read, and the branches that it does read.

    The conditions' own lines are among the former; a branch is given by the lines before and after it.
    """
    dropped: set[int] = set()
    branches: list[tuple[int, int]] = []
    chains: list[list[_Mark]] = []
    for mark in marks:
        if mark.role in {_Role.ROCM, _Role.OTHER, _Role.FOREIGN}:
            chains.append([mark])
        elif chains:
            chains[-1].append(mark)
            if mark.role is _Role.CLOSE:
                gone, branch = _of_chain(chains.pop())
                dropped |= gone
                branches += [branch] if branch else []
    return dropped, branches


def _of_chain(chain: list[_Mark]) -> tuple[set[int], tuple[int, int] | None]:
    opening = chain[0]
    if opening.role is _Role.FOREIGN or len(chain) > 3 or any(mark.role is _Role.ELSEIF for mark in chain):
        return set(), None
    middle = chain[1].line if len(chain) == 3 else chain[-1].line
    gone = (opening.line, middle) if opening.role is _Role.ROCM else (middle, chain[-1].line)
    kept = (middle, chain[-1].line) if opening.role is _Role.ROCM else (opening.line, middle)
    return {opening.line, middle, chain[-1].line, *range(gone[0], gone[1] + 1)}, kept
