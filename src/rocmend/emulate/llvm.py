"""Disassemble a file with LLVM: a program of its own, run in a process of its own.

A second LLVM in one process (Triton has one) shares symbols with the first and crashes; and what it reads may be
anybody's. Needs nothing but the standard library.

Usage: python -I -S llvm.py LIBRARY TARGET FEATURES FILE; prints offset, size and text of each instruction.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

TRIPLE = b"amdgcn-amd-amdhsa"
HEX_IMMEDIATES = 2  # LLVMDisassembler_Option_PrintImmHex
MAX_TEXT = 512
GFX9, VOP3_GFX9 = 9, 0b110100
CLASSES, COMPARISONS, COMPARISONS_END = 0x10, 0x20, 0x100
THREE_OPERANDS, ZERO = (0b110101, 0b110011), 0x80  # VOP3 and VOP3P


CARRIES = ("v_add_co_u32", "v_sub_co_u32", "v_subrev_co_u32")


def shorter(word: bytes) -> list[bytes]:
    """Return a VOP3 instruction with zero bits where its third operand, and also its second, is the constant 0.

    Newer compilers write the constant where there is no such operand; LLVM 22 then finds no instruction, or crashes.
    """
    bits = int.from_bytes(word[:8], "little")
    if len(word) < 8 or bits >> 26 & 0x3F not in THREE_OPERANDS or bits >> 50 & 0x1FF != ZERO:
        return []
    found = [bits & ~(0x1FF << 50)]
    if bits >> 41 & 0x1FF == ZERO:
        found.append(found[0] & ~(0x1FF << 41))
    return [one.to_bytes(8, "little") + word[8:] for one in found]


def without_exec(word: bytes) -> bytes:
    """Return a comparison of gfx9 in VOP3 that also writes EXEC as the one that does not; else nothing.

    LLVM 22 assembles v_cmpx in this encoding, but finds no instruction there.
    """
    bits = int.from_bytes(word[:8], "little")
    operation = bits >> 16 & 0x3FF
    if len(word) < 8 or bits >> 26 & 0x3F != VOP3_GFX9 or operation >= COMPARISONS_END or operation < CLASSES:
        return b""
    bit = 1 if operation < COMPARISONS else 0x10
    return (bits & ~(bit << 16)).to_bytes(8, "little") if operation & bit else b""


def has_third(text: str) -> bool:
    """Return whether an instruction has three sources besides its results."""
    name, _, operands = text.strip().partition(" ")
    count = commas(operands)
    return count >= 4 or (count == 3 and not name.startswith(CARRIES))


def has_second(text: str) -> bool:
    """Return whether an instruction has a second source besides its result."""
    return commas(text.strip().partition(" ")[2]) >= 2


def commas(text: str) -> int:
    """Count commas outside of brackets."""
    depth = count = 0
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        count += letter == "," and not depth
    return count


def main(library_path: str, target: str, features: str, file: str) -> int:
    """Disassemble; 3: LLVM does not know the target; 4: a byte begins no instruction (its offset is the last line)."""
    library = ctypes.CDLL(library_path)
    for part in ("TargetInfo", "TargetMC", "Disassembler"):
        getattr(library, f"LLVMInitializeAMDGPU{part}")()
    library.LLVMCreateDisasmCPUFeatures.restype = ctypes.c_void_p
    library.LLVMCreateDisasmCPUFeatures.argtypes = [
        *[ctypes.c_char_p] * 3, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    library.LLVMSetDisasmOptions.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    one = library.LLVMDisasmInstruction
    one.restype = ctypes.c_size_t
    one.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t,
    ]  # fmt: skip
    context = library.LLVMCreateDisasmCPUFeatures(TRIPLE, target.encode(), features.encode(), None, 0, None, None)
    if not context:
        return 3
    library.LLVMSetDisasmOptions(context, HEX_IMMEDIATES)
    code = Path(file).read_bytes()
    major = int(target.partition(":")[0][3:-2])
    room = ctypes.create_string_buffer(MAX_TEXT)
    held = ctypes.create_string_buffer(code, len(code))
    start, lines, at = ctypes.addressof(held), [], 0
    while at < len(code):
        size = 0
        words = shorter(code[at : at + 12]) if major >= 10 else []
        for word, more in zip(words, (has_third, has_second), strict=False):
            plain = ctypes.create_string_buffer(word, len(word))
            size = one(context, ctypes.addressof(plain), len(word), at, room, MAX_TEXT)
            if size and not more(room.value.decode()):
                break
            size = 0
        if major == GFX9 and (word := without_exec(code[at : at + 8])):
            plain = ctypes.create_string_buffer(word, len(word))
            size = one(context, ctypes.addressof(plain), len(word), at, room, MAX_TEXT)
            room.value = room.value.replace(b"v_cmp_", b"v_cmpx_")
        size = size or one(context, start + at, len(code) - at, at, room, MAX_TEXT)
        if not size:
            break
        lines.append(f"{at} {size} {room.value.decode().strip()}\n")
        at += size
    sys.stdout.write("".join(lines))
    if at < len(code):
        sys.stdout.write(f"{at} 0 \n")
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
