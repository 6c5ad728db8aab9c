"""Whole numbers: arithmetic, bits, shifts, carries, comparisons and choices."""

from __future__ import annotations

from rocmend.port.ptx.context import TYPES, Context, arity
from rocmend.port.ptx.program import Instruction, NotUnderstoodError
from rocmend.port.ptx.registry import instruction
from rocmend.port.ptx.table import floats

_WHOLE = frozenset(("u16", "s16", "u32", "s32", "u64", "s64"))
_BITS = frozenset(("b16", "b32", "b64"))
_SIGNS = {"add": "+", "sub": "-"}


def kind_of(one: Instruction, allowed: frozenset[str]) -> str:
    """Return the type that an instruction names last.

    Raises:
        NotUnderstoodError: It is none of those allowed.
    """
    kind = one.modifiers[-1] if one.modifiers else ""
    if kind not in allowed:
        raise NotUnderstoodError(f"{one.name} is not in the table")
    return kind


def plain(one: Instruction, *known: str) -> frozenset[str]:
    """Return the modifiers between opcode and type.

    Raises:
        NotUnderstoodError: There are others than those known.
    """
    found = frozenset(one.modifiers[:-1])
    if not found <= frozenset(known):
        raise NotUnderstoodError(f"{one.name} is not in the table")
    return found


def _wrapped(kind: str, left: str, sign: str, right: str) -> str:
    """Return a sum, difference or product that wraps, whatever the sign: computed without one."""
    made = TYPES[kind]
    wide = f"uint{max(made.size, 32)}_t"
    return f"static_cast<{made.cpp}>(static_cast<{wide}>({left}) {sign} static_cast<{wide}>({right}))"


@instruction("add", "sub")
def _sum(context: Context, one: Instruction) -> None:
    if one.modifiers and one.modifiers[-1] not in _WHOLE:
        floats.arithmetic(context, one)
        return
    kind = kind_of(one, _WHOLE)
    found = plain(one, "cc", "sat")
    arity(one, 3)
    a, b = context.read(one.operands[1], kind), context.read(one.operands[2], kind)
    if "cc" in found:
        _carried(context, one, kind, a, b, fresh=True)
    elif "sat" in found:
        if kind != "s32":
            raise NotUnderstoodError(f"{one.name} is not in the table")
        context.write(one.operands[0], kind, f"hip_ptx::{one.root}_sat_s32({a}, {b})")
    else:
        context.write(one.operands[0], kind, _wrapped(kind, a, _SIGNS[one.root], b))


@instruction("addc", "subc")
def _sum_with_carry(context: Context, one: Instruction) -> None:
    kind = kind_of(one, frozenset(("u32", "s32", "u64", "s64")))
    plain(one, "cc")
    arity(one, 3)
    if not context.carries:
        raise NotUnderstoodError("it takes a carry from another statement")
    a, b = context.read(one.operands[1], kind), context.read(one.operands[2], kind)
    _carried(context, one, kind, a, b, fresh=False)


def _carried(  # noqa: PLR0913  an addition has two operands, a type and a flag
    context: Context, one: Instruction, kind: str, a: str, b: str, *, fresh: bool
) -> None:
    unsigned = f"uint{TYPES[kind].size}_t"
    flag = "ptx_carry"
    if fresh:
        context.do("ptx_carry = 0;")
    elif "cc" not in one.modifiers:  # the flag stays as it is
        flag = f"ptx_carry{len(context.lines)}"
        context.do(f"uint32_t {flag} = ptx_carry;")
    context.carries = True
    name = "add_carry" if one.root.startswith("add") else "sub_borrow"
    context.write(one.operands[0], kind.replace("s", "u"), f"hip_ptx::{name}<{unsigned}>({a}, {b}, {flag})")


@instruction("mul", "mul24")
def _product(context: Context, one: Instruction) -> None:
    if one.modifiers and one.modifiers[-1] not in _WHOLE:
        floats.arithmetic(context, one)
        return
    kind = kind_of(one, _WHOLE)
    halves = plain(one, "lo", "hi", "wide")
    half = next(iter(halves)) if len(halves) == 1 else ""
    arity(one, 3)
    a, b = context.read(one.operands[1], kind), context.read(one.operands[2], kind)
    if one.root == "mul24":
        if half != "lo" or kind not in ("u32", "s32"):
            raise NotUnderstoodError(f"{one.name} is not in the table")
        context.write(one.operands[0], kind, f"hip_ptx::mul24_lo_{kind}({a}, {b})")
        return
    result, text = _multiplied(one, kind, half, a, b)
    context.write(one.operands[0], result, text)


