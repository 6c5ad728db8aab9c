"""Instructions alone: assembled, disassembled, decoded and executed over many lanes, between fixed loads and stores.

A case is a few lines of assembly. Before it, the words of a record for each lane are in v8 and up: 16 of them, or more
for matrices. Of 16 words, s20 to s27 hold what the first lane has in v8 to v15, s36 to s39 what it has in v16 to v19;
v24 to v31 hold copies of v16 to v23. The condition (SCC) is bit 2 of s27, VCC holds bit 0 of each lane's v23, and
s[44:45] bit 1 of it. After it, v24 to v31, s36 to s39, the condition, and each lane's bit of VCC, s[44:45] and EXEC are
stored; of larger records, as many registers from v8 on as a record has.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rocmend.codeobject.kernarg import Kernarg, Launch
from rocmend.emulate.assemble import assemble
from rocmend.emulate.decode import Decoded, decode
from rocmend.emulate.decode.text import parts_of
from rocmend.emulate.device import ALL_CHECKS, Device
from rocmend.emulate.disassemble import disassemble
from rocmend.emulate.faults import Check
from rocmend.emulate.generation import generation_of
from rocmend.emulate.layout import INST, Flag, Form
from rocmend.emulate.program import Descriptor, Program

__all__ = ["FLUSHED", "KEPT", "TARGETS", "WORDS", "Case", "Tried", "Words", "execute", "lanes_of", "tried"]

Words = np.ndarray[Any, np.dtype[np.uint32]]

TARGETS = ("gfx906", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1100", "gfx1151", "gfx1201")
WORDS = 16
KEPT = 0xF0 << 12 | 1 << 21 | 1 << 23
"""compute_pgm_rsrc1: denormals are kept, clamping makes zero of NaN, signaling NaN are quieted."""
FLUSHED = 1 << 21
"""compute_pgm_rsrc1: denormals are flushed, and output modifiers work."""
LDS_BYTES = 4096
RECORD = "ROCMEND_TESTED_INSTRUCTIONS"
"""Environment variable: a file that gets a line for each instruction whose results a test compares."""


class Case(NamedTuple):
    """What a wave executes over the records.

    Args:
        lines: Instructions.
        words: Of a record.
        rsrc1: compute_pgm_rsrc1: the mode.
        lanes: Of a wavefront; 0: what compilers choose.
    """

    lines: tuple[str, ...]
    words: int = WORDS
    rsrc1: int = KEPT
    lanes: int = 0


class Tried(NamedTuple):
    """What became of cases.

    Args:
        decoded: Instructions for the engine, by case.
        texts: LLVM's text of them.
        wrong: What LLVM says of those that the target does not have.
        unmodelled: What the emulator says of those that it does not execute.
    """

    decoded: dict[Case, list[INST]]
    texts: dict[Case, list[str]]
    wrong: dict[Case, str]
    unmodelled: dict[Case, str]


def lanes_of(target: str) -> int:
    return 64 if target.startswith("gfx9") else 32


def waits(target: str) -> tuple[str, ...]:
    if target.startswith("gfx12"):
        return ("s_wait_loadcnt 0x0", "s_wait_storecnt 0x0", "s_wait_dscnt 0x0", "s_wait_kmcnt 0x0")
    return ("s_waitcnt vmcnt(0) lgkmcnt(0)",)


def _before(target: str, lanes: int, words: int) -> tuple[str, ...]:
    pair, vcc = ("s[44:45]", "vcc") if lanes == 64 else ("s44", "vcc_lo")
    lines = [
        "s_load_dwordx4 s[4:7], s[0:1], 0x0",
        "s_load_dwordx2 s[10:11], s[0:1], 0x10",
        *waits(target),
        *(["s_mov_b32 s2, ttmp9"] if target.startswith("gfx12") else []),
        f"s_mul_i32 s3, s2, {words * 4 * lanes}",
        f"v_mov_b32 v1, {words * 4}",
        "v_mul_u32_u24 v1, v0, v1",
        "v_lshl_add_u32 v1, v1, 0, s3",
        *(f"global_load_dwordx4 v[{at + 8}:{at + 11}], v1, s[4:5] offset:{at * 4}" for at in range(0, words, 4)),
        *waits(target),
    ]
    if words != WORDS:
        return tuple(lines)
    return (
        *lines,
        *(f"v_readfirstlane_b32 s{20 + at}, v{8 + at}" for at in range(8)),
        *(f"v_readfirstlane_b32 s{36 + at}, v{16 + at}" for at in range(4)),
        *(f"v_mov_b32 v{24 + at}, v{16 + at}" for at in range(8)),
        "v_and_b32 v2, 1, v23",
        f"v_cmp_ne_u32 {vcc}, 0, v2",
        "v_and_b32 v2, 2, v23",
        f"v_cmp_ne_u32_e64 {pair}, 0, v2",
        "s_bitcmp1_b32 s27, 2",
    )


def _after(target: str, lanes: int, words: int) -> tuple[str, ...]:
    wide = lanes == 64
    pair, vcc, active, kept = ("s[44:45]", "vcc", "exec", "s[50:51]") if wide else ("s44", "vcc_lo", "exec_lo", "s50")
    move = "s_mov_b64" if wide else "s_mov_b32"
    first = 24 if words == WORDS else 8
    gathered = (
        *(f"v_mov_b32 v{32 + at}, s{36 + at}" for at in range(4)),
        "v_mov_b32 v36, s40",
        f"v_cndmask_b32_e64 v37, 0, 1, {vcc}",
        f"v_cndmask_b32_e64 v38, 0, 1, {pair}",
        f"v_cndmask_b32_e64 v39, 0, 1, {kept}",
    )
    return (
        "s_cselect_b32 s40, 1, 0",
        f"{move} {kept}, {active}",
        f"{move} {active}, -1",
        *waits(target),
        *(gathered if words == WORDS else ()),
        *(
            f"global_store_dwordx4 v1, v[{first + at}:{first + at + 3}], s[6:7] offset:{at * 4}"
            for at in range(0, words, 4)
        ),
        "s_endpgm",
    )


def _decoded(lines: Sequence[str], target: str, lanes: int) -> tuple[list[list[INST]], list[list[str]], dict[int, str]]:
    """Return each line's instructions, their texts, and LLVM's message for each line that is wrong."""
    made = assemble(lines, target, lanes)
    right = [number for number in range(len(lines)) if number not in made.wrong]
    found = disassemble(made.code, target, lanes)[: len(right)]
    assert len(found) == len(right)
    instructions: list[list[INST]] = [[] for _ in lines]
    texts: list[list[str]] = [[] for _ in lines]
    wrong = dict(made.wrong)
    for number, line in zip(right, found, strict=True):
        one = decode([line], generation_of(target, lanes))
        if one.unknown:
            wrong[number] = f"unmodelled: {one.unknown[0]}"
        instructions[number], texts[number] = one.instructions, one.texts
    return instructions, texts, wrong


def tried(cases: Sequence[Case], target: str) -> Tried:
    """Assemble, disassemble and decode cases, all of one width at once."""
    result = Tried({}, {}, {}, {})
    for lanes in {case.lanes for case in cases}:
        these = [case for case in dict.fromkeys(cases) if case.lanes == lanes]
        lines = [line for case in these for line in case.lines]
        instructions, texts, wrong = _decoded(lines, target, lanes or lanes_of(target))
        at = 0
        for case in these:
            numbers = range(at, at + len(case.lines))
            at += len(case.lines)
            said = [wrong[number] for number in numbers if number in wrong]
            if said and any(not one.startswith("unmodelled") for one in said):
                result.wrong[case] = next(one for one in said if not one.startswith("unmodelled"))
            elif said:
                result.unmodelled[case] = said[0]
            else:
                result.decoded[case] = [one for number in numbers for one in instructions[number]]
                result.texts[case] = [one for number in numbers for one in texts[number]]
    return result


@cache
def _frame(target: str, lanes: int, words: int) -> tuple[list[INST], list[INST]]:
    before, after = _before(target, lanes, words), _after(target, lanes, words)
    instructions, _, wrong = _decoded([*before, *after], target, lanes)
    assert not wrong, (wrong, before, after)
    return (
        [one for row in instructions[: len(before)] for one in row],
        [one for row in instructions[len(before) :] for one in row],
    )


def execute(case: Case, found: Tried, target: str, records: Words, memory: Words | None = None) -> Words:
    """Execute a case over records, a row of words for each lane; return the stored rows.

    Raises:
        AssertionError: A check of the emulator found something.
    """
    lanes = case.lanes or lanes_of(target)
    before, after = _frame(target, lanes, case.words)
    instructions = [*before, *found.decoded[case], *after]
    for number, one in enumerate(instructions):
        one.next = number + (2 if one.flags & Flag.DUAL and one.form == Form.VALU else 1)
    code = Decoded(instructions, [*[""] * len(before), *found.texts[case], *[""] * len(after)], {})
    descriptor = Descriptor(LDS_BYTES, 0, 0, 0, case.rsrc1, 2 << 1 | 1 << 7, 1 << 3, 0)
    program = Program(
        "case", generation_of(target, lanes), Kernarg("case", "", 24, 8, ()), descriptor, code, 0, 0, 512, ()
    )
    device = Device(ALL_CHECKS & ~Check.RACES)
    out = np.zeros_like(records)
    places = [device.add(one) for one in (records, out, memory if memory is not None else np.zeros(4, np.uint32))]
    kernarg = b"".join(place.to_bytes(8, "little") for place in places)
    groups = records.shape[0] // lanes
    assert records.shape == (groups * lanes, case.words)
    run = device.launch(program, kernarg, Launch((groups, 1, 1), (lanes, 1, 1), 0))
    assert not run.faults, f"{case.lines}: {run.faults[0]}"
    if place := os.environ.get(RECORD):
        with Path(place).open("a", encoding="utf-8") as file:
            file.writelines(f"{target} {parts_of(line).name}\n" for line in case.lines if not line.startswith("s_wait"))
    return out
