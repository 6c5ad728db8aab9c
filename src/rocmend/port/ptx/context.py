"""What an instruction's translation reads and writes: registers, constants, addresses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from rocmend.port.ptx.program import Instruction, NotUnderstoodError

__all__ = ["TYPES", "Context", "Register", "Type"]


class Type(NamedTuple):
    """A type of PTX: the C++ type, its size in bits, and whether it is signed."""

    cpp: str
    size: int
    signed: bool = False


TYPES: dict[str, Type] = {
    "b8": Type("uint8_t", 8),
    "u8": Type("uint8_t", 8),
    "s8": Type("int8_t", 8, signed=True),
    "b16": Type("uint16_t", 16),
    "u16": Type("uint16_t", 16),
    "s16": Type("int16_t", 16, signed=True),
    "f16": Type("uint16_t", 16),
    "bf16": Type("uint16_t", 16),
    "b32": Type("uint32_t", 32),
    "u32": Type("uint32_t", 32),
    "s32": Type("int32_t", 32, signed=True),
    "f16x2": Type("uint32_t", 32),
    "bf16x2": Type("uint32_t", 32),
    "f32": Type("float", 32),
    "b64": Type("uint64_t", 64),
    "u64": Type("uint64_t", 64),
    "s64": Type("int64_t", 64, signed=True),
    "f64": Type("double", 64),
    "pred": Type("bool", 1),
}
_STORAGE = {1: "bool", 16: "uint16_t", 32: "uint32_t", 64: "uint64_t"}
_FLOATING = frozenset(("float", "double"))
_INTEGER = re.compile(r"([+-]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)[uU]?")
_BITS = re.compile(r"0([fFdD])([0-9a-fA-F]{8}|[0-9a-fA-F]{16})")
_DECIMAL = re.compile(r"[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?")
_ADDRESS = re.compile(r"\[\s*([%\w$]+)\s*(?:([+-])\s*(-?(?:0[xX][0-9a-fA-F]+|\d+)|%\d+)\s*)?\]")
_SPECIAL = re.compile(r"%?%(tid|ntid|ctaid|nctaid)\.([xyz])")
_SPECIAL_WORDS = {
    "laneid": "warp32_lane()",
    "lanemask_eq": "warp32_lanemask_eq()",
    "lanemask_lt": "warp32_lanemask_lt()",
    "lanemask_le": "warp32_lanemask_le()",
    "lanemask_gt": "warp32_lanemask_gt()",
    "lanemask_ge": "warp32_lanemask_ge()",
    "clock": "static_cast<uint32_t>(clock64())",
    "clock64": "static_cast<uint64_t>(clock64())",
}
_SPECIAL_NAMES = {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}


class Register(NamedTuple):
    """A register: the C++ variable or expression that stands for it, and its type of PTX.

    ``constant`` marks an operand that is an expression known at compile time.
    """

    cpp: str
    kind: str
    constant: bool = False


class Context:
    """The registers of a statement, and the C++ that has been written for it."""

    def __init__(self, registers: dict[str, Register], finish: Callable[[str, str], str] | None = None) -> None:
        self.registers = registers
        self.lines: list[str] = []
        self.written: list[str] = []
        self.carries = False
        self._finish = finish

    def register(self, name: str) -> Register:
        """Return the register of a name.

        Raises:
            NotUnderstoodError: There is none.
        """
        found = self.registers.get(name)
        if found is None:
            raise NotUnderstoodError(f"{name} is not a register or operand of it")
        return found

    def read(self, operand: str, kind: str, *, narrow: bool = False) -> str:
        """Return an expression of an operand's value with the C++ type of ``kind``.

        Args:
            operand: As written.
            kind: The type of PTX that the instruction reads it as.
            narrow: Whether the register may be wider than the type (as for stores and conversions).

        Raises:
            NotUnderstoodError: It is no value of that type.
        """
        wanted = TYPES[kind]
        if operand.startswith("!") and kind == "pred":
            return f"!{self.read(operand[1:], kind)}"
        special = None if operand in self.registers else self._special(operand)
        if special is not None:
            return _converted(special.cpp, TYPES[special.kind], wanted, narrow)
        if operand in self.registers:
            held = self.registers[operand]
            if held.constant:
                return f"static_cast<{wanted.cpp}>{held.cpp}"
            return _converted(held.cpp, TYPES[held.kind], wanted, narrow)
        return _constant(operand, wanted)

    def write(self, operand: str, kind: str, expression: str) -> None:
        """Put a value of the C++ type of ``kind`` into a register; ``_`` takes it and keeps nothing.

        Raises:
            NotUnderstoodError: The register cannot hold it.
        """
        if operand == "_":
            self.lines.append(f"(void){expression};")
            return
        held = self.register(operand)
        if held.constant:
            raise NotUnderstoodError("it writes to an input")
        target, given = TYPES[held.kind], TYPES[kind]
        if target.size > given.size > 1 and target.cpp not in _FLOATING:
            wide = f"int{target.size}_t" if given.signed else target.cpp
            expression = f"static_cast<{target.cpp}>(static_cast<{wide}>({expression}))"
        elif target.size != given.size:
            raise NotUnderstoodError("a register's size differs from the instruction's type")
        else:
            expression = _converted(expression, given, target, narrow=False)
        self.written.append(operand)
        if self._finish is not None:
            self.lines.append(self._finish(operand, expression))
        else:
            self.lines.append(f"{held.cpp} = {expression};")

    def do(self, text: str) -> None:
        """Write a statement."""
        self.lines.append(text)

    def address(self, operand: str) -> tuple[str, str]:
        """Return the expression of an address and the type of the register that it comes from.

        Raises:
            NotUnderstoodError: It is no register with an offset.
        """
        match = _ADDRESS.fullmatch(operand)
        if match is None:
            raise NotUnderstoodError(f"the address {operand} is not a register with an offset")
        held = self.register(match.group(1))
        if TYPES[held.kind].cpp in _FLOATING or TYPES[held.kind].size < 32:
            raise NotUnderstoodError("an address is not in an address register")
        sign, offset = match.group(2), match.group(3)
        if not offset:
            return held.cpp, held.kind
        if offset.startswith("%"):
            offset = f"({self.register(offset).cpp})"
        return f"({held.cpp} {sign} {offset})", held.kind

    def parts(self, operand: str, count: int) -> list[str]:
        """Return the registers of a vector operand.

        Raises:
            NotUnderstoodError: It has another number of them.
        """
        if count == 1:
            return [operand.strip("{} \t")] if operand.startswith("{") else [operand]
        inside = operand.strip()
        if not (inside.startswith("{") and inside.endswith("}")):
            raise NotUnderstoodError("a vector is not a list of registers")
        found = [one.strip() for one in inside[1:-1].split(",")]
        if len(found) != count:
            raise NotUnderstoodError("a vector has the wrong number of registers")
        return found

    @staticmethod
    def _special(operand: str) -> Register | None:
        match = _SPECIAL.fullmatch(operand)
        if match:
            return Register(f"static_cast<uint32_t>({_SPECIAL_NAMES[match.group(1)]}.{match.group(2)})", "u32")
        name = operand.lstrip("%")
        if operand.startswith("%") and not name[:1].isdigit():
            if name not in _SPECIAL_WORDS:
                raise NotUnderstoodError(f"%{name} has no counterpart on AMD GPUs")
            return Register(_SPECIAL_WORDS[name], "u64" if name == "clock64" else "u32")
        return None


def arity(instruction: Instruction, *counts: int) -> None:
    """Check how many operands an instruction has.

    Raises:
        NotUnderstoodError: It has another number.
    """
    if len(instruction.operands) not in counts:
        raise NotUnderstoodError(f"{instruction.name} has {len(instruction.operands)} operands")


def _converted(text: str, held: Type, wanted: Type, narrow: bool) -> str:
    if held.cpp == wanted.cpp:
        return text
    if held.cpp == "bool" or wanted.cpp == "bool":
        raise NotUnderstoodError("a predicate is used as a value")
    floating = held.cpp in _FLOATING or wanted.cpp in _FLOATING
    if held.size == wanted.size:
        return f"hip_ptx::bits<{wanted.cpp}>({text})" if floating else f"static_cast<{wanted.cpp}>({text})"
    if narrow and not floating and held.size > wanted.size:
        return f"static_cast<{wanted.cpp}>({text})"
    raise NotUnderstoodError("a register's size differs from the instruction's type")


def _constant(text: str, wanted: Type) -> str:
    as_bits = _BITS.fullmatch(text)
    if as_bits:
        size = 32 if as_bits.group(1) in "fF" else 64
        if len(as_bits.group(2)) * 4 != size or size != wanted.size:
            raise NotUnderstoodError(f"the constant {text} has the wrong size")
        number = f"0x{as_bits.group(2)}u" if size == 32 else f"uint64_t(0x{as_bits.group(2)}ull)"
        return f"hip_ptx::bits<{wanted.cpp}>({number})" if wanted.cpp in _FLOATING else f"{wanted.cpp}({number})"
    if wanted.cpp in _FLOATING:
        if not _DECIMAL.fullmatch(text):
            raise NotUnderstoodError(f"{text} is not a floating-point constant")
        return f"{text}f" if wanted.cpp == "float" else text
    if wanted.cpp == "bool":
        raise NotUnderstoodError(f"{text} is not a predicate")
    match = _INTEGER.fullmatch(text)
    if match is None:
        raise NotUnderstoodError(f"{text} is not a register, operand or constant")
    digits = match.group(2)
    octal = len(digits) > 1 and digits.isdigit() and digits.startswith("0")
    value = int(digits, 8 if octal else 0) * (-1 if match.group(1) == "-" else 1)
    if value < 0:
        value += 1 << 64
    value &= (1 << wanted.size) - 1
    suffix = "ull" if wanted.size == 64 else "u"
    shown = str(value) if value < 10 else hex(value)
    return f"{shown}{suffix}" if wanted.cpp == "uint32_t" else f"static_cast<{wanted.cpp}>({shown}{suffix})"
