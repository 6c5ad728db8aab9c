"""Kernels of ``quantized_matmul`` on Hopper."""

from __future__ import annotations

from rocmend.kernels.backends.hopper import kernel
from rocmend.kernels.backends.hopper.quantized_matmul import gemm_w4a16_wgmma, skinny_gemm_persistent
from rocmend.kernels.ops.matmul.quantized_matmul import NAME, Problem
from rocmend.kernels.target import Target
from rocmend.kernels.without import is_switched_off

_WGMMA = kernel(
    __name__,
    "gemm_w4a16_wgmma",
    gemm_w4a16_wgmma.rejects,
    "weights are unpacked in registers, beside the products",
    record_class=lambda problem: f"{gemm_w4a16_wgmma.record_class(problem)} ordered/* sum/*",
)
IMPLEMENTATIONS = (
    _WGMMA,
    kernel(
        __name__,
        "skinny_gemm_persistent",
        skinny_gemm_persistent.rejects,
        "programs walk over the weights with all of x in shared memory",
        record_class=skinny_gemm_persistent.depth_class,
        avoid=skinny_gemm_persistent.avoid,
    ),
)


def beats_vendor(problem: Problem, target: Target) -> bool | None:
    """Return whether unpacking on the way takes less time, by estimate, than the vendor's product; None if unknown."""
    if is_switched_off(NAME, _WGMMA) or _WGMMA.rejects(problem, target):
        return None
    return gemm_w4a16_wgmma.is_faster(problem, target)
