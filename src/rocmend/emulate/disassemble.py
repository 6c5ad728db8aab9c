"""Machine code to LLVM's text of it, with the library that AMD publishes for Python."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib import util
from pathlib import Path
from typing import Any, NamedTuple

from rocmend.core.errors import DataError, UsageError

__all__ = ["Line", "disassemble"]

_TRIPLE = b"amdgcn-amd-amdhsa"
_HEX_IMMEDIATES = 2
"""LLVMDisassembler_Option_PrintImmHex."""

_MAX_TEXT = 512
_VOP3, _ZERO = 0b110101, 0x80


class Line(NamedTuple):
    """An instruction as LLVM writes it.

    Args:
        offset: Of its first byte in the code.
        size: Bytes.
        text: Without the leading tabulator.
    """

    offset: int
    size: int
    text: str


@cache
def _library() -> Any:
    found = util.find_spec("rocm")
    places = [Path(folder, "llvm", "librocmllvm.so") for folder in (found and found.submodule_search_locations) or ()]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise UsageError(
            "emulate",
            "no disassembler for AMD GPUs is installed.",
            why="Machine code is decoded by LLVM.",
            next_step="pip install rocm-llvm-python",
        )
    library = ctypes.CDLL(str(path))
    for part in ("TargetInfo", "TargetMC", "Disassembler"):
        getattr(library, f"LLVMInitializeAMDGPU{part}")()
    library.LLVMCreateDisasmCPUFeatures.restype = ctypes.c_void_p
    library.LLVMCreateDisasmCPUFeatures.argtypes = [
        *[ctypes.c_char_p] * 3, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p,
    ]  # fmt: skip
    library.LLVMSetDisasmOptions.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    library.LLVMDisasmInstruction.restype = ctypes.c_size_t
    library.LLVMDisasmInstruction.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t,
    ]  # fmt: skip
    library.LLVMDisasmDispose.argtypes = [ctypes.c_void_p]
    return library


def _without_unused(word: bytes) -> Any:
    """Return a VOP3 instruction with a zero in place of the third operand that it does not have, or None.

    Newer compilers write the constant 0 there, which older disassemblers take for another instruction.
    """
    bits = int.from_bytes(word, "little")
    if len(word) < 8 or bits >> 26 & 0x3F != _VOP3 or bits >> 50 & 0x1FF != _ZERO:
        return None
    return ctypes.create_string_buffer((bits & ~(0x1FF << 50)).to_bytes(8, "little"), 8)


def disassemble(code: bytes, target: str, lanes: int) -> list[Line]:
    """Return the instructions of machine code, in order; every byte belongs to one.

    Args:
        code: What ``.text`` holds, or a part of it.
        target: The gfx target.
        lanes: Of a wavefront: 32 or 64.

    Raises:
        UsageError: LLVM is not installed, or does not know the target.
        DataError: A byte begins no instruction.
    """
    library = _library()
    features = [f"+wavefrontsize{lanes}"] if target.startswith(("gfx10", "gfx11", "gfx12")) else []
    features += ["+real-true16"] if target.startswith(("gfx11", "gfx12")) else []
    context = library.LLVMCreateDisasmCPUFeatures(_TRIPLE, target.encode(), ",".join(features).encode(), None, 0, None, None)
    if not context:
        raise UsageError("emulate", f"LLVM does not know the target {target}.")
    try:
        library.LLVMSetDisasmOptions(context, _HEX_IMMEDIATES)
        room = ctypes.create_string_buffer(_MAX_TEXT)
        held = ctypes.create_string_buffer(code, len(code))
        start, lines, at = ctypes.addressof(held), [], 0
        while at < len(code):
            size = library.LLVMDisasmInstruction(context, start + at, len(code) - at, at, room, _MAX_TEXT)
            if not size and (word := _without_unused(code[at : at + 8])):
                size = library.LLVMDisasmInstruction(context, word, 8, at, room, _MAX_TEXT)
            if not size:
                raise DataError(
                    target, f"has bytes at 0x{at:x} that are no instruction: {code[at : at + 8].hex(' ')}."
                )
            lines.append(Line(at, size, room.value.decode().strip()))
            at += size
        return lines
    finally:
        library.LLVMDisasmDispose(context)
