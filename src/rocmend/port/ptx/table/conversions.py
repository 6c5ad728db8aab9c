"""``cvt`` between whole numbers, floating point and halves; addresses."""

from __future__ import annotations

from rocmend.port.ptx.context import TYPES, Context, arity
from rocmend.port.ptx.program import Instruction, NotUnderstoodError
from rocmend.port.ptx.registry import instruction

_WHOLE = frozenset(("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"))
_FLOATS = frozenset(("f32", "f64"))
_TO_WHOLE = frozenset(("rni", "rzi", "rmi", "rpi"))


def _unknown(one: Instruction) -> NotUnderstoodError:
    return NotUnderstoodError(f"{one.name} is not in the table")


@instruction("cvt")
def _convert(context: Context, one: Instruction) -> None:
    if len(one.modifiers) < 2:
        raise _unknown(one)
    to, given = one.modifiers[-2:]
    found = set(one.modifiers[:-2])
    if to in ("f16x2", "bf16x2") and given == "f32":
        _pair(context, one, to, found)
        return
    arity(one, 2)
    if to in _WHOLE and given in _WHOLE:
        text = _whole(context, one, to, given, found)
    elif to in _WHOLE and given in _FLOATS | {"f16"}:
        text = _rounded(context, one, to, given, found)
    elif to in _FLOATS and given in _WHOLE:
        if not found <= {"rn"}:
            raise _unknown(one)
        text = f"static_cast<{TYPES[to].cpp}>({context.read(one.operands[1], given, narrow=True)})"
    else:
        text = _floating(context, one, to, given, found)
    context.write(one.operands[0], to, text)


def _whole(context: Context, one: Instruction, to: str, given: str, found: set[str]) -> str:
    if not found <= {"sat"}:
        raise _unknown(one)
    value = context.read(one.operands[1], given, narrow=True)
    name = f"hip_ptx::saturated<{TYPES[to].cpp}>" if "sat" in found else f"static_cast<{TYPES[to].cpp}>"
    return f"{name}({value})"


def _rounded(context: Context, one: Instruction, to: str, given: str, found: set[str]) -> str:
    modes = found & _TO_WHOLE
    if len(modes) != 1 or not found <= _TO_WHOLE | {"ftz", "sat"}:
        raise _unknown(one)
    value = context.read(one.operands[1], given)
    if given == "f16":
        value = f"hip_ptx::from_half({value})"
    if "ftz" in found:
        value = f"hip_ptx::ftz({value})"
    return f"hip_ptx::whole<{TYPES[to].cpp}>(hip_ptx::round_{next(iter(modes))}({value}))"


def _floating(context: Context, one: Instruction, to: str, given: str, found: set[str]) -> str:
    value = context.read(one.operands[1], given) if given in TYPES else ""
    if (to, given) == ("f32", "f16") and not found:
        return f"hip_ptx::from_half({value})"
    if (to, given) == ("f32", "bf16") and not found:
        return f"hip_ptx::from_bfloat16({value})"
    if (to, given) in {("f16", "f32"), ("bf16", "f32")}:
        return _narrowed(one, to, value, found)
    if (to, given) == ("f64", "f32") and found <= {"ftz"}:
        return f"static_cast<double>({_ftz(value, found)})"
    if (to, given) == ("f32", "f64") and found <= {"rn", "ftz", "sat"} and "rn" in found:
        text = _ftz(f"static_cast<float>({value})", found)
        return f"hip_ptx::sat({text})" if "sat" in found else text
    if to == given and to in _FLOATS and found <= _TO_WHOLE | {"ftz", "sat"}:
        modes = found & _TO_WHOLE
        text = _ftz(value, found) if to == "f32" else value
        if len(modes) > 1:
            raise _unknown(one)
        if modes:
            text = f"hip_ptx::round_{next(iter(modes))}({text})"
        return f"hip_ptx::sat({text})" if "sat" in found else text
    raise _unknown(one)


def _ftz(text: str, found: set[str]) -> str:
    return f"hip_ptx::ftz({text})" if "ftz" in found else text


def _narrowed(one: Instruction, to: str, value: str, found: set[str]) -> str:
    name = {"f16": "half", "bf16": "bfloat16"}[to]
    if found == {"rn"}:
        return f"hip_ptx::to_{name}({value})"
    if found == {"rz"}:
        return f"hip_ptx::to_{name}_rz({value})"
    if found == {"rn", "relu"} and to == "f16":
        return f"hip_ptx::to_half_relu({value})"
    raise _unknown(one)


def _pair(context: Context, one: Instruction, to: str, found: set[str]) -> None:
    arity(one, 3)
    halves = [
        _narrowed(one, to.removesuffix("x2"), context.read(operand, "f32"), found) for operand in one.operands[1:]
    ]
    context.write(one.operands[0], to, f"hip_ptx::pair({halves[0]}, {halves[1]})")


@instruction("cvta")
def _address(context: Context, one: Instruction) -> None:
    words = one.modifiers
    arity(one, 2)
    if words in (("to", "global", "u64"), ("global", "u64"), ("to", "local", "u64"), ("to", "const", "u64")):
        if "global" not in words:
            raise _unknown(one)
        context.write(one.operands[0], "u64", context.read(one.operands[1], "u64"))
    elif words == ("to", "shared", "u64"):
        pointer = f"hip_ptx::generic<void>({context.read(one.operands[1], 'u64')})"
        context.write(one.operands[0], "u64", f"static_cast<uint64_t>(hip_ptx::shared_address({pointer}))")
    elif words == ("shared", "u64"):
        pointer = f"hip_ptx::shared<void>({context.read(one.operands[1], 'u64')})"
        context.write(one.operands[0], "u64", f"hip_ptx::bits<uint64_t>({pointer})")
    else:
        raise _unknown(one)
