"""Seeded faults: kernels of machine code with one instruction changed, and how many of the changes the checks find.

    python -m benchmarks.emulate.mutants [--targets gfx1100,gfx942] [--json FILE]

Each kernel is run as it is (nothing may be found), and once for each change. A change matters if a run in any of three
orders of waves gives another result than the kernel, or if a check finds something; it is found if a check finds
something in the run in the plain order, or if that run's result differs, which a test that compares results notices.
Removed waits cannot change a result here, since memory answers at once: they matter where they are found, and where
they are not, the wait was one that another one makes superfluous.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rocmend.codeobject.kernarg import Launch
from rocmend.emulate import compile_hip
from rocmend.emulate.arguments import value_of
from rocmend.emulate.device import Device, Order, Run
from rocmend.emulate.isa.table import vector_table
from rocmend.emulate.layout import INST, Flag, Form
from rocmend.emulate.program import Program, load

KERNELS = Path(__file__).with_name("kernels.hip")
BUDGET = 20_000_000
BLOCK, GROUPS = 256, 3
COUNT = BLOCK * GROUPS - 37
"""Elements: not a multiple of the workgroup, so that bounds matter."""


class Mutant(NamedTuple):
    """A changed kernel.

    Args:
        kind: What was changed.
        at: Number of the instruction.
        program: The kernel.
    """

    kind: str
    at: int
    program: Program


def changed(program: Program, at: int, made: INST) -> Program:
    """Return a kernel with another instruction in the place of one."""
    code = list(program.code.instructions)
    made.pc, made.next, made.generation = code[at].pc, code[at].next, code[at].generation
    code[at] = made
    return program._replace(code=program.code._replace(instructions=code))


def copied(one: INST) -> INST:
    """Return a copy of an instruction."""
    return INST.from_buffer_copy(one)


_WIDER = {"lt": "le", "gt": "ge", "le": "lt", "ge": "gt"}


def mutants(program: Program, executed: Any, most: int, chance: random.Random) -> Iterator[Mutant]:
    """Yield changes of instructions that a run executed: at most so many of each kind."""
    found: dict[str, list[Mutant]] = {}
    names = {one.number: one.names[0] for one in vector_table().values()}

    def add(kind: str, at: int, made: INST) -> None:
        found.setdefault(kind, []).append(Mutant(kind, at, changed(program, at, made)))

    for at, one in enumerate(program.code.instructions):
        if not executed[at]:
            continue
        if one.form in {Form.BARRIER, Form.SIGNAL}:
            add("barrier removed", at, INST(form=Form.NOP))
        elif one.form == Form.WAIT:
            add("wait removed", at, INST(form=Form.NOP))
        elif one.form in {Form.GLOBAL, Form.BUFFER, Form.LDS} and not one.dpp:
            made = copied(one)
            made.immediate += one.bytes
            add("offset by one element", at, made)
        elif one.form == Form.VALU and names.get(one.op, "").startswith("v_cmp_") and not one.flags & Flag.DUAL:
            _, _, test, kind = names[one.op].split("_")
            if test in _WIDER and kind[0] in "iu":
                made = copied(one)
                made.op = vector_table()[f"v_cmp_{_WIDER[test]}_{kind}"].number
                add("bound by one", at, made)
        elif one.form == Form.SALU and program.code.texts[at].startswith("s_and_saveexec"):
            add("mask of lanes ignored", at, INST(form=Form.NOP))
        elif one.form == Form.VALU and one.d.kind and not one.flags & Flag.DUAL and chance.random() < 0.3:
            add("instruction dropped", at, INST(form=Form.NOP))
    for each in found.values():
        yield from chance.sample(each, min(most, len(each)))


def run(program: Program, order: int) -> tuple[list[np.ndarray[Any, Any]], Run]:
    """Run a kernel on fresh arrays of the same numbers."""
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(COUNT).astype(np.float32), rng.integers(0, 1000, COUNT, dtype=np.int32)]
    outputs = [np.zeros(COUNT, np.float32), np.zeros(COUNT, np.int32)]
    device = Device()
    explicit = program.kernarg.explicit
    args = [*arrays, *outputs, COUNT]
    values = [value_of(device, one, arg, number) for number, (one, arg) in enumerate(zip(explicit, args, strict=True))]
    done = device.launch(program, values, Launch((GROUPS, 1, 1), (BLOCK, 1, 1)), order=order, seed=7, budget=BUDGET)
    return outputs, done


def same(one: list[np.ndarray[Any, Any]], other: list[np.ndarray[Any, Any]]) -> bool:
    """Return whether two runs gave the same bits."""
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, other, strict=True))


def judged(mutant: Mutant, clean: list[np.ndarray[Any, Any]]) -> str:
    """Return ``found by a check``, ``found by the result``, ``missed`` or ``no change``."""
    outputs, done = run(mutant.program, Order.FORWARD)
    if done.faults:
        return "found by a check"
    if not same(outputs, clean):
        return "found by the result"
    for order in (Order.REVERSE, Order.SHUFFLED):
        outputs, done = run(mutant.program, order)
        if done.faults or not same(outputs, clean):
            return "missed"
    return "no change"


def main() -> int:
    """Print a table, and return 1 where something is found in a kernel as it is, or under 95 % of the changes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default="gfx1100,gfx942")
    parser.add_argument("--most", type=int, default=8, help="changes of a kind in a kernel")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    chance = random.Random(1)  # noqa: S311  the same changes each time
    totals: dict[str, Counter[str]] = {}
    wrong = 0
    for target in asked.targets.split(","):
        code = compile_hip(KERNELS, target)
        for kernel in sorted(one.kernel for one in _kernels(code)):
            program = load(code, kernel)
            clean, done = run(program, Order.FORWARD)
            wrong += len(done.faults)
            for one in done.faults:
                print(f"{target} {kernel}: {one}", file=sys.stderr)
            for mutant in mutants(program, done.executed, asked.most, chance):
                said = judged(mutant, clean)
                totals.setdefault(mutant.kind, Counter())[said] += 1
                if said == "missed":
                    print(
                        f"missed: {target} {kernel} {mutant.kind} at {program.code.texts[mutant.at]}", file=sys.stderr
                    )
    columns = ("found by a check", "found by the result", "missed", "no change")
    print(f"{'change':<24}" + "".join(f"{column:>22}" for column in columns))
    for kind, counts in sorted(totals.items()):
        print(f"{kind:<24}" + "".join(f"{counts[column]:>22}" for column in columns))
    every = sum(totals.values(), Counter())
    matter = every["found by a check"] + every["found by the result"] + every["missed"]
    share = (matter - every["missed"]) / matter
    print(
        f"{every.total()} changes, {matter} matter, {100 * share:.1f} % found; {wrong} findings in kernels as they are"
    )
    if asked.json:
        asked.json.write_text(json.dumps({kind: dict(counts) for kind, counts in totals.items()}, indent=1) + "\n")
    return 0 if share >= 0.95 and not wrong else 1


def _kernels(code: bytes) -> Any:
    from rocmend.codeobject.kernarg import read_kernargs

    return read_kernargs(code)


if __name__ == "__main__":
    sys.exit(main())
