"""Machine code to LLVM's text of it, with the library that AMD publishes for Python."""

from __future__ import annotations

import sys
import tempfile
from importlib import util
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

from rocmend.core.errors import DataError, RocmendError, UsageError
from rocmend.core.optional import how_to_install
from rocmend.core.supervise import run_command

__all__ = ["DisassemblerError", "Line", "disassemble", "features_of", "library"]

_LIMIT_S = 120
_MAX_OUTPUT_BYTES = 1 << 28
_UNKNOWN_TARGET, _NO_INSTRUCTION = 3, 4


class DisassemblerError(RocmendError):
    """The disassembler failed."""

    code = "disassembler"


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


def library() -> Path:
    """Return the place of LLVM's library.

    Raises:
        UsageError: It is not installed.
    """
    found = util.find_spec("rocm")
    places = [Path(folder, "llvm", "librocmllvm.so") for folder in (found and found.submodule_search_locations) or ()]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise UsageError(
            "emulate",
            "no disassembler for AMD GPUs is installed.",
            why="Machine code is decoded by LLVM.",
            next_step=how_to_install("rocm"),
        )
    return path


def features_of(target: str, lanes: int) -> str:
    """Return the features that LLVM is told: how wide a wavefront is, and that 16-bit registers are halves."""
    features = [f"+wavefrontsize{lanes}"] if target.startswith(("gfx10", "gfx11", "gfx12")) else []
    features += ["+real-true16"] if target.startswith(("gfx11", "gfx12")) else []
    return ",".join(features)


def disassemble(code: bytes, target: str, lanes: int) -> list[Line]:
    """Return the instructions of machine code, in order; every byte belongs to one.

    Args:
        code: What ``.text`` holds, or a part of it.
        target: The gfx target.
        lanes: Of a wavefront: 32 or 64.

    Raises:
        UsageError: LLVM is not installed, or does not know the target.
        DataError: A byte begins no instruction.
        DisassemblerError: LLVM crashed.
    """
    with tempfile.NamedTemporaryFile(prefix="rocmend-") as file, as_file(files(__package__) / "llvm.py") as script:
        file.write(code)
        file.flush()
        command = [
            sys.executable,
            "-I",
            "-S",
            str(script),
            str(library()),
            target,
            features_of(target, lanes),
            file.name,
        ]
        said = run_command(command, time_limit_s=_LIMIT_S, max_output_bytes=_MAX_OUTPUT_BYTES)
    if said.exit_code == _UNKNOWN_TARGET:
        raise UsageError("emulate", f"LLVM does not know the target {target}.")
    lines = []
    for row in said.stdout.splitlines():
        offset, size, text = row.split(" ", 2)
        lines.append(Line(int(offset), int(size), text))
    if said.exit_code == _NO_INSTRUCTION and lines:
        at = lines[-1].offset
        raise DataError(target, f"has bytes at 0x{at:x} that are no instruction: {code[at : at + 8].hex(' ')}.")
    if said.exit_code != 0:
        raise DisassemblerError("emulate", f"LLVM's disassembler ended with {said.ending}: {said.stderr[-300:]}")
    return lines
