"""What vector instructions compute, stated for a lane: from the ISA documents, and not from the emulator's tables.

A statement has the types of the result and of the operands, and a function of the operands' values: integers for
integers and bits, floats for floats (of every precision: they are exact in a double). Its result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from tests.emulate.exact import BF16, F16, F32, F64, Format, value_of

__all__ = ["FORMATS", "STATEMENTS", "Statement", "state", "width_of"]

FORMATS: dict[str, Format] = {"f16": F16, "f32": F32, "f64": F64, "bf16": BF16}


class Statement(NamedTuple):
    """An instruction.

    Args:
        name: LLVM's mnemonic.
        result: Type of the result: ``f32``, ``u16``, ``pkf16`` …, ``none``.
        operands: Types of the operands: as the result's, ``rf32`` for the bits of one, ``m`` for a bit of a mask.
        compute: From the operands' values, and of the old result where ``reads`` says so, to the value. An instruction
            that also writes a mask returns the value and the bit; one with only a mask, the bit.
        mask: Whether a mask is written.
        reads: Whether the old result is an operand, the last.
        clamps: Whether an integer result can be clamped: the function then returns it unbounded.
        ulps: How far from the rounded result it may be, in units of the last place.
        where: Which targets it is of.
        vcc: Whether the last operand is the lane's bit of VCC, without being written.
        absolute: How far it may be besides.
    """

    name: str
    result: str
    operands: tuple[str, ...]
    compute: Callable[..., Any]
    mask: bool = False
    reads: bool = False
    clamps: bool = False
    ulps: int = 0
    where: Callable[[str], bool] = lambda _: True
    vcc: bool = False
    absolute: float = 0.0


STATEMENTS: dict[str, list[Statement]] = {}


def state(names: str, types: str, compute: Callable[..., Any], **more: Any) -> None:
    """State instructions: names, ``RESULT : OPERAND …``, and what they compute; more as a statement has."""
    result, _, operands = types.partition(":")
    for name in names.split():
        STATEMENTS.setdefault(name, []).append(
            Statement(name, result.strip(), tuple(operands.split()), compute, **more)
        )


@cache
def width_of(kind: str) -> int:
    """Return the bits of a type; 0 where an operand is a bit of a mask, or there is none."""
    if kind in {"m", "none", "mix"}:
        return 32 if kind == "mix" else 0
    if kind.startswith("pk") and kind.endswith(("b32", "b64")):
        return int(kind[-2:])
    if kind.startswith("pk"):
        return 2 * width_of(kind[2:])
    return int("".join(letter for letter in kind if letter.isdigit()))


def loaded(bits: int, kind: str) -> Any:
    """Return the value of an operand's bits."""
    if kind in FORMATS:
        return value_of(bits, FORMATS[kind])
    if kind.startswith("i"):
        width = width_of(kind)
        return bits - (1 << width) if bits >> width - 1 else bits
    return bits
