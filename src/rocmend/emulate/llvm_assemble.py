"""Assemble a file with LLVM: a program of its own, run in a process of its own, as for disassembling.

Needs nothing but the standard library.

Usage: python -I -S llvm_assemble.py LIBRARY TARGET FEATURES FILE OUTPUT; prints what LLVM says of each wrong line as
``LINE MESSAGE``, and writes the ELF file where there is none.
"""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

TRIPLE = b"amdgcn-amd-amdhsa"
OBJECT_FILE = 1  # LLVMObjectFile
POINTER, TEXT, INT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
WRONG = re.compile(r"<inline asm>:(\d+):\d+: (.*)")


def main(library_path: str, target: str, features: str, file: str, output: str) -> int:
    """Assemble; 3: LLVM does not know the target."""
    library = ctypes.CDLL(library_path)
    for part in ("TargetInfo", "Target", "TargetMC", "AsmParser", "AsmPrinter"):
        getattr(library, f"LLVMInitializeAMDGPU{part}")()

    def function(name: str, result: object, *arguments: object) -> ctypes._NamedFuncPointer:
        found = getattr(library, name)
        found.restype, found.argtypes = result, arguments
        return found  # type: ignore[no-any-return]

    text = Path(file).read_bytes()
    context = function("LLVMContextCreate", POINTER)()
    module = function("LLVMModuleCreateWithNameInContext", POINTER, TEXT, POINTER)(b"assembled", context)
    function("LLVMSetTarget", None, POINTER, TEXT)(module, TRIPLE)
    function("LLVMSetModuleInlineAsm2", None, POINTER, TEXT, ctypes.c_size_t)(module, text, len(text))
    found, said = POINTER(), TEXT()
    function("LLVMGetTargetFromTriple", INT, TEXT, POINTER, POINTER)(TRIPLE, ctypes.byref(found), ctypes.byref(said))
    create = function("LLVMCreateTargetMachine", POINTER, POINTER, TEXT, TEXT, TEXT, INT, INT, INT)
    machine = create(found, TRIPLE, target.encode(), features.encode(), 0, 0, 0)
    if not machine:
        return 3
    wrong: list[str] = []
    describe = function("LLVMGetDiagInfoDescription", POINTER, POINTER)

    def hear(diagnostic: int, _context: object) -> None:
        match = WRONG.match((ctypes.cast(describe(diagnostic), TEXT).value or b"").decode())
        wrong.append(f"{match[1]} {match[2]}\n" if match else "0 LLVM's message is of another form\n")

    kind = ctypes.CFUNCTYPE(None, POINTER, POINTER)
    handler = kind(hear)
    function("LLVMContextSetDiagnosticHandler", None, POINTER, kind, POINTER)(context, handler, None)
    buffer = POINTER()
    emit = function("LLVMTargetMachineEmitToMemoryBuffer", INT, POINTER, POINTER, INT, POINTER, POINTER)
    failed = emit(machine, module, OBJECT_FILE, ctypes.byref(said), ctypes.byref(buffer))
    if failed and not wrong:
        wrong.append(f"0 {(said.value or b'').decode()}\n")
    sys.stdout.write("".join(wrong))
    if not wrong:
        size = function("LLVMGetBufferSize", ctypes.c_size_t, POINTER)(buffer)
        start = function("LLVMGetBufferStart", POINTER, POINTER)(buffer)
        Path(output).write_bytes(ctypes.string_at(start, size))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
