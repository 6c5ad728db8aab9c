"""Instructions as the engine executes them, from LLVM's text of them.

The tables say what operands an arithmetic instruction has; memory, matrix and control instructions are read by the
modules beside this one. What none of them knows is an error that names the instruction: it is raised when the code is
decoded, or, for code that a launch may never reach, when a wave comes to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from rocmend.emulate import control, lanes, matrix, memory
from rocmend.emulate.disassemble import Line
from rocmend.emulate.generation import Generation
from rocmend.emulate.isa.table import Operation, scalar_table, vector_table
from rocmend.emulate.layout import EXEC, INST, Counter, Flag, Form, Kind, Modifier, Type
from rocmend.emulate.operands import UnmodelledError, operand
from rocmend.emulate.text import Parts, parts_of

__all__ = ["Decoded", "decode"]

_FLOATS = frozenset({"f16", "f32", "f64", "pkf16", "pk32", "mix"})


class Decoded(NamedTuple):
    """A program, ready for the engine.

    Args:
        instructions: As the engine takes them; the second of a pair follows the first.
        texts: LLVM's text of each.
        unknown: What the engine cannot execute, by the number of the instruction.
    """

    instructions: list[INST]
    texts: list[str]
    unknown: dict[int, UnmodelledError]


def decode(lines: list[Line], generation: Generation) -> Decoded:
    """Decode a program.

    Args:
        lines: LLVM's text of it.
        generation: What the target is.
    """
    made: list[INST] = []
    texts: list[str] = []
    unknown: dict[int, UnmodelledError] = {}
    starts: dict[int, int] = {}
    for line in lines:
        starts[line.offset] = len(made)
        try:
            pieces = _decode_line(line, generation)
        except UnmodelledError as error:
            unknown[len(made)] = error
            pieces = [INST(form=Form.TRAP, immediate=-1)]
        for piece in pieces:
            piece.pc, piece.generation = line.offset, generation.major
            made.append(piece)
            texts.append(line.text)
    for number, one in enumerate(made):
        one.next = number + (2 if one.flags & Flag.DUAL and one.form == Form.VALU else 1)
        if one.form == Form.BRANCH and one.op in control.WITH_TARGET:
            to = one.pc + 4 + 4 * one.immediate
            if to not in starts:
                unknown[number] = UnmodelledError(f"a branch to 0x{to:x}, where no instruction begins,", texts[number])
                one.form = Form.TRAP
            else:
                one.target = starts[to]
    return Decoded(made, texts, unknown)


def _decode_line(line: Line, generation: Generation) -> list[INST]:
    if " :: " in line.text:
        pair = [_decode_one(half.strip().replace("v_dual_", "v_", 1), generation) for half in line.text.split(" :: ")]
        pair[0].flags |= Flag.DUAL
        return pair
    return [_decode_one(line.text, generation, line.size)]


_READERS: tuple[Callable[[Parts, Generation], INST | None], ...] = (memory.read, lanes.read, matrix.read)


def _decode_one(text: str, generation: Generation, size: int = 4) -> INST:
    parts = parts_of(text)
    if (found := control.read(parts, generation, size)) is not None:
        return found
    for reader in _READERS:
        if (found := reader(parts, generation)) is not None:
            return found
    if (operation := vector_table().get(parts.name)) is not None:
        return _vector(parts, operation, generation)
    if (operation := scalar_table().get(parts.name)) is not None:
        return _scalar(parts, operation)
    if (wide := re.fullmatch(r"(s_\w+_(?:save|wr)exec)_b(32|64)", parts.name)) and wide[1] in scalar_table():
        return _exec(parts, scalar_table()[wide[1]])
    raise UnmodelledError(f"{parts.name} on {generation.target}", text)


def _vector(parts: Parts, operation: Operation, generation: Generation) -> INST:
    given = list(parts.operands)
    inst = INST(op=operation.index, form=Form.VALU, counter=Counter.NONE)
    flags = Flag(0)
    if operation.result != "none":
        inst.d = operand(given.pop(0), operation.result, parts.text)
    mask_wide = generation.lanes // 32
    if operation.mask:
        exec_only = parts.name.startswith("v_cmpx") and generation.major >= 10
        inst.e = operand("exec" if exec_only else given.pop(0), "m", parts.text)
        inst.e.dwords = mask_wide
        if parts.name.startswith("v_cmpx") and not exec_only:
            flags |= Flag.TWO
    if operation.reads_result:
        flags |= Flag.READS_D
    kinds = [one for one in operation.operands if one not in {"sel8", "sel16"}]
    implicit = "vcc" in kinds
    kinds = [one for one in kinds if one != "vcc"]
    if parts.name == "v_cndmask_b32" and len(given) == 2:  # noqa: PLR2004  of a pair: its mask is always VCC
        given.append("vcc")
    if len(given) != len(kinds):
        if parts.name == "v_nop":
            return INST(form=Form.NOP)
        raise UnmodelledError(f"{parts.name} with {len(given)} operands", parts.text)
    for number, (text, kind) in enumerate(zip(given, kinds, strict=True)):
        inst.s[number] = operand(text, kind, parts.text)
        if kind == "m":
            inst.s[number].dwords = mask_wide
    inst.sources = len(kinds)
    if implicit:
        flags |= Flag.IMPLICIT_VCC
    if "z" in operation.words and generation.major == 9 and "op_sel" not in " ".join(parts.modifiers):
        flags |= Flag.ZERO_HIGH
    if _FLOATS & {operation.result, *operation.operands}:
        flags |= Flag.FLOATS
    if generation.fnuz:
        flags |= Flag.FNUZ
    if "high" in operation.words:
        inst.d.modifiers |= Modifier.HIGH
        flags &= ~Flag.ZERO_HIGH
    inst.flags = flags
    _modify(inst, parts, operation, kinds)
    return inst


def _modify(inst: INST, parts: Parts, operation: Operation, kinds: list[str]) -> None:
    """Apply what follows the operands."""
    packed = [kind.startswith("pk") for kind in kinds]
    selected, high = parts.bits("op_sel"), parts.bits("op_sel_hi")
    for number, kind in enumerate(kinds):
        one = inst.s[number]
        if packed[number]:
            if number < len(selected) and selected[number]:
                one.modifiers |= Modifier.HIGH
            if number >= len(high) or high[number]:
                one.modifiers |= Modifier.SELECT_HIGH
            if one.kind == Kind.SGPR and kind in {"pk32", "pkb32"} and one.dwords == 1:
                raise UnmodelledError("a packed operand of one scalar register", parts.text)
        elif kind == "mix":
            if number < len(high) and high[number]:
                one.modifiers |= Modifier.SELECT_HIGH
                if one.kind == Kind.LITERAL:
                    one.value = _half_constant(parts.operands[number + 1], parts.text)
            if number < len(selected) and selected[number]:
                one.modifiers |= Modifier.HIGH
        elif number < len(selected) and selected[number]:
            one.modifiers |= Modifier.HIGH
        for name, bit in (("neg_lo", Modifier.NEG), ("neg_hi", Modifier.NEG_HIGH)):
            digits = parts.bits(name)
            if number < len(digits) and digits[number]:
                one.modifiers |= Modifier.ABS if kind == "mix" and name == "neg_hi" else bit
    if len(selected) > len(kinds) and selected[len(kinds)]:
        inst.d.modifiers |= Modifier.HIGH
    if operation.operands[-1:] in (("sel8",), ("sel16",)):
        _select_bytes(inst, parts, operation.operands[-1], selected)
    for word in parts.modifiers:
        name, _, value = word.partition(":")
        if name in {"op_sel", "op_sel_hi", "neg_lo", "neg_hi", "row_mask", "bank_mask", "byte_sel"}:
            continue
        if name == "clamp":
            if not ("clamp" in operation.words or operation.result in {"f16", "f32", "f64", "pkf16", "pk32"}):
                raise UnmodelledError(f"clamp of {parts.name}", parts.text)
            inst.flags |= Flag.CLAMP
        elif name in {"mul", "div"}:
            inst.omod = 3 if name == "div" else {"2": 1, "4": 2}[value]
        elif name == "bitop3":
            inst.immediate = int(value, 0)
        elif not _dpp(inst, name, value) and not _sdwa(inst, name, value):
            raise UnmodelledError(f"the modifier {word}", parts.text)
    if inst.flags & Flag.DPP:
        inst.row_mask, inst.bank_mask = parts.value("row_mask", 15), parts.value("bank_mask", 15)


def _half_constant(text: str, whole: str) -> int:
    made = operand(text, "f16", whole)
    return int(made.value)


def _select_bytes(inst: INST, parts: Parts, kind: str, selected: list[int]) -> None:
    """Apply which byte, or which half, of the operand a conversion from 8 bits takes."""
    inst.s[0].modifiers &= ~Modifier.HIGH
    if kind == "sel8":
        byte = parts.value("byte_sel", selected[0] | selected[1] << 1 if len(selected) > 1 else sum(selected[:1]))
        if not inst.s[0].select:
            inst.s[0].select = 1 + byte
    elif selected and selected[0]:
        inst.s[0].select = 6


_DPP = {
    "row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120, "row_share": 0x150, "row_newbcast": 0x150,
    "row_xmask": 0x160,
}  # fmt: skip
_DPP_PLAIN = {"row_mirror": 0x140, "row_half_mirror": 0x141, "wave_shl": 0x130, "wave_rol": 0x134, "wave_shr": 0x138, "wave_ror": 0x13C}


def _dpp(inst: INST, name: str, value: str) -> bool:
    if name == "quad_perm":
        inst.dpp = sum(int(one) << 2 * at for at, one in enumerate(value.strip("[]").split(",")))
    elif name in _DPP:
        inst.dpp = _DPP[name] + int(value, 0)
    elif name in _DPP_PLAIN:
        inst.dpp = _DPP_PLAIN[name]
    elif name == "row_bcast":
        inst.dpp = 0x142 if int(value) == 15 else 0x143
    elif name == "dpp8":
        inst.flags |= Flag.DPP8
        inst.immediate = sum(int(one) << 3 * at for at, one in enumerate(value.strip("[]").split(",")))
    elif name == "bound_ctrl":
        inst.flags |= Flag.BOUND_CTRL
    elif name == "fi":
        inst.flags |= Flag.FETCH_INACTIVE if value == "1" else 0
    else:
        return False
    inst.flags |= Flag.DPP
    return True


_SELECTS = {"DWORD": 0, "BYTE_0": 1, "BYTE_1": 2, "BYTE_2": 3, "BYTE_3": 4, "WORD_0": 5, "WORD_1": 6}


def _sdwa(inst: INST, name: str, value: str) -> bool:
    if name in {"src0_sel", "src1_sel"}:
        inst.s[int(name[3])].select = _SELECTS[value]
    elif name == "dst_sel":
        inst.d.select = _SELECTS[value]
    elif name == "dst_unused":
        inst.flags |= {"UNUSED_PAD": Flag(0), "UNUSED_SEXT": Flag.SDWA_SEXT, "UNUSED_PRESERVE": Flag.PRESERVE}[value]
    else:
        return False
    inst.flags = (inst.flags | Flag.SDWA) & ~Flag.ZERO_HIGH
    return True


def _scalar(parts: Parts, operation: Operation) -> INST:
    given = list(parts.operands)
    inst = INST(op=operation.index, form=Form.SALU, counter=Counter.NONE)
    if operation.result != "none":
        inst.d = operand(given.pop(0), operation.result, parts.text)
    if "k" in operation.words:
        value = int(given.pop(), 0) & 0xFFFF
        inst.immediate = value - 0x10000 if value & 0x8000 else value
    if len(given) != len(operation.operands):
        raise UnmodelledError(f"{parts.name} with {len(given)} operands", parts.text)
    for number, (text, kind) in enumerate(zip(given, operation.operands, strict=True)):
        one = operand(text, kind, parts.text)
        if one.kind == Kind.SGPR and SHAPE_OF[kind] == 1:
            one.dwords = 1
        inst.s[number] = one
    inst.sources = len(operation.operands)
    if "c" in operation.words:
        inst.flags |= Flag.WRITES_SCC
    if "r" in operation.words:
        inst.flags |= Flag.READS_SCC
    if operation.reads_result:
        inst.flags |= Flag.READS_D
    return inst


SHAPE_OF = {"f32": 1, "u32": 1, "i32": 1, "b32": 1, "u64": 2, "i64": 2, "b64": 2}


def _exec(parts: Parts, operation: Operation) -> INST:
    inst = INST(op=operation.index, form=Form.SALU, counter=Counter.NONE, sources=1)
    inst.d = operand(parts.operands[0], "u64" if parts.name.endswith("64") else "u32", parts.text)
    inst.s[0] = operand(parts.operands[1], "u64" if parts.name.endswith("64") else "u32", parts.text)
    inst.e.kind, inst.e.index, inst.e.dwords, inst.e.type = Kind.SGPR, EXEC, inst.d.dwords, Type.MASK
    inst.flags = Flag.WRITES_SCC | (Flag.TWO if "w" in operation.words else Flag(0))
    return inst
