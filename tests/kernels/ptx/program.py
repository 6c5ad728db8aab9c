"""Parses PTX into instructions."""

from __future__ import annotations

import re
from typing import NamedTuple


class Instruction(NamedTuple):
    """One instruction: a name with its types, operands, vectors among them in braces, and who carries it out."""

    name: str
    operands: tuple[str, ...]
    guard: str = ""


class Program(NamedTuple):
    """A kernel's instructions, where labels stand among them, and what its names for shared memory mean.

    Attributes:
        instructions: In order.
        labels: Numbers of the instructions behind labels of a name, which blocks may have each for itself.
        shared: Address in shared memory by name.
        size: Bytes of shared memory with a size of their own; what is ``extern`` begins behind them.
    """

    instructions: tuple[Instruction, ...]
    labels: dict[str, list[int]]
    shared: dict[str, int]
    size: int


_LABEL = re.compile(r"([\w$%.]+):(?!:)\s*")
_SHARED = re.compile(r"\.shared\s+\.align\s+(\d+)\s+\.b8\s+(\w+)\[(\d*)\]")


def parse(text: str) -> Program:
    """Return the instructions of a module's one kernel."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"(?m)^\s*\.(loc|file|version|target|address_size|section)\b.*$", "", text)
    sized = [(name, int(size), int(align)) for align, name, size in _SHARED.findall(text) if size]
    shared: dict[str, int] = {}
    end = 0
    for name, size, align in sized:
        end = -(-end // align) * align
        shared[name] = end
        end += size
    end = -(-end // 16) * 16
    shared |= {name: end for _, name, size in _SHARED.findall(text) if not size}
    body = text[text.index("{", text.index(".entry")) + 1 :]
    instructions: list[Instruction] = []
    labels: dict[str, list[int]] = {}
    for piece in body.split(";"):
        statement = piece.strip(" \n\t{}")
        while label := _LABEL.match(statement):
            labels.setdefault(label.group(1), []).append(len(instructions))
            statement = statement[label.end() :].lstrip(" \n\t{}")
        if statement and not statement.startswith("."):
            # A vector's brace at the end was taken away with those of blocks.
            instructions.append(_instruction(statement + "}" * (statement.count("{") - statement.count("}"))))
    return Program(tuple(instructions), labels, shared, end)


def _instruction(statement: str) -> Instruction:
    guard = ""
    if statement.startswith("@"):
        guard, _, statement = statement[1:].partition(" ")
    name, _, rest = statement.strip().partition(" ")
    name, tab, more = name.partition("\t")
    operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+", more + rest if tab else rest)
    return Instruction(name, tuple(operands), guard)