def _multiplied(one: Instruction, kind: str, half: str, a: str, b: str) -> tuple[str, str]:
    size = TYPES[kind].size
    if half == "lo":
        return kind, _wrapped(kind, a, "*", b)
    if half == "wide" and size < 64:
        wide = f"{kind[0]}{2 * size}"
        made = TYPES[wide].cpp
        return wide, f"static_cast<{made}>(static_cast<{made}>({a}) * static_cast<{made}>({b}))"
    if half == "hi" and size == 16:
        base = "int32_t" if kind == "s16" else "uint32_t"
        return kind, f"static_cast<{TYPES[kind].cpp}>((static_cast<{base}>({a}) * static_cast<{base}>({b})) >> 16)"
    if half == "hi":
        return kind, f"hip_ptx::mul_hi_{kind}({a}, {b})"
    raise NotUnderstoodError(f"{one.name} is not in the table")


@instruction("mad", "madc")
def _product_and_sum(context: Context, one: Instruction) -> None:
    if one.modifiers and one.modifiers[-1] not in _WHOLE:
        floats.arithmetic(context, one)
        return
    kind = kind_of(one, _WHOLE)
    found = plain(one, "lo", "hi", "wide", "cc")
    halves = found - {"cc"}
    arity(one, 4)
    if len(halves) != 1:
        raise NotUnderstoodError(f"{one.name} is not in the table")
    a, b = context.read(one.operands[1], kind), context.read(one.operands[2], kind)
    result, text = _multiplied(one, kind, next(iter(halves)), a, b)
    c = context.read(one.operands[3], result)
    if "cc" in found or one.root == "madc":
        if one.root == "madc" and not context.carries:
            raise NotUnderstoodError("it takes a carry from another statement")
        sum_ = Instruction(
            "", False, f"add{'c' if one.root == 'madc' else ''}.{'cc.' if 'cc' in found else ''}{kind}", ()
        )
        _carried(context, sum_._replace(operands=one.operands[:1]), result, text, c, fresh=one.root == "mad")
        return
    context.write(one.operands[0], result, _wrapped(result, text, "+", c))


@instruction("div", "rem")
def _quotient(context: Context, one: Instruction) -> None:
    if one.modifiers and one.modifiers[-1] not in _WHOLE:
        floats.arithmetic(context, one)
        return
    kind = kind_of(one, frozenset(("u16", "u32", "u64")))
    plain(one)
    arity(one, 3)
    sign = "/" if one.root == "div" else "%"
    a, b = context.read(one.operands[1], kind), context.read(one.operands[2], kind)
    context.write(one.operands[0], kind, f"static_cast<{TYPES[kind].cpp}>({a} {sign} {b})")


@instruction("min", "max")
def _extreme(context: Context, one: Instruction) -> None:
    if one.modifiers and one.modifiers[-1] not in _WHOLE:
        floats.extreme(context, one)
        return
    kind = kind_of(one, _WHOLE)
    plain(one)
    arity(one, 3)
    a, b = context.read(one.operands[1], kind), context.read(one.operands[2], kind)
    context.write(one.operands[0], kind, f"hip_ptx::{one.root}<{TYPES[kind].cpp}>({a}, {b})")


@instruction("abs", "neg")
def _one_operand(context: Context, one: Instruction) -> None:
    if one.modifiers and one.modifiers[-1] not in _WHOLE:
        floats.sign(context, one)
        return
    kind = kind_of(one, frozenset(("s32", "s64")))
    plain(one)
    arity(one, 2)
    a = context.read(one.operands[1], kind)
    text = f"hip_ptx::abs_{kind}({a})" if one.root == "abs" else _wrapped(kind, "0", "-", a)
    context.write(one.operands[0], kind, text)


@instruction("sad")
def _difference(context: Context, one: Instruction) -> None:
    kind = kind_of(one, frozenset(("u32", "s32")))
    arity(one, 4)
    values = ", ".join(context.read(operand, kind) for operand in one.operands[1:])
    context.write(one.operands[0], kind, f"hip_ptx::sad_{kind}({values})")


_LOGIC = {"and": "&", "or": "|", "xor": "^"}


@instruction("and", "or", "xor")
def _logic(context: Context, one: Instruction) -> None:
    kind = kind_of(one, _BITS | {"pred"})
    plain(one)
    arity(one, 3)
    a, b = context.read(one.operands[1], kind), context.read(one.operands[2], kind)
    context.write(one.operands[0], kind, f"static_cast<{TYPES[kind].cpp}>({a} {_LOGIC[one.root]} {b})")


@instruction("not", "cnot")
def _inverse(context: Context, one: Instruction) -> None:
    kind = kind_of(one, _BITS | {"pred"})
    arity(one, 2)
    a = context.read(one.operands[1], kind)
    if kind == "pred":
        text = f"!{a}"
    elif one.root == "cnot":
        text = f"static_cast<{TYPES[kind].cpp}>({a} == 0)"
    else:
        text = f"static_cast<{TYPES[kind].cpp}>(~{a})"
    context.write(one.operands[0], kind, text)


