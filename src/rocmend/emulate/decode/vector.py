"""Vector arithmetic: operands by the table, and the modifiers that follow them."""

from __future__ import annotations

from rocmend.emulate.decode.operands import UnmodelledError, operand
from rocmend.emulate.decode.text import Parts
from rocmend.emulate.generation import Generation
from rocmend.emulate.isa.table import Operation, vector_table
from rocmend.emulate.layout import INST, Counter, Flag, Form, Kind, Modifier

__all__ = ["read"]

_FLOATS = frozenset({"f16", "rf16", "f32", "f64", "pkf16", "pk32", "mix"})


def read(parts: Parts, generation: Generation) -> INST | None:
    """Decode a vector instruction of the table; None where it is another."""
    operation = vector_table().get(parts.name)
    if operation is None:
        return None
    given = list(parts.operands)
    inst = INST(op=operation.number, form=Form.VALU, counter=Counter.NONE)
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
    kinds = [one for one in operation.operands if one not in {"sel8", "sel16"}]
    kinds = [one for one in kinds if one != "vcc"]
    if parts.name == "v_cndmask_b32" and len(given) == 2:
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
    inst.flags = flags | _flags(parts, operation, generation)
    if "high" in operation.words:
        inst.d.modifiers |= Modifier.HIGH
    _modify(inst, parts, operation, kinds)
    return inst


def _flags(parts: Parts, operation: Operation, generation: Generation) -> Flag:
    flags = Flag.READS_D if operation.reads_result else Flag(0)
    if "vcc" in operation.operands:
        flags |= Flag.IMPLICIT_VCC
    selects = any(word.startswith("op_sel") for word in parts.modifiers)
    if "z" in operation.words and generation.major == 9 and not selects:
        flags |= Flag.ZERO_HIGH
    if _FLOATS & {operation.result, *operation.operands}:
        flags |= Flag.FLOATS
    return flags | (Flag.FNUZ if generation.fnuz else Flag(0))


def _modify(inst: INST, parts: Parts, operation: Operation, kinds: list[str]) -> None:
    """Apply what follows the operands."""
    selected = parts.bits("op_sel")
    for number, kind in enumerate(kinds):
        _select_halves(inst, number, kind, parts)
    if len(selected) > len(kinds) and selected[len(kinds)]:
        inst.d.modifiers |= Modifier.HIGH
    if operation.operands[-1:] in (("sel8",), ("sel16",)):
        _select_bytes(inst, parts, operation.operands[-1], selected)
    for word in parts.modifiers:
        name, _, value = word.partition(":")
        if name in _BY_OPERAND:
            continue
        if name == "clamp":
            if not ("clamp" in operation.words or operation.result in _CLAMPED):
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


_BY_OPERAND = frozenset({"op_sel", "op_sel_hi", "neg_lo", "neg_hi", "row_mask", "bank_mask", "byte_sel"})
_CLAMPED = frozenset({"f16", "rf16", "f32", "f64", "pkf16", "pk32"})


def _select_halves(inst: INST, number: int, kind: str, parts: Parts) -> None:
    """Apply which halves of an operand are taken, and how they are negated."""
    one = inst.s[number]

    def said(name: str, default: int = 0) -> int:
        digits = parts.bits(name)
        return digits[number] if number < len(digits) else default

    if said("op_sel"):
        one.modifiers |= Modifier.HIGH
    if kind.startswith("pk"):
        if said("op_sel_hi", 1):
            one.modifiers |= Modifier.SELECT_HIGH
        if one.kind == Kind.SGPR and kind in {"pk32", "pkb32"} and one.dwords == 1:
            raise UnmodelledError("a packed operand of one scalar register", parts.text)
    elif kind == "mix" and said("op_sel_hi"):
        one.modifiers |= Modifier.SELECT_HIGH
        if one.kind == Kind.LITERAL:
            one.value = _half_constant(parts.operands[number + 1], parts.text)
    if said("neg_lo"):  # of bytes that are signed or not: that they are
        one.modifiers |= Modifier.SEXT if kind == "iu" else Modifier.NEG
    if said("neg_hi"):
        one.modifiers |= Modifier.ABS if kind == "mix" else Modifier.NEG_HIGH


def _half_constant(text: str, whole: str) -> int:
    made = operand(text, "f16", whole)
    return int(made.value)


def _select_bytes(inst: INST, parts: Parts, kind: str, selected: list[int]) -> None:
    """Apply which byte, or which half, of the operand a conversion from 8 bits takes."""
    high = bool(inst.s[0].modifiers & Modifier.HIGH)
    inst.s[0].modifiers &= ~Modifier.HIGH
    if kind == "sel8":
        byte = parts.value("byte_sel", selected[0] | selected[1] << 1 if len(selected) > 1 else sum(selected[:1]))
        if not inst.s[0].select:
            inst.s[0].select = 1 + byte
    elif high:
        inst.s[0].select = 6


_DPP = {
    "row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120, "row_share": 0x150, "row_newbcast": 0x150,
    "row_xmask": 0x160,
}  # fmt: skip
_DPP_PLAIN = {
    "row_mirror": 0x140,
    "row_half_mirror": 0x141,
    "wave_shl": 0x130,
    "wave_rol": 0x134,
    "wave_shr": 0x138,
    "wave_ror": 0x13C,
}


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
