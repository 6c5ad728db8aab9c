"""How a run of machine code is laid out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from rocmend.core.units import count_text, size_text
from rocmend.emulate.counts import count
from rocmend.emulate.device import Run, Step
from rocmend.report.document import Block, Card, Code, Document, Pairs, Section, Tone, table

__all__ = ["EmulatedRun", "run_document", "run_record"]

SHOWN = 8
LANES_SHOWN = 4


class Found(msgspec.Struct, frozen=True):
    """A finding.

    Attributes:
        kind: What it is, in capitals.
        message: In words.
        pc: Offset of the instruction in the code.
        instruction: LLVM's text of it.
        workgroup: In x, y and z.
        wave: Of the workgroup.
        lane: Of the wave.
        count: How often it happened there.
    """

    kind: str
    message: str
    pc: int
    instruction: str
    workgroup: tuple[int, int, int]
    wave: int
    lane: int
    count: int


class Traced(msgspec.Struct, frozen=True):
    """An executed instruction.

    Attributes:
        pc: Offset in the code.
        instruction: LLVM's text of it.
        active: Lanes that were active, a bit each, in hexadecimal.
        written: Values of the registers that it may have written, by name.
    """

    pc: int
    instruction: str
    active: str
    written: dict[str, tuple[int, ...]]


class EmulatedRun(msgspec.Struct, frozen=True):
    """What a kernel did.

    Attributes:
        kernel: Its name.
        target: The gfx target of its code.
        lanes: Of a wavefront.
        faults: What the checks found.
        wave_instructions: Instructions that waves executed.
        classes: The same by class.
        lanes_active: Share of the lanes that were active in vector instructions.
        loaded_bytes: That global loads asked for.
        stored_bytes: That global stores wrote.
        lds_cycles: Cycles of the LDS by its banks.
        lds_least_cycles: Without bank conflicts.
        arrays: The first elements of each array afterwards, by argument.
        trace: Executed instructions of the wave that was asked for.
    """

    kernel: str
    target: str
    lanes: int
    faults: tuple[Found, ...]
    wave_instructions: int
    classes: dict[str, int]
    lanes_active: float
    loaded_bytes: int
    stored_bytes: int
    lds_cycles: int
    lds_least_cycles: int
    arrays: dict[str, list[float]]
    trace: tuple[Traced, ...] = ()


def run_record(run: Run, values: Sequence[Any], specs: Sequence[str], steps: Sequence[Step]) -> EmulatedRun:
    """Put together what is shown of a run."""
    counts = count(run)
    arrays = {
        f"{number}: {specs[number]}": value.reshape(-1)[:SHOWN].tolist()
        for number, value in enumerate(values)
        if hasattr(value, "reshape") and hasattr(value, "ctypes")  # an array, not a NumPy number
    }
    found = tuple(
        Found(one.kind.name, one.detail, one.pc, one.instruction, one.workgroup, one.wave, one.lane, one.count)
        for one in run.faults
    )
    traced = tuple(Traced(one.pc, one.text, f"{one.active:x}", one.written) for one in steps)
    return EmulatedRun(
        run.program.kernel, run.program.generation.target, run.program.generation.lanes, found, run.wave_instructions,
        counts.waves_instructions, round(counts.lanes_active, 4), counts.loaded_bytes, counts.stored_bytes,
        counts.lds_cycles, counts.lds_least_cycles, arrays, traced,
    )  # fmt: skip


def run_document(record: EmulatedRun) -> Document:
    """Lay a run out: findings first."""
    blocks: list[Block] = [_found(one) for one in record.faults]
    facts = [
        ("instructions of waves", f"{record.wave_instructions:,}"),
        ("of these", ", ".join(f"{name} {number:,}" for name, number in record.classes.items())),
        ("active lanes", f"{100 * record.lanes_active:.1f} % of {record.lanes} in vector instructions"),
        ("global memory", f"{size_text(record.loaded_bytes)} loaded, {size_text(record.stored_bytes)} stored"),
    ]
    if record.lds_cycles:
        facts.append(("LDS", f"{record.lds_cycles:,} cycles, {record.lds_least_cycles:,} without bank conflicts"))
    blocks.append(Section("What it consisted of", (Pairs(tuple((name, text, "") for name, text in facts)),)))
    if record.arrays:
        rows = [
            [name, ", ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in first)]
            for name, first in record.arrays.items()
        ]
        blocks.append(Section("Arrays afterwards", (table(["argument", f"first {SHOWN} elements"], rows),)))
    if record.trace:
        blocks.append(Section("Trace", (Code("\n".join(map(_traced, record.trace))),)))
    said = count_text(len(record.faults), "finding") if record.faults else "no finding"
    return Document(
        f"{record.kernel} on {record.target}: {said}",
        "Executed as machine code on the CPU: nothing is said of time, caches or faults of the hardware.",
        blocks=tuple(blocks),
    )


def _found(one: Found) -> Card:
    where = f"workgroup ({','.join(map(str, one.workgroup))}), wave {one.wave}, lane {one.lane}"
    times = f", {one.count:,} times" if one.count > 1 else ""
    return Card(
        one.message[0].upper() + one.message[1:],
        tone=Tone.ERROR,
        blocks=(Code(f"0x{one.pc:x}: {one.instruction}"), Pairs((("by", where + times, ""),))),
    )


def _traced(one: Traced) -> str:
    values = []
    for name, lanes in one.written.items():
        shown = " ".join(f"{value:08x}" for value in lanes[:LANES_SHOWN])
        values.append(f"{name}={shown}{' …' if len(lanes) > LANES_SHOWN else ''}")
    return f"{one.pc:6x}  {one.active:>8}  {one.instruction:<56} {'  '.join(values)}".rstrip()
