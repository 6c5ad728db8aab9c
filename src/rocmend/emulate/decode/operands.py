"""Operands as LLVM writes them: registers, constants, modifiers."""

from __future__ import annotations

import re
import struct

from rocmend.core.errors import UsageError
from rocmend.emulate.layout import (
    EXEC,
    FLAT_SCRATCH,
    M0,
    NULL,
    OPERAND,
    SCC,
    TTMP,
    VCC,
    XNACK_MASK,
    Kind,
    Modifier,
    Type,
)

__all__ = ["SHAPES", "UnmodelledError", "operand", "split"]


class UnmodelledError(UsageError):
    """An instruction, or something about one, that the emulator does not model: nothing is skipped or guessed."""

    code = "unmodelled"

    def __init__(self, what: str, text: str) -> None:
        super().__init__(
            "emulate",
            f"{what} is not modelled: {text}",
            why="An instruction is executed as its architecture defines it, or not at all.",
            next_step="The documentation lists the emulated instructions of each target.",
        )


AGPR = 256
"""Number of the first accumulation register among the vector registers."""

SHAPES: dict[str, tuple[Type, int]] = {
    "f32": (Type.F32, 1), "u32": (Type.U32, 1), "i32": (Type.I32, 1), "b32": (Type.B32, 1), "iu": (Type.B32, 1),
    "f16": (Type.F16, 1), "u16": (Type.U16, 1), "i16": (Type.I16, 1), "b16": (Type.B16, 1), "bf16": (Type.BF16, 1),
    "rf16": (Type.F16, 1), "f64": (Type.F64, 2), "rf64": (Type.F64, 2),
    "u64": (Type.U64, 2), "i64": (Type.I64, 2), "b64": (Type.B64, 2),
    "pkf16": (Type.PK16, 1), "pku16": (Type.PK16, 1), "pki16": (Type.PK16, 1), "pkb16": (Type.PK16, 1),
    "pkh16": (Type.PK16, 1), "pkbf16": (Type.PK16, 1),
    "pk32": (Type.PK32, 2), "pkb32": (Type.PK32, 2), "mix": (Type.MIX, 1), "m": (Type.MASK, 1),
    "sel8": (Type.B32, 1), "sel16": (Type.B32, 1), "b96": (Type.B96, 3), "b128": (Type.B128, 4),
    "b256": (Type.B256, 8), "b512": (Type.B512, 16), "b1024": (Type.B1024, 32),
}  # fmt: skip
"""How an operand of each type in the tables is read, and how many registers of 32 bits it is."""

_NAMED = {
    "vcc": VCC, "vcc_lo": VCC, "vcc_hi": VCC + 1, "exec": EXEC, "exec_lo": EXEC, "exec_hi": EXEC + 1, "m0": M0,
    "null": NULL, "scc": SCC, "src_scc": SCC, "flat_scratch": FLAT_SCRATCH, "flat_scratch_lo": FLAT_SCRATCH,
    "flat_scratch_hi": FLAT_SCRATCH + 1, "xnack_mask": XNACK_MASK, "src_vccz": -1, "src_execz": -1,
}  # fmt: skip
_PAIRS = frozenset({"vcc", "exec", "flat_scratch", "xnack_mask"})
_APERTURES = {
    "src_shared_base": 0x1_0000 << 32, "src_shared_limit": (0x1_0000 << 32) + 0xFFFF,
    "src_private_base": 0x2_0000 << 32, "src_private_limit": (0x2_0000 << 32) + 0xFFFFFFFF,
}  # fmt: skip
_REGISTER = re.compile(r"(v|s|a|ttmp)(?:(\d+)|\[(\d+):(\d+)])(\.[lh])?")
_NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)")
_FLOAT = re.compile(r"-?\d+\.\d+(?:e[+-]?\d+)?")
_INVERSE_TWO_PI = "0.15915494"


def split(text: str) -> list[str]:
    """Return what commas separate, outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "[(":
            depth += 1
        elif letter in "])":
            depth -= 1
        elif letter == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
    rest = text[start:].strip()
    return [*parts, rest] if rest else parts


def operand(text: str, kind: str, whole: str) -> OPERAND:
    """Return an operand.

    Args:
        text: As LLVM writes it.
        kind: Its type in the instruction table.
        whole: The instruction, for messages.

    Raises:
        UnmodelledError: It is something that the engine does not know.
    """
    modifiers = Modifier(0)
    if text.startswith("sext(") and text.endswith(")"):
        modifiers |= Modifier.SEXT
        text = text[5:-1]
    if text.startswith("neg(") and text.endswith(")"):
        modifiers |= Modifier.NEG
        text = text[4:-1]
    if text.startswith("-") and not _NUMBER.fullmatch(text) and not _FLOAT.fullmatch(text):
        modifiers |= Modifier.NEG
        text = text[1:]
    if text.startswith("|") and text.endswith("|"):
        modifiers |= Modifier.ABS
        text = text[1:-1]
    shape, dwords = SHAPES[kind]
    made = OPERAND(modifiers=modifiers, dwords=dwords, type=shape)
    if found := _REGISTER.fullmatch(text):
        letter, single, first, last, half = found.groups()
        index = int(single or first)
        made.dwords = 1 if single else int(last) - int(first) + 1
        made.kind = Kind.VGPR if letter in "va" else Kind.SGPR
        made.index = index + (AGPR if letter == "a" else TTMP if letter == "ttmp" else 0)
        if half == ".h":
            made.modifiers |= Modifier.HIGH
    elif text in _NAMED:
        if _NAMED[text] < 0:
            raise UnmodelledError(f"the operand {text}", whole)
        made.kind, made.index = Kind.SGPR, _NAMED[text]
        made.dwords = 2 if text in _PAIRS or (text == "null" and dwords == 2) else 1
    else:
        made.kind, made.value = Kind.LITERAL, _constant(text, kind, whole)
    return made


def _constant(text: str, kind: str, whole: str) -> int:
    if text in _APERTURES:
        return _APERTURES[text]
    if text.startswith("lit64("):
        text = text[6:-1]
    if text.startswith("lit("):
        text = text[4:-1]
    if _NUMBER.fullmatch(text):
        value = int(text, 0)
        if kind in {"f64", "rf64"} and text.startswith("0x") and 0 <= value < 1 << 32:
            return value << 32  # a literal of 32 bits is the high half
        return value & 0xFFFFFFFFFFFFFFFF
    if not _FLOAT.fullmatch(text):
        raise UnmodelledError(f"the operand {text}", whole)
    return _float_bits(float(text), kind, turn=text.startswith(_INVERSE_TWO_PI))


def _float_bits(number: float, kind: str, *, turn: bool) -> int:
    """Return the bits of a floating-point constant; ``turn``: it is 1 / 2π, whose digits LLVM cuts off."""
    if kind in {"f64", "rf64", "b64", "u64", "i64"}:
        return 0x3FC45F306DC9C882 if turn else int.from_bytes(struct.pack("<d", number), "little")
    if kind in {"f16", "rf16", "b16", "u16", "i16", "pkf16", "pkh16"}:
        return 0x3118 if turn else int.from_bytes(struct.pack("<e", number), "little")
    bits = int.from_bytes(struct.pack("<f", number), "little")
    if kind in {"bf16", "pkbf16"}:
        return bits >> 16
    return bits if kind != "pk32" else bits | bits << 32
