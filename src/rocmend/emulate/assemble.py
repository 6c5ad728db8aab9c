"""LLVM's text of instructions to machine code: how single instructions are tried."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import NamedTuple

from rocmend.codeobject.elf import read_header, read_sections
from rocmend.codeobject.reader import BytesReader
from rocmend.core.errors import UsageError
from rocmend.core.supervise import run_command
from rocmend.emulate.disassemble import DisassemblerError, features_of, library

__all__ = ["Assembled", "assemble", "mnemonics"]

_LIMIT_S = 120
_MAX_OUTPUT_BYTES = 1 << 26
_UNKNOWN_TARGET = 3


class Assembled(NamedTuple):
    """What became of lines of assembly.

    Args:
        code: Machine code of the lines that are right.
        wrong: LLVM's message for each other line, by its number from 0.
    """

    code: bytes
    wrong: dict[int, str]


def assemble(lines: Sequence[str], target: str, lanes: int) -> Assembled:
    """Assemble lines, each for itself: those that are wrong are left out.

    Args:
        lines: An instruction each, or a label.
        target: The gfx target.
        lanes: Of a wavefront: 32 or 64.

    Raises:
        UsageError: LLVM is not installed, or does not know the target.
        DisassemblerError: LLVM failed.
    """
    wrong: dict[int, str] = {}
    for _ in range(2):
        code, found = _assemble(["" if at in wrong else line for at, line in enumerate(lines)], target, lanes)
        if not found:
            return Assembled(code, wrong)
        wrong |= found
    raise DisassemblerError("emulate", f"LLVM's assembler goes on to find errors: {found}")


def _assemble(lines: Sequence[str], target: str, lanes: int) -> tuple[bytes, dict[int, str]]:
    with (
        tempfile.TemporaryDirectory(prefix="rocmend-") as folder,
        as_file(files(__package__) / "llvm_assemble.py") as script,
    ):
        source, output = Path(folder, "source.s"), Path(folder, "object.o")
        source.write_text("\n".join(lines) + "\n", encoding="utf-8")
        said = run_command(
            [
                sys.executable, "-I", "-S", str(script), str(library()), target, features_of(target, lanes),
                str(source), str(output),
            ],
            time_limit_s=_LIMIT_S,
            max_output_bytes=_MAX_OUTPUT_BYTES,
        )  # fmt: skip
        if said.exit_code == _UNKNOWN_TARGET:
            raise UsageError("emulate", f"LLVM does not know the target {target}.")
        if said.exit_code != 0:
            raise DisassemblerError("emulate", f"LLVM's assembler ended with {said.ending}: {said.stderr[-300:]}")
        rows = (row.partition(" ") for row in said.stdout.splitlines())
        wrong = {int(number) - 1: message for number, _, message in rows}
        if wrong:
            if min(wrong) < 0:
                raise DisassemblerError("emulate", f"LLVM's assembler failed: {wrong}")
            return b"", wrong
        made = output.read_bytes()
    reader = BytesReader(made, target)
    text = next(one for one in read_sections(reader, read_header(made[:64], target)) if one.name == ".text")
    return made[text.offset : text.offset + text.size], {}


_NAME = re.compile(rb"[a-z][a-z0-9]*_[a-z0-9_]+")
_PREFIXES = ("v_", "s_", "ds_", "global_", "flat_", "scratch_", "buffer_", "tbuffer_", "image_")


def mnemonics() -> list[str]:
    """Return the mnemonics of LLVM's AMDGPU assembler for all targets: its table in the library, byte by byte.

    The table is a text in which a byte before each name says how long it is.
    """
    data = library().read_bytes()
    found: set[str] = set()
    for match in _NAME.finditer(data):
        length, name = data[match.start() - 1], match[0]
        if length == len(name) and name.startswith(tuple(one.encode() for one in _PREFIXES)):
            found.add(name.decode())
    return sorted(found)
