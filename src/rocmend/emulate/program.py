"""A kernel of a code object, decoded and with what its descriptor says of registers and memory.

Source:
    https://llvm.org/docs/AMDGPUUsage.html#kernel-descriptor and, for what a wave finds in its registers,
    https://llvm.org/docs/AMDGPUUsage.html#initial-kernel-execution-state
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

from rocmend.codeobject.elf import (
    PT_LOAD,
    SHF_EXECINSTR,
    Section,
    Segment,
    file_offset,
    read_header,
    read_sections,
    read_segments,
)
from rocmend.codeobject.isa import from_header
from rocmend.codeobject.kernarg import Kernarg, read_kernargs
from rocmend.codeobject.reader import BytesReader
from rocmend.core.errors import DataError, UsageError
from rocmend.emulate.decode import Decoded, decode
from rocmend.emulate.decode.operands import AGPR, UnmodelledError
from rocmend.emulate.disassemble import disassemble
from rocmend.emulate.generation import Generation, generation_of
from rocmend.emulate.layout import Kind

__all__ = ["Descriptor", "Program", "load"]

_DESCRIPTOR = struct.Struct("<IIIIq20xIIIHH4x")
DESCRIPTOR_BYTES = 64
"""Group segment, private segment, kernarg size; entry offset; rsrc3, rsrc1, rsrc2; properties; preload."""

DYNAMIC_STACK_BYTES = 16 << 10
_SYMBOL = struct.Struct("<IBBHQQ")
_MAX_SYMBOLS = 1 << 16
_MAX_SEGMENT_BYTES = 1 << 28


class Descriptor(NamedTuple):
    """What a kernel descriptor says.

    Args:
        lds_bytes: LDS of a workgroup.
        scratch_bytes: Private memory of a lane.
        entry: Address of the first instruction.
        rsrc3: compute_pgm_rsrc3.
        rsrc1: compute_pgm_rsrc1.
        rsrc2: compute_pgm_rsrc2.
        properties: Which user registers are set up.
        preload: Length and offset of the preloaded kernarg.
    """

    lds_bytes: int
    scratch_bytes: int
    entry: int
    rsrc3: int
    rsrc1: int
    rsrc2: int
    properties: int
    preload: int

    @property
    def stack_bytes(self) -> int:
        """Private memory of a lane, with what the runtime adds where the compiler does not know the stack's size."""
        return self.scratch_bytes + (DYNAMIC_STACK_BYTES if self.properties >> 11 & 1 else 0)

    @property
    def user_sgprs(self) -> int:
        """Scalar registers that are set up before those of the system."""
        return self.rsrc2 >> 1 & 31

    @property
    def mode(self) -> int:
        """The initial MODE: rounding and denormals, and the clamping of NaN."""
        return (self.rsrc1 >> 12 & 0xFF) | (self.rsrc1 >> 21 & 1) << 8 | (self.rsrc1 >> 23 & 1) << 9


class Program(NamedTuple):
    """A kernel, ready to be launched.

    Args:
        kernel: Its name.
        generation: Its target.
        kernarg: The layout of its arguments.
        descriptor: Of the kernel.
        code: The decoded ``.text``.
        base: Address of ``.text`` in the code object.
        entry: Number of the first instruction.
        registers: Rows of vector registers.
        image: The loaded segments: address and bytes.
        relocations: Where the loader fills in addresses, and what they are relative to where it is loaded.
    """

    kernel: str
    generation: Generation
    kernarg: Kernarg
    descriptor: Descriptor
    code: Decoded
    base: int
    entry: int
    registers: int
    image: tuple[tuple[int, bytes], ...]
    relocations: tuple[tuple[int, int], ...] = ()


