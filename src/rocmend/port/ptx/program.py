"""The text of an ``asm`` statement, as instructions."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Instruction", "NotUnderstoodError", "Program", "program"]


class NotUnderstoodError(Exception):
    """Something in a PTX text is for a person; the message says what."""


class Instruction(NamedTuple):
    """One instruction.

    Attributes:
        guard: The predicate that it runs under; empty where it always runs.
        negated: Whether it runs where the predicate is false.
        name: The opcode with its modifiers: ``fma.rn.f32``.
        operands: As written: ``%0``, ``p``, ``[a+4]``, ``{%0, %1}``, ``d|p``, ``0x1f``.
    """

    guard: str
    negated: bool
    name: str
    operands: tuple[str, ...]

    @property
    def root(self) -> str:
        """Return the opcode without modifiers."""
        return self.name.split(".", 1)[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """Return what follows the opcode."""
        return tuple(self.name.split(".")[1:])


class Program(NamedTuple):
    """What a text holds: registers with their types, and instructions in order."""

    registers: dict[str, str]
    instructions: tuple[Instruction, ...]


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_REGISTER = re.compile(r"\.reg\s*\.(\w+)\s+(.+)", re.DOTALL)
_RANGE = re.compile(r"([%\w$]+)<(\d+)>")
_GUARD = re.compile(r"@(!?)\s*([%\w$]+)\s+(.+)", re.DOTALL)
_LABEL = re.compile(r"[\w$]+\s*:(?!:)")
_NAME = re.compile(r"[a-z][\w.:]*(?=[\s{\[%]|$)")
_MOST_REGISTERS = 4096


def program(template: str) -> Program:
    """Return the instructions of a text.

    Raises:
        NotUnderstoodError: It is no plain list of instructions: it has labels, branches or variables.
    """
    registers: dict[str, str] = {}
    found = []
    for piece in _COMMENT.sub(" ", template).split(";"):
        text = _without_block(piece)
        if not text:
            continue
        if text.startswith(".reg"):
            _declare(text, registers)
        elif text.startswith(".pragma"):
            continue
        elif text.startswith("."):
            raise NotUnderstoodError(f"it declares {text.split()[0]}")
        elif _LABEL.match(text):
            raise NotUnderstoodError("it has labels")
        else:
            found.append(_instruction(text))
    return Program(registers, tuple(found))


def _without_block(text: str) -> str:
    """Return a piece without the braces of a block around instructions; those of operands stay."""
    text = text.strip()
    while text.startswith(("{", "}")):
        text = text[1:].strip()
    while text.endswith("}") and text.count("}") > text.count("{"):
        text = text[:-1].strip()
    return text


def _declare(text: str, registers: dict[str, str]) -> None:
    match = _REGISTER.fullmatch(text)
    if match is None:
        raise NotUnderstoodError("a declaration of registers is not understood")
    for name in match.group(2).split(","):
        ranged = _RANGE.fullmatch(name.strip())
        if ranged:
            count = int(ranged.group(2))
            if count > _MOST_REGISTERS:
                raise NotUnderstoodError("it declares too many registers")
            registers.update((f"{ranged.group(1)}{i}", match.group(1)) for i in range(count))
        elif name.strip() in registers and registers[name.strip()] != match.group(1):
            raise NotUnderstoodError("a register has two types")
        else:
            registers[name.strip()] = match.group(1)


def _instruction(text: str) -> Instruction:
    guard = _GUARD.fullmatch(text)
    negated = False
    predicate = ""
    if guard:
        negated = guard.group(1) == "!"
        predicate = guard.group(2)
        text = guard.group(3).strip()
    name = _NAME.match(text)
    if name is None:
        raise NotUnderstoodError(f"{text.split()[0]!r} is no instruction")
    return Instruction(predicate, negated, name.group(), tuple(_split(text[name.end() :])))


def _split(text: str) -> list[str]:
    """Return the operands: commas inside of braces and brackets part nothing."""
    found = []
    depth = 0
    current = ""
    for letter in text:
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and depth == 0:
            found.append(current.strip())
            current = ""
        else:
            current += letter
    if current.strip():
        found.append(current.strip())
    if depth or any(not one for one in found):
        raise NotUnderstoodError("its operands are not understood")
    return found
