"""Where the kernel for very few rows is taken on Hopper. Imports no torch.

It multiplies affine codes as whole numbers with digits of x, and mxfp4's as bfloat16 with x as it is.
"""

from __future__ import annotations

from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.op import first_reason
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE
from rocmend.kernels.ops.moe.gather_qmm import Problem, shape_class
from rocmend.kernels.target import Target

COLUMNS = 256
"""Of K for a wavefront at a time."""
MOST_WAVEFRONTS = 16
MOST_PAIRS = 128
"""More share experts, whose weights other kernels read once for them."""
MOST_SHARED = 4
"""Pairs for each expert, as measured: 8 experts, 2 of each row, 4096 → 14336, 16 rows 438 us, read once 326."""
CHUNK = {"affine": 128, "mxfp4": 64}
"""What K is a multiple of."""
GROUPS = {("affine", 4): (64, 128), ("affine", 8): (64, 128), ("mxfp4", 4): (32,)}
"""Of the formats that the kernel takes."""


def rejects(problem: Problem, target: Target) -> str | None:
    """Say why the kernel does not take a problem on a target."""
    groups = GROUPS.get((problem.mode, problem.bits), ())
    return gluon.rejects_target(target) or first_reason(
        (shape_class(problem) == "few", "rows share experts"),
        (problem.dtype == "bfloat16", f"it takes bfloat16, not {problem.dtype}"),
        (problem.group_size in groups, f"it takes no groups of {problem.group_size} {problem.mode} {problem.bits}"),
        (problem.m == 1 and problem.pairs <= MOST_PAIRS, f"it takes up to {MOST_PAIRS} pairs of one row"),
        (problem.pairs < MOST_SHARED * problem.experts, "rows share experts, whose weights are better read once"),
        (problem.n % TILE == 0, f"it takes rows of weights in multiples of {TILE}"),
        (
            problem.k % CHUNK.get(problem.mode, 1) == 0 and problem.k <= COLUMNS * MOST_WAVEFRONTS,
            f"it takes K in multiples of {CHUNK.get(problem.mode)}, up to {COLUMNS * MOST_WAVEFRONTS}",
        ),
    )


def wavefronts(k: int, parts: int = 1) -> int:
    """Return how many wavefronts share a row of K columns, of which each has parts of 256."""
    return next_power_of_2(cdiv(k, COLUMNS * parts))


def class_of(problem: Problem) -> str:
    """Name the class of tuning records: the format, and of 4 bits how many wavefronts share K, if alike."""
    if problem.bits == 8:
        return "b8"
    count = wavefronts(problem.k)
    share = str(count) if problem.k == count * COLUMNS else "uneven"
    return f"{'mxfp4' if problem.mode == 'mxfp4' else 'b4'}-{share}"
