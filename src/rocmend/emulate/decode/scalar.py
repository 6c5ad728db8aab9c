"""Scalar arithmetic, and the instructions that change which lanes are active."""

from __future__ import annotations

import re

from rocmend.emulate.decode.operands import SHAPES, UnmodelledError, operand
from rocmend.emulate.decode.text import Parts
from rocmend.emulate.generation import Generation
from rocmend.emulate.isa.table import Operation, scalar_table
from rocmend.emulate.layout import EXEC, INST, Counter, Flag, Form, Kind, Type

__all__ = ["read", "writes_exec"]

_SAVES = re.compile(r"(s_\w+_(?:save|wr)exec)_b(32|64)")


def writes_exec(name: str) -> bool:
    """Return whether an instruction changes which lanes are active, and saves which they were or are."""
    found = _SAVES.fullmatch(name)
    return found is not None and found[1] in scalar_table()


def read(parts: Parts, _generation: Generation) -> INST | None:
    """Decode a scalar instruction of the table; None where it is another."""
    table = scalar_table()
    if parts.name in table:
        return _scalar(parts, table[parts.name])
    if (wide := _SAVES.fullmatch(parts.name)) and wide[1] in table:
        return _exec(parts, table[wide[1]])
    return None


def _scalar(parts: Parts, operation: Operation) -> INST:
    given = list(parts.operands)
    if parts.modifiers:
        raise UnmodelledError(f"the modifier {parts.modifiers[0]}", parts.text)
    inst = INST(op=operation.number, form=Form.SALU, counter=Counter.NONE)
    if operation.result != "none":
        inst.d = operand(given.pop(0), operation.result, parts.text)
    if "k" in operation.words:
        value = int(given.pop(), 0) & 0xFFFF
        inst.immediate = value - 0x10000 if value & 0x8000 else value
    if len(given) != len(operation.operands):
        raise UnmodelledError(f"{parts.name} with {len(given)} operands", parts.text)
    for number, (text, kind) in enumerate(zip(given, operation.operands, strict=True)):
        one = operand(text, kind, parts.text)
        if one.kind == Kind.SGPR and SHAPES[kind][1] == 1:
            one.dwords = 1
        if one.modifiers and kind != "f32":
            raise UnmodelledError(f"the sign of an operand of {parts.name}", parts.text)
        inst.s[number] = one
    inst.sources = len(operation.operands)
    if "c" in operation.words:
        inst.flags |= Flag.WRITES_SCC
    if "r" in operation.words:
        inst.flags |= Flag.READS_SCC
    if operation.reads_result:
        inst.flags |= Flag.READS_D
    return inst


def _exec(parts: Parts, operation: Operation) -> INST:
    inst = INST(op=operation.number, form=Form.SALU, counter=Counter.NONE, sources=1)
    inst.d = operand(parts.operands[0], "u64" if parts.name.endswith("64") else "u32", parts.text)
    inst.s[0] = operand(parts.operands[1], "u64" if parts.name.endswith("64") else "u32", parts.text)
    inst.e.kind, inst.e.index, inst.e.dwords, inst.e.type = Kind.SGPR, EXEC, inst.d.dwords, Type.MASK
    inst.flags = Flag.WRITES_SCC | (Flag.TWO if "w" in operation.words else Flag(0))
    return inst
