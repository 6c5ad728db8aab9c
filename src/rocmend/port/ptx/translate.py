"""From an ``asm`` statement to C++ that AMD GPUs run, or why not."""

from __future__ import annotations

import re
from typing import NamedTuple

from rocmend.port.ptx.context import TYPES, Context, Register
from rocmend.port.ptx.program import Instruction, NotUnderstoodError, Program, program
from rocmend.port.ptx.registry import table
from rocmend.port.ptx.shapes import told
from rocmend.port.ptx.statement import AsmStatement, Operand

__all__ = ["Translation", "translated"]

_KINDS = {"h": "b16", "r": "b32", "l": "b64", "f": "f32", "d": "f64"}
_STORAGE = {"b16": "uint16_t", "b32": "uint32_t", "b64": "uint64_t", "f32": "float", "f64": "double", "pred": "bool"}
_DECLARED = {"b8": "b16", "u8": "b16", "s8": "b16", "f16": "b16", "bf16": "b16", "f16x2": "b32", "bf16x2": "b32"}
_NAME = re.compile(r"\W")
_OPERAND = re.compile(r"(?<!%)%(\d+)")
_MOST = 256


class Translation(NamedTuple):
    """What became of a statement.

    Attributes:
        lines: The C++ in its place, without the last semicolon; empty where there is none.
        reason: Why there is none.
    """

    lines: tuple[str, ...]
    reason: str = ""


def translated(statement: AsmStatement) -> Translation:
    """Return C++ that does what a statement does.

    It is one expression where the statement is one instruction, and a block otherwise, in a loop that runs once so that
    the semicolon after it ends it anywhere. Inputs are evaluated once, outputs written after all instructions.
    """
    if statement.problem:
        return Translation((), statement.problem)
    made = _translated(statement)
    for other in statement.others:
        if _translated(statement._replace(template=other)) != made:
            return Translation((), "its text is built by macros with several definitions")
    return made


def _translated(statement: AsmStatement) -> Translation:
    try:
        found = program(statement.template)
        if not found.instructions and not statement.operands:
            return Translation(("hip_ptx::compiler_barrier()",))
        if len(found.instructions) > _MOST:
            return Translation((), "it is too long")
        short = _one_expression(statement, found)
        return Translation(short) if short else Translation(_block(statement, found))
    except NotUnderstoodError as error:
        return Translation((), str(error))


def _operand_kind(operand: Operand) -> str:
    letter = operand.constraint.lstrip("=+&")
    if letter not in _KINDS:
        raise NotUnderstoodError(f"the constraint {operand.constraint!r} is not known")
    return _KINDS[letter]


def _apply(context: Context, one: Instruction) -> None:
    translate = table().get(one.root)
    if translate is None or told(one):
        raise NotUnderstoodError(told(one) or f"{one.name} is not in the table")
    translate(context, one)


def _one_expression(statement: AsmStatement, found: Program) -> tuple[str, ...]:
    """Return the statement as one expression; nothing where it takes more."""
    if len(found.instructions) != 1 or found.registers or found.instructions[0].guard or "memory" in statement.clobbers:
        return ()
    one = found.instructions[0]
    used = [int(number) for text in one.operands for number in _OPERAND.findall(text)]
    if sorted(used) != list(range(len(statement.operands))) or len(statement.outputs) > 1:
        return ()
    registers = {}
    for at, operand in enumerate(statement.operands):
        registers[f"%{at}"] = _inline(operand)
        if operand.constraint.startswith("+"):
            return ()
    outputs = {f"%{at}": operand.expression for at, operand in enumerate(statement.outputs)}
    context = Context(registers, lambda name, text: f"hip_ptx::out({outputs.get(name, '')}, {text});")
    _apply(context, one)
    if len(context.lines) != 1 or context.carries or context.written not in ([], [*outputs]):
        return ()
    return (context.lines[0].removesuffix(";"),)


def _inline(operand: Operand) -> Register:
    if operand.constraint == "n":
        return Register(f"({operand.expression})", "b32", constant=True)
    kind = _operand_kind(operand)
    if operand.constraint.startswith("="):
        return Register(operand.expression, kind)
    return Register(f"hip_ptx::in<{_STORAGE[kind]}>({operand.expression})", kind)


def _block(statement: AsmStatement, found: Program) -> tuple[str, ...]:
    registers: dict[str, Register] = {}
    before: list[str] = []
    after: list[str] = []
    for at, operand in enumerate(statement.operands):
        name = f"%{at}"
        if operand.constraint == "n":
            registers[name] = Register(f"({operand.expression})", "b32", constant=True)
            continue
        kind = _operand_kind(operand)
        cpp = f"ptx_{at}"
        registers[name] = Register(cpp, kind)
        storage = _STORAGE[kind]
        if operand.constraint.startswith("="):
            before.append(f"{storage} {cpp} = 0;")
        else:
            before.append(f"{storage} {cpp} = hip_ptx::in<{storage}>({operand.expression});")
        if operand.constraint[0] in "=+":
            after.append(f"hip_ptx::out({operand.expression}, {cpp});")
    for at, (name, declared) in enumerate(found.registers.items()):
        kind = _register_kind(declared)
        cpp = f"ptx_{_NAME.sub('_', name)}_{at}"
        registers[name] = Register(cpp, kind)
        before.append(f"{_STORAGE[kind]} {cpp} = 0;")
    context = Context(registers)
    for one in found.instructions:
        _guarded(context, one)
    if context.carries:
        before.append("uint32_t ptx_carry = 0;")
    lines = [*before, *context.lines, *after]
    if "memory" in statement.clobbers:
        lines = ["hip_ptx::compiler_barrier();", *lines, "hip_ptx::compiler_barrier();"]
    return ("do {", *(f"  {line}" for line in lines), "} while (0)")


def _register_kind(declared: str) -> str:
    kind = _DECLARED.get(declared, declared)
    if kind in _STORAGE:
        return kind
    if kind not in TYPES:
        raise NotUnderstoodError(f"it declares registers of the type {declared}")
    return f"b{TYPES[kind].size}"


def _guarded(context: Context, one: Instruction) -> None:
    if not one.guard:
        _apply(context, one)
        return
    test = context.read(one.guard, "pred")
    outer = context.lines
    context.lines = []
    _apply(context, one)
    inside = context.lines
    context.lines = outer
    context.do(f"if ({'!' if one.negated else ''}{test}) {{ {' '.join(inside)} }}")
