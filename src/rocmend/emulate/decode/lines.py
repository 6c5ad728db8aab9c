"""A program, instruction by instruction.

The tables say what operands an arithmetic instruction has; memory, matrix and control instructions are read by the
modules beside this one. What none of them knows is an error that names the instruction: it is raised when the code is
decoded, or, for code that a launch may never reach, when a wave comes to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from rocmend.emulate.decode import control, lanes, matrix, memory, scalar, vector
from rocmend.emulate.decode.operands import UnmodelledError
from rocmend.emulate.decode.text import Parts, parts_of
from rocmend.emulate.disassemble import Line
from rocmend.emulate.generation import Generation
from rocmend.emulate.layout import INST, Flag, Form

__all__ = ["Decoded", "decode"]


class Decoded(NamedTuple):
    """A program, ready for the engine.

    Args:
        instructions: As the engine takes them; the second of a pair follows the first.
        texts: LLVM's text of each.
        unknown: What the engine cannot execute, by the number of the instruction.
    """

    instructions: list[INST]
    texts: list[str]
    unknown: dict[int, UnmodelledError]


def decode(lines: list[Line], generation: Generation) -> Decoded:
    """Decode a program.

    Args:
        lines: LLVM's text of it.
        generation: What the target is.
    """
    made: list[INST] = []
    texts: list[str] = []
    unknown: dict[int, UnmodelledError] = {}
    starts: dict[int, int] = {}
    for line in lines:
        starts[line.offset] = len(made)
        try:
            pieces = _decode_line(line, generation)
        except UnmodelledError as error:
            unknown[len(made)] = error
            pieces = [INST(form=Form.TRAP, immediate=-1)]
        for piece in pieces:
            piece.pc, piece.generation = line.offset, generation.major
            made.append(piece)
            texts.append(line.text)
    for number, one in enumerate(made):
        one.next = number + (2 if one.flags & Flag.DUAL and one.form == Form.VALU else 1)
        if one.form == Form.BRANCH and one.op in control.WITH_TARGET:
            to = one.pc + 4 + 4 * one.immediate
            if to not in starts:
                unknown[number] = UnmodelledError(f"a branch to 0x{to:x}, where no instruction begins,", texts[number])
                one.form = Form.TRAP
            else:
                one.target = starts[to]
    return Decoded(made, texts, unknown)


def _decode_line(line: Line, generation: Generation) -> list[INST]:
    if " :: " in line.text:
        pair = [_decode_one(half.strip().replace("v_dual_", "v_", 1), generation) for half in line.text.split(" :: ")]
        pair[0].flags |= Flag.DUAL
        return pair
    return [_decode_one(line.text, generation, line.size)]


_READERS: tuple[Callable[[Parts, Generation], INST | None], ...] = (
    memory.read, lanes.read, matrix.read, vector.read, scalar.read,
)  # fmt: skip


def _decode_one(text: str, generation: Generation, size: int = 4) -> INST:
    parts = parts_of(text)
    if (found := control.read(parts, size)) is not None:
        return found
    for reader in _READERS:
        if (found := reader(parts, generation)) is not None:
            return found
    raise UnmodelledError(f"{parts.name} on {generation.target}", text)
