"""Kernels of ``gather_qmm`` on Hopper."""

from __future__ import annotations

from rocmend.kernels.backends.hopper import kernel
from rocmend.kernels.backends.hopper.gather_qmm import grouped_gemm, moe_gemv, moe_gemv_persistent
from rocmend.kernels.common.floats import any_class

IMPLEMENTATIONS = (
    kernel(
        __name__,
        "moe_gemv_persistent",
        moe_gemv_persistent.rejects,
        "rows that share experts: programs walk over the tiles of chosen experts",
        record_class=any_class,
    ),
    kernel(
        __name__,
        "moe_gemv",
        moe_gemv.rejects,
        "few rows: all weights are requested at once, and codes multiplied as integers",
        record_class=moe_gemv.class_of,
    ),
    kernel(
        __name__,
        "grouped_gemm",
        grouped_gemm.rejects,
        "some rows of each expert: a program has all of an expert's",
        record_class=grouped_gemm.class_of,
    ),
)
