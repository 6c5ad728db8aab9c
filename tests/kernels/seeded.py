"""Run a case of a suite as machine code in which a fault was put: a program, as Triton's functions must be its own.

    python seeded.py OP CASE TARGET FAULT...      FAULT: barrier, wait, bound or none

Prints, for each fault, the kinds of what the checks found, or ``right`` or ``wrong``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec
import torch

from rocmend.emulate.device import FaultError
from rocmend.kernels import emulated, executor, registry
from rocmend.kernels import target as targets
from rocmend.kernels.compiled import build
from rocmend.kernels.suite.run import cases_of, run_case

BARRIER = {9: 0xBF8A0000, 11: 0xBFBD0000}
WAIT = {9: 0xBF8C, 11: 0xBF89}
NOP = 0xBF800000


def without(code: bytes, text: range, gone: Callable[[int], bool]) -> bytes:
    """Return a code object with ``s_nop`` in place of words of its code."""
    words = memoryview(bytearray(code)).cast("I")
    found = [at for at in range(text.start // 4, text.stop // 4) if gone(words[at])]
    assert found, "nothing to leave out"
    for at in found:
        words[at] = NOP
    return words.tobytes()


def _text(code: bytes) -> range:
    from rocmend.codeobject.elf import read_header, read_sections
    from rocmend.codeobject.reader import BytesReader

    reader = BytesReader(code, "code")
    (found,) = (one for one in read_sections(reader, read_header(reader.read(0, 64), "code")) if one.name == ".text")
    return range(found.offset, found.offset + found.size)


def seeded(fault: str, target: Any) -> Callable[..., Any]:
    """Return a compiler that puts a fault into the code."""

    def made(spec: Any) -> Any:
        compiled = build.compile_spec(spec)
        text = _text(compiled.code)
        if fault == "barrier":
            code = without(compiled.code, text, lambda word: word == BARRIER[target.generation])
        elif fault == "wait":
            code = without(compiled.code, text, lambda word: word >> 16 == WAIT[target.generation])
        else:
            code = compiled.code
        return msgspec.structs.replace(compiled, code=code)

    return made


class OneTooMany(emulated.Emulator):
    """Tells kernels that there is one more of whatever they are told the number of."""

    def launch(self, kernel: Any, grid: Any, args: Any, constants: Any, config: Any) -> None:
        """Carry out one launch."""
        more = [one + 1 if isinstance(one, int) and one > 1 else one for one in args]
        super().launch(kernel, grid, more, constants, config)


def main(op_name: str, case_name: str, target_name: str, fault: str) -> str:
    """Run the case, and return what came out."""
    target, op = targets.by_name(target_name), registry.get(op_name)
    case = next(one for one in cases_of(op) if one.name == case_name)
    emulated._compiled.clear()
    vars(emulated)["compile_spec"] = seeded(fault, target)
    emulator = (OneTooMany if fault == "bound" else emulated.Emulator)(target)
    try:
        with executor.using(emulator):
            result = run_case(op, case, torch.device("cpu"), again=emulator.reverse)
    except FaultError as error:
        return " ".join(sorted({one.kind.name for one in error.faults}))
    return "right" if result.ok else "wrong"


if __name__ == "__main__":
    op_name, case_name, target_name, *faults = sys.argv[1:]
    for one in faults:
        sys.stdout.write(f"{one}: {main(op_name, case_name, target_name, one)}\n")
