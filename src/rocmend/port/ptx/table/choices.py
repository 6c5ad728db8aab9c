"""Moves, comparisons and choices."""

from __future__ import annotations

from rocmend.port.ptx.context import TYPES, Context, arity
from rocmend.port.ptx.program import Instruction, NotUnderstoodError
from rocmend.port.ptx.registry import instruction

_SIGNS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip
_UNORDERED = {"equ": "==", "neu": "!=", "ltu": "<", "leu": "<=", "gtu": ">", "geu": ">="}
_VALUES = frozenset(("b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"))


def _unknown(one: Instruction) -> NotUnderstoodError:
    return NotUnderstoodError(f"{one.name} is not in the table")


@instruction("mov")
def _move(context: Context, one: Instruction) -> None:
    kind = one.modifiers[-1] if len(one.modifiers) == 1 else ""
    if kind not in TYPES or TYPES[kind].size == 8:
        raise _unknown(one)
    arity(one, 2)
    target, value = one.operands
    if value.startswith("{"):
        _pack(context, one, kind, target, value)
    elif target.startswith("{"):
        _unpack(context, one, kind, target, value)
    else:
        context.write(target, kind, context.read(value, kind))


def _pack(context: Context, one: Instruction, kind: str, target: str, value: str) -> None:
    count = value.count(",") + 1
    part = TYPES[kind].size // count
    if f"b{part}" not in TYPES or part < 16:
        raise _unknown(one)
    wide = f"uint{TYPES[kind].size}_t"
    pieces = [context.read(piece, f"b{part}") for piece in context.parts(value, count)]
    text = " | ".join(
        f"(static_cast<{wide}>({piece}) << {part * at})" if at else f"static_cast<{wide}>({piece})"
        for at, piece in enumerate(pieces)
    )
    context.write(target, f"b{TYPES[kind].size}", f"({text})")


def _unpack(context: Context, one: Instruction, kind: str, target: str, value: str) -> None:
    count = target.count(",") + 1
    part = TYPES[kind].size // count
    if f"b{part}" not in TYPES or part < 16:
        raise _unknown(one)
    text = context.read(value, f"b{TYPES[kind].size}")
    # The value is kept: the first part may be written into the register that it is read from.
    name = f"ptx_parts{len(context.lines)}"
    context.do(f"const uint{TYPES[kind].size}_t {name} = {text};")
    for at, piece in enumerate(context.parts(target, count)):
        context.write(piece, f"b{part}", f"static_cast<uint{part}_t>({name} >> {part * at})")


def _compared(context: Context, one: Instruction, sign: str, kind: str) -> str:
    a, b = context.read(one.operands[1], kind), context.read(one.operands[2], kind)
    floating = kind in ("f32", "f64")
    if sign in _SIGNS and not (floating and sign in ("lo", "ls", "hi", "hs")):
        if kind.startswith("b") and sign not in ("eq", "ne"):
            raise _unknown(one)
        if sign == "ne" and floating:  # ordered: false where one is NaN
            return f"({a} < {b} || {a} > {b})"
        return f"({a} {_SIGNS[sign]} {b})"
    if floating and sign in _UNORDERED:
        if sign == "neu":
            return f"!({a} == {b})"
        return f"({a} {_UNORDERED[sign]} {b} || hip_ptx::is_nan({a}) || hip_ptx::is_nan({b}))"
    if floating and sign == "num":
        return f"!(hip_ptx::is_nan({a}) || hip_ptx::is_nan({b}))"
    if floating and sign == "nan":
        return f"(hip_ptx::is_nan({a}) || hip_ptx::is_nan({b}))"
    raise _unknown(one)


@instruction("setp")
def _set_predicate(context: Context, one: Instruction) -> None:
    words = [word for word in one.modifiers if word != "ftz"]
    if len(words) not in (2, 3) or words[-1] not in _VALUES or len(words) != len(one.modifiers):
        raise _unknown(one)
    arity(one, 3 if len(words) == 2 else 4)
    text = _compared(context, one, words[0], words[-1])
    targets = [name.strip() for name in one.operands[0].split("|")]
    both = len(targets) == 2
    if both:
        name = f"ptx_test{len(context.lines)}"
        context.do(f"const bool {name} = {text};")
        text = name
    inverse = f"!{text}"
    if len(words) == 3:
        signs = {"and": "&&", "or": "||", "xor": "!="}
        if words[1] not in signs:
            raise _unknown(one)
        c = context.read(one.operands[3], "pred")
        text, inverse = f"({text} {signs[words[1]]} {c})", f"({inverse} {signs[words[1]]} {c})"
        if both and c.lstrip("!") in {context.registers[one_].cpp for one_ in targets if one_ in context.registers}:
            raise _unknown(one)
    context.write(targets[0], "pred", text)
    if both:
        context.write(targets[1], "pred", inverse)


@instruction("set")
def _set_value(context: Context, one: Instruction) -> None:
    words = one.modifiers
    if len(words) != 3 or words[1] not in ("u32", "s32", "f32") or words[2] not in _VALUES:
        raise _unknown(one)
    arity(one, 3)
    text = _compared(context, one, words[0], words[2])
    yes, no = ("1.0f", "0.0f") if words[1] == "f32" else ("0xffffffffu", "0u")
    context.write(one.operands[0], "f32" if words[1] == "f32" else "u32", f"({text} ? {yes} : {no})")


@instruction("selp")
def _select(context: Context, one: Instruction) -> None:
    kind = one.modifiers[-1] if len(one.modifiers) == 1 else ""
    if kind not in _VALUES:
        raise _unknown(one)
    arity(one, 4)
    a, b = context.read(one.operands[1], kind), context.read(one.operands[2], kind)
    context.write(one.operands[0], kind, f"({context.read(one.operands[3], 'pred')} ? {a} : {b})")


@instruction("slct")
def _select_by_sign(context: Context, one: Instruction) -> None:
    words = one.modifiers
    if len(words) != 2 or words[0] not in _VALUES or words[1] != "s32":
        raise _unknown(one)
    arity(one, 4)
    a, b = context.read(one.operands[1], words[0]), context.read(one.operands[2], words[0])
    context.write(one.operands[0], words[0], f"({context.read(one.operands[3], 's32')} >= 0 ? {a} : {b})")
