"""What is wrong with a code object, as its metadata tells."""

from __future__ import annotations

import msgspec

from rocmend.codeobject.hip.records import HipObject
from rocmend.core.gfx import lookup
from rocmend.core.records import Severity

__all__ = ["CHECKS", "KernelFinding", "findings"]

CHECKS = {
    "lds": "more LDS than a workgroup of the target can have: the launch fails",
    "wave-size": "the code is of another wave size than was asked for",
    "spill": "registers are spilled to memory",
    "scratch": "private memory is used: an array that is indexed at run time, or a call that is not inlined",
    "no-kernel": "the code object holds no kernel: what is a template here is instantiated elsewhere",
}


class KernelFinding(msgspec.Struct, frozen=True):
    """Something about a kernel that should not be.

    Attributes:
        check: A key of ``CHECKS``.
        severity: An error where the kernel cannot run or is of the wrong kind, advice where it only costs time.
        kernel: Its name, as the code object has it; empty for the object as a whole.
        detail: What was found.
    """

    check: str
    severity: Severity
    kernel: str
    detail: str


def findings(made: HipObject) -> tuple[KernelFinding, ...]:
    """Return what is wrong with a code object, errors first."""
    target = lookup(made.target)
    found = []
    for kernel in made.kernels:
        if kernel.lds_bytes > target.lds_per_workgroup_bytes:
            detail = f"{kernel.lds_bytes} bytes, {target.lds_per_workgroup_bytes} on {target.name}"
            found.append(KernelFinding("lds", Severity.ERROR, kernel.name, detail))
        if kernel.wavefront_size != made.wave_size:
            detail = f"{kernel.wavefront_size} lanes, {made.wave_size} asked for"
            found.append(KernelFinding("wave-size", Severity.ERROR, kernel.name, detail))
        if kernel.vgpr_spills or kernel.sgpr_spills:
            detail = f"{kernel.vgpr_spills} VGPRs and {kernel.sgpr_spills} SGPRs"
            found.append(KernelFinding("spill", Severity.ADVICE, kernel.name, detail))
        if kernel.scratch_bytes:
            detail = f"{kernel.scratch_bytes} bytes a lane"
            found.append(KernelFinding("scratch", Severity.ADVICE, kernel.name, detail))
    if not made.kernels:
        found.append(KernelFinding("no-kernel", Severity.INFO, "", CHECKS["no-kernel"]))
    return tuple(sorted(found, key=lambda one: one.severity.rank))
