"""Kernels of ``gather_qmm`` on Hopper."""

from __future__ import annotations

from collections.abc import Callable

from rocmend.kernels.backends.hopper.gather_qmm import grouped_gemm, moe_gemv, moe_gemv_persistent
from rocmend.kernels.op import Implementation, Rule
from rocmend.kernels.ops.moe.gather_qmm import Problem
from rocmend.kernels.target import Target


def _kernel(
    name: str, rejects: Rule, note: str, record_class: Callable[[Problem, Target], str] | None = None
) -> Implementation:
    run = f"rocmend.kernels.backends.hopper.gather_qmm.host:{name}"
    return Implementation(name, "triton", run, rejects, note, vendor="nvidia", aligned=True, record_class=record_class)


IMPLEMENTATIONS = (
    _kernel(
        "moe_gemv_persistent",
        moe_gemv_persistent.rejects,
        "rows that share experts: programs walk over the tiles of chosen experts",
    ),
    _kernel(
        "moe_gemv",
        moe_gemv.rejects,
        "few rows: all weights are requested at once, and codes multiplied as integers",
        moe_gemv.class_of,
    ),
    _kernel(
        "grouped_gemm",
        grouped_gemm.rejects,
        "some rows of each expert: a program has all of an expert's",
        grouped_gemm.class_of,
    ),
)
