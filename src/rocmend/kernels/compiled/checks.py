"""What a compiled kernel must come to."""

from __future__ import annotations

import msgspec

from rocmend.kernels.compiled.measure import Measured
from rocmend.kernels.target import Target

CHECKS = {
    "error": "the compiler refuses the kernel, crashes or does not come to an end",
    "spill": "registers are spilled",
    "scratch": "private memory is used",
    "lds": "more LDS than a workgroup of the target can have",
    "no-matrix": "no matrix instruction, though the target's matrix unit takes the type of a dot",
    "xf32": "an fp32 product is computed in less than fp32",
    "unused": "a tuning record that no case looks up on any of the targets",
    "record": "a case cannot be recorded",
}

# Types of Triton's intermediate form, by what the table of targets calls them.
_TYPES = {
    "fp64": ("f64",),
    "fp32": ("f32",),
    "fp16": ("f16",),
    "bf16": ("bf16",),
    "int8": ("i8",),
    "fp8": ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"),
}


class Finding(msgspec.Struct, frozen=True):
    """Something that must not be.

    Attributes:
        check: A key of ``CHECKS``.
        detail: What was found.
    """

    check: str
    detail: str


def judge(measured: Measured, target: Target) -> tuple[Finding, ...]:
    """Check a compiled kernel and return the findings."""
    found = []
    if measured.vgpr_spills or measured.sgpr_spills:
        found.append(Finding("spill", f"{measured.vgpr_spills} VGPRs and {measured.sgpr_spills} SGPRs"))
    if measured.scratch_bytes:
        found.append(Finding("scratch", f"{measured.scratch_bytes} bytes a lane"))
    if measured.lds_bytes > target.lds_bytes:
        found.append(Finding("lds", f"{measured.lds_bytes} bytes of {target.lds_bytes}"))
    taken = [kind for kind in measured.asked if takes(target, kind)]
    if taken and not measured.matrix:
        found.append(Finding("no-matrix", f"a dot of {', '.join(taken)}"))
    reduced = [name for name in measured.matrix if "xf32" in name] + [
        kind for kind in measured.asked if kind.startswith("f32 ")
    ]
    if reduced:
        found.append(Finding("xf32", ", ".join(reduced)))
    return tuple(found)


def takes(target: Target, kind: str) -> bool:
    """Return whether a target's matrix unit takes the operands of a dot, directly or (scaled ones) widened."""
    if kind.startswith("scaled "):
        return "bf16" in target.matrix_dtypes
    operand = kind.partition(" ")[0]
    if operand == "f32" and target.vendor == "nvidia":
        return False  # its fp32 is tf32
    return any(operand in _TYPES.get(dtype, ()) for dtype in target.matrix_dtypes)
