"""What a run consisted of: instructions by class, lanes that were active, accesses of the LDS."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.emulate.device import Run
from rocmend.emulate.layout import Flag, Form

__all__ = ["Counts", "count"]

_CLASSES = {
    Form.VALU: "vector", Form.SALU: "scalar", Form.SMEM: "scalar memory", Form.LDS: "LDS", Form.GLOBAL: "global memory",
    Form.FLAT: "flat memory", Form.BUFFER: "global memory", Form.SCRATCH: "scratch", Form.MATRIX: "matrix",
    Form.BRANCH: "branch", Form.WAIT: "wait", Form.BARRIER: "barrier", Form.SIGNAL: "barrier", Form.LANE: "lane",
}  # fmt: skip
_MEMORY = (Form.GLOBAL, Form.FLAT, Form.BUFFER)


class Counts(NamedTuple):
    """A run in numbers.

    Args:
        waves_instructions: Instructions of waves by class, most first.
        lanes_active: Share of the lanes that were active in vector instructions; 0 where there was none.
        loaded_bytes: Bytes that global loads asked for, of active lanes.
        stored_bytes: Bytes that global stores wrote.
        lds_cycles: Cycles of the LDS by its 32 banks, without what other waves add.
        lds_least_cycles: What they would be without bank conflicts.
    """

    waves_instructions: dict[str, int]
    lanes_active: float
    loaded_bytes: int
    stored_bytes: int
    lds_cycles: int
    lds_least_cycles: int


def count(run: Run) -> Counts:
    """Count what a run consisted of."""
    classes: dict[str, int] = {}
    lanes = vectors = loaded = stored = 0
    for number, one in enumerate(run.program.code.instructions):
        times, active = int(run.executed[number]), int(run.active[number])
        if not times:
            continue
        name = _CLASSES.get(one.form, "other")
        classes[name] = classes.get(name, 0) + times
        if one.form == Form.VALU:
            lanes, vectors = lanes + active, vectors + times
        elif one.form in _MEMORY:
            if one.flags & (Flag.STORE | Flag.ATOMIC):
                stored += active * one.bytes
            if not one.flags & Flag.STORE:
                loaded += active * one.bytes
    ordered = dict(sorted(classes.items(), key=lambda item: -item[1]))
    width = vectors * run.program.generation.lanes
    return Counts(ordered, lanes / width if width else 0.0, loaded, stored, run.bank_cycles, run.bank_ideal)