@lru_cache(maxsize=64)
def load(code: bytes, kernel: str) -> Program:
    """Load a kernel.

    Args:
        code: The code object: an ELF file.
        kernel: The kernel's name; empty for the only one.

    Raises:
        DataError: It is no code object, or has no such kernel.
        UsageError: Its target is not executed here.
    """
    reader = BytesReader(code, "code object")
    header = read_header(reader.read(0, 64), reader.name)
    target = from_header(code[:64], reader.name).processor
    sections = read_sections(reader, header)
    kernargs = read_kernargs(code, reader.name)
    found = [one for one in kernargs if kernel in {"", one.kernel}]
    if len(found) != 1:
        names = ", ".join(one.kernel for one in kernargs) or "none"
        raise UsageError(
            "emulate",
            f"the code object has {len(found)} kernels{f' named {kernel!r}' if kernel else ''}: {names}.",
            next_step="Name one of them." if kernargs else "Compile a kernel, with its metadata.",
        )
    text = next((one for one in sections if one.name == ".text" and one.flags & SHF_EXECINSTR), None)
    if text is None:
        raise DataError(reader.name, "has no machine code.")
    base = text.address
    segments = read_segments(reader, header)
    descriptor = _descriptor(code, found[0], sections, segments)
    lanes = 32 if target.startswith(("gfx10", "gfx11", "gfx12")) and descriptor.properties >> 10 & 1 else 64
    generation = generation_of(target, lanes)
    machine_code = code[text.offset : text.offset + text.size]
    decoded = decode(disassemble(machine_code, generation.target, lanes), generation)
    start = descriptor.entry - base
    entries = {one.pc: number for number, one in reversed(list(enumerate(decoded.instructions)))}
    if start not in entries:
        raise DataError(reader.name, f"says that {found[0].kernel} begins where no instruction does.")
    return Program(
        found[0].kernel, generation, found[0], descriptor, decoded, base, entries[start], _rows(decoded),
        _image(code, segments), _relocations(code, sections, segments),
    )  # fmt: skip


def _rows(decoded: Decoded) -> int:
    """Return how many rows of vector registers a program needs: no instruction reaches past them."""
    most = 4
    for one in decoded.instructions:
        for operand in (one.d, one.e, *one.s):
            if operand.kind == Kind.VGPR:
                most = max(most, operand.index + operand.dwords)
    return 2 * AGPR if most > AGPR else most


def _image(code: bytes, segments: tuple[Segment, ...]) -> tuple[tuple[int, bytes], ...]:
    """Return what the loader puts into memory: addresses and bytes."""
    found = []
    for one in segments:
        if one.kind == PT_LOAD and one.memory_size:
            if one.memory_size > _MAX_SEGMENT_BYTES or one.offset + one.size > len(code) or one.size > one.memory_size:
                raise DataError("code object", f"has a segment of {one.memory_size} bytes.")
            found.append((one.address, code[one.offset : one.offset + one.size].ljust(one.memory_size, b"\0")))
    return tuple(found)


_RELOCATION = struct.Struct("<QQq")
_ABS64, _RELATIVE64 = 3, 13
"""Source: https://llvm.org/docs/AMDGPUUsage.html#relocation-records"""


def _relocations(
    code: bytes, sections: tuple[Section, ...], segments: tuple[Segment, ...]
) -> tuple[tuple[int, int], ...]:
    """Return the addresses that the loader fills in: tables of functions, pointers in device variables.

    Raises:
        UnmodelledError: One is of a kind that is not known here.
    """
    by_name = {one.name: one for one in sections}
    found = []
    table, symbols = by_name.get(".rela.dyn"), by_name.get(".dynsym")
    for number in range(table.size // _RELOCATION.size if table else 0):
        at, info, addend = _RELOCATION.unpack_from(code, (table.offset if table else 0) + number * _RELOCATION.size)
        kind, symbol = info & 0xFFFFFFFF, info >> 32
        value = addend
        if kind == _ABS64 and symbols is not None and symbol < symbols.size // _SYMBOL.size:
            value += _SYMBOL.unpack_from(code, symbols.offset + symbol * _SYMBOL.size)[4]
        elif kind != _RELATIVE64:
            raise UnmodelledError(f"a relocation of kind {kind}", f"at 0x{at:x}")
        if file_offset(segments, at) is not None:
            found.append((at, value))
    return tuple(found)


def _descriptor(
    code: bytes, kernarg: Kernarg, sections: tuple[Section, ...], segments: tuple[Segment, ...]
) -> Descriptor:
    wanted = (kernarg.symbol or f"{kernarg.kernel}.kd").encode() + b"\0"
    by_name = {one.name: one for one in sections}
    for table, strings in ((".dynsym", ".dynstr"), (".symtab", ".strtab")):
        if table not in by_name or strings not in by_name:
            continue
        symbols, names = by_name[table], by_name[strings]
        for number in range(min(symbols.size // _SYMBOL.size, _MAX_SYMBOLS)):
            name, _, _, _, value, _ = _SYMBOL.unpack_from(code, symbols.offset + number * _SYMBOL.size)
            start = names.offset + name
            at = file_offset(segments, value)
            if code[start : start + len(wanted)] == wanted and at is not None and at + DESCRIPTOR_BYTES <= len(code):
                lds, private, _, _, entry, rsrc3, rsrc1, rsrc2, properties, preload = _DESCRIPTOR.unpack_from(code, at)
                return Descriptor(lds, private, value + entry, rsrc3, rsrc1, rsrc2, properties, preload)
    raise DataError(kernarg.kernel, "has no kernel descriptor in the code object.")
