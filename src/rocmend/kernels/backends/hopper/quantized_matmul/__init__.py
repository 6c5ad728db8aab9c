"""Kernels of ``quantized_matmul`` on Hopper: which one takes a problem."""

from __future__ import annotations

import functools

from rocmend.kernels.backends import Taken
from rocmend.kernels.backends.hopper.quantized_matmul import gemm_w4a16_wgmma, skinny_gemm_persistent
from rocmend.kernels.ops.matmul.quantized_matmul import Problem
from rocmend.kernels.target import Target


def taken(problem: Problem, target: Target) -> Taken | None:
    """Return the kernel that takes a problem.

    Its ``plan`` takes the operands and a function that plans a kernel for tensors at any address. Both return launches
    of ``x, w, scales, biases, out``.
    """
    if gemm_w4a16_wgmma.suits(problem, target):
        return Taken(
            "gemm_w4a16_wgmma",
            gemm_w4a16_wgmma.record_class(problem),
            functools.partial(gemm_w4a16_wgmma.plan, target=target),
            functools.partial(gemm_w4a16_wgmma.pays, problem, target),
        )
    if skinny_gemm_persistent.suits(problem, target):
        plan = functools.partial(skinny_gemm_persistent.plan, target=target)
        return Taken("skinny_gemm_persistent", skinny_gemm_persistent.depth_class(problem), plan)
    return None