@instruction("shl", "shr")
def _shift(context: Context, one: Instruction) -> None:
    kind = kind_of(one, _BITS | (_WHOLE if one.root == "shr" else frozenset()))
    plain(one)
    arity(one, 3)
    a, by = context.read(one.operands[1], kind), context.read(one.operands[2], "u32")
    context.write(one.operands[0], kind, f"hip_ptx::{one.root}<{TYPES[kind].cpp}>({a}, {by})")


@instruction("shf")
def _funnel(context: Context, one: Instruction) -> None:
    if one.modifiers not in {(side, mode, "b32") for side in "lr" for mode in ("wrap", "clamp")}:
        raise NotUnderstoodError(f"{one.name} is not in the table")
    arity(one, 4)
    values = ", ".join(context.read(operand, "u32") for operand in one.operands[1:])
    context.write(one.operands[0], "b32", f"hip_ptx::shf_{one.modifiers[0]}_{one.modifiers[1]}({values})")


@instruction("bfe")
def _extract(context: Context, one: Instruction) -> None:
    kind = kind_of(one, frozenset(("u32", "s32", "u64", "s64")))
    arity(one, 4)
    made = TYPES[kind].cpp
    a = context.read(one.operands[1], kind)
    place = ", ".join(context.read(operand, "u32") for operand in one.operands[2:])
    name = f"bfe_signed<{made}, u{made}>" if TYPES[kind].signed else f"bfe_unsigned<{made}>"
    context.write(one.operands[0], kind, f"hip_ptx::{name}({a}, {place})")


@instruction("bfi")
def _insert(context: Context, one: Instruction) -> None:
    kind = kind_of(one, frozenset(("b32", "b64")))
    arity(one, 5)
    values = ", ".join(context.read(operand, kind) for operand in one.operands[1:3])
    place = ", ".join(context.read(operand, "u32") for operand in one.operands[3:])
    context.write(one.operands[0], kind, f"hip_ptx::bfi<{TYPES[kind].cpp}>({values}, {place})")


@instruction("bfind", "clz", "popc", "brev")
def _count(context: Context, one: Instruction) -> None:
    allowed = frozenset(("u32", "s32", "u64", "s64")) if one.root == "bfind" else frozenset(("b32", "b64"))
    kind = kind_of(one, allowed)
    plain(one)
    arity(one, 2)
    result = kind if one.root == "brev" else "u32"
    context.write(one.operands[0], result, f"hip_ptx::{one.root}_{kind}({context.read(one.operands[1], kind)})")


@instruction("prmt")
def _permute(context: Context, one: Instruction) -> None:
    modes = {("b32",): "prmt"} | {("b32", mode): f"prmt_{mode}" for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")}
    if one.modifiers not in modes:
        raise NotUnderstoodError(f"{one.name} is not in the table")
    arity(one, 4)
    values = ", ".join(context.read(operand, "u32") for operand in one.operands[1:])
    context.write(one.operands[0], "b32", f"hip_ptx::{modes[one.modifiers]}({values})")


@instruction("lop3")
def _lookup(context: Context, one: Instruction) -> None:
    if one.modifiers != ("b32",):
        raise NotUnderstoodError(f"{one.name} is not in the table")
    arity(one, 5)
    values = ", ".join(context.read(operand, "u32") for operand in one.operands[1:])
    context.write(one.operands[0], "b32", f"hip_ptx::lop3({values})")


@instruction("dp4a", "dp2a")
def _dot(context: Context, one: Instruction) -> None:
    kinds = one.modifiers[-2:]
    if len(kinds) != 2 or not set(kinds) <= {"u32", "s32"}:
        raise NotUnderstoodError(f"{one.name} is not in the table")
    arity(one, 4)
    values = ", ".join(context.read(operand, "u32") for operand in one.operands[1:])
    small = {"u32": "uint8_t", "s32": "int8_t"}
    wide = {"u32": "uint16_t", "s32": "int16_t"}
    if one.root == "dp4a" and len(one.modifiers) == 2:
        text = f"hip_ptx::dp4a<{small[kinds[0]]}, {small[kinds[1]]}>({values})"
    elif one.root == "dp2a" and one.modifiers[:-2] in (("lo",), ("hi",)):
        first = 0 if one.modifiers[0] == "lo" else 2
        text = f"hip_ptx::dp2a<{wide[kinds[0]]}, {small[kinds[1]]}>({values}, {first})"
    else:
        raise NotUnderstoodError(f"{one.name} is not in the table")
    context.write(one.operands[0], "u32", text)
