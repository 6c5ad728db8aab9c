"""Floating point: arithmetic, extremes, signs and approximations."""

from __future__ import annotations

from rocmend.port.ptx.context import Context, arity
from rocmend.port.ptx.program import Instruction, NotUnderstoodError
from rocmend.port.ptx.registry import instruction

_HALVES = frozenset(("f16", "f16x2"))
_FUSED = frozenset(("fma", "mad"))


def _unknown(one: Instruction) -> NotUnderstoodError:
    return NotUnderstoodError(f"{one.name} is not in the table")


def _flushed(text: str, kind: str, found: set[str]) -> str:
    return f"hip_ptx::ftz({text})" if "ftz" in found and kind == "f32" else text


def arithmetic(context: Context, one: Instruction) -> None:
    """Write ``add``, ``sub``, ``mul``, ``div`` and ``fma``, rounded to nearest."""
    kind = one.modifiers[-1] if one.modifiers else ""
    found = set(one.modifiers[:-1])
    fused = one.root in _FUSED
    arity(one, 4 if fused else 3)
    if kind in _HALVES:
        _halves(context, one, kind, found, fused)
        return
    if kind not in ("f32", "f64") or not found <= {"rn", "ftz", "sat", "approx", "full"}:
        raise _unknown(one)
    if found & {"approx", "full"} and one.root != "div":
        raise _unknown(one)
    if one.root == "mad" and "rn" not in found:
        raise _unknown(one)  # it was two roundings on old GPUs
    values = ", ".join(_flushed(context.read(operand, kind), kind, found) for operand in one.operands[1:])
    text = _flushed(f"hip_ptx::{'fma' if fused else one.root}({values})", kind, found)
    context.write(one.operands[0], kind, f"hip_ptx::sat({text})" if "sat" in found else text)


def _halves(context: Context, one: Instruction, kind: str, found: set[str], fused: bool) -> None:
    if one.root not in ("add", "sub", "mul", "fma") or not found <= {"rn", "sat", "relu"}:
        raise _unknown(one)
    values = ", ".join(context.read(operand, kind) for operand in one.operands[1:])
    text = f"hip_ptx::{one.root}_{kind}({values})"
    for after in ("sat", "relu"):
        if after in found:
            if after == "relu" and not fused:
                raise _unknown(one)
            text = f"hip_ptx::{after}_{kind}({text})"
    context.write(one.operands[0], kind, text)


@instruction("fma")
def _fused(context: Context, one: Instruction) -> None:
    if "rn" not in one.modifiers:
        raise _unknown(one)
    arithmetic(context, one)


def extreme(context: Context, one: Instruction) -> None:
    """Write ``min`` and ``max``."""
    kind = one.modifiers[-1] if one.modifiers else ""
    found = set(one.modifiers[:-1])
    arity(one, 3)
    if kind in _HALVES and not found:
        values = ", ".join(context.read(operand, kind) for operand in one.operands[1:])
        context.write(one.operands[0], kind, f"hip_ptx::{one.root}_{kind}({values})")
        return
    if kind not in ("f32", "f64") or not found <= {"ftz", "NaN"}:
        raise _unknown(one)
    values = ", ".join(_flushed(context.read(operand, kind), kind, found) for operand in one.operands[1:])
    keep = "true" if "NaN" in found else "false"
    context.write(one.operands[0], kind, f"hip_ptx::{one.root}_float({values}, {keep})")


def sign(context: Context, one: Instruction) -> None:
    """Write ``abs`` and ``neg``."""
    kind = one.modifiers[-1] if one.modifiers else ""
    found = set(one.modifiers[:-1])
    arity(one, 2)
    if kind in _HALVES and not found:
        context.write(one.operands[0], kind, f"hip_ptx::{one.root}_{kind}({context.read(one.operands[1], kind)})")
        return
    if kind not in ("f32", "f64") or not found <= {"ftz"}:
        raise _unknown(one)
    value = _flushed(context.read(one.operands[1], kind), kind, found)
    context.write(one.operands[0], kind, f"hip_ptx::{one.root}_float({value})")


@instruction("copysign")
def _copysign(context: Context, one: Instruction) -> None:
    kind = one.modifiers[-1] if one.modifiers else ""
    arity(one, 3)
    if kind not in ("f32", "f64"):
        raise _unknown(one)
    values = ", ".join(context.read(operand, kind) for operand in one.operands[1:])
    context.write(one.operands[0], kind, f"hip_ptx::copysign_float({values})")


@instruction("ex2", "lg2", "rcp", "sqrt", "rsqrt", "sin", "cos", "tanh")
def _approximation(context: Context, one: Instruction) -> None:
    found = set(one.modifiers[:-1])
    kind = one.modifiers[-1] if one.modifiers else ""
    if kind in _HALVES and one.root in ("ex2", "tanh") and found == {"approx"}:
        arity(one, 2)
        context.write(one.operands[0], kind, f"hip_ptx::{one.root}_{kind}({context.read(one.operands[1], kind)})")
        return
    rounded = one.root in ("rcp", "sqrt") and "rn" in found
    if one.modifiers[-1:] != ("f32",) or not found <= {"approx", "ftz", "rn"} or not (rounded or "approx" in found):
        raise _unknown(one)
    arity(one, 2)
    value = _flushed(context.read(one.operands[1], "f32"), "f32", found)
    context.write(one.operands[0], "f32", _flushed(f"hip_ptx::{one.root}({value})", "f32", found))
