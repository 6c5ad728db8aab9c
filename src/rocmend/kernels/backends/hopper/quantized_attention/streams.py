"""Where the kernel is taken whose wavefronts walk over keys of their own: few rows, 4 or 8 bits. Imports no torch."""

from __future__ import annotations

from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.op import first_reason
from rocmend.kernels.ops.attention.quantized_attention import Problem, rows_of
from rocmend.kernels.target import Target

DIMS = (128, 256)
MOST_ROWS = 8
"""Columns of a matrix instruction."""
GROUP_SIZE = 64


def rejects(problem: Problem, target: Target) -> str | None:
    """Say why the kernel does not take a problem on a target."""
    return gluon.rejects_target(target) or first_reason(
        (problem.dtype in ("float16", "bfloat16"), f"it takes float16 and bfloat16, not {problem.dtype}"),
        (problem.bits in (4, 8) and problem.group_size == GROUP_SIZE, "it takes 4 or 8 bits in groups of 64"),
        (
            problem.head_dim == problem.value_dim and problem.head_dim in DIMS,
            "it takes heads of 128 or 256, the same for keys and values",
        ),
        (rows_of(problem) <= MOST_ROWS, f"it takes up to {MOST_ROWS} rows, not {rows_of(problem)}"),
        (not problem.masked, "it takes no mask"),
    )
