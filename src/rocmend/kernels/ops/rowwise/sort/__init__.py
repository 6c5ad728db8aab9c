"""Sort and argsort along an axis, stable, with NaN last in every float type."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import NUMBERS
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target

COUNTED_FROM, COUNTED_ELEMENTS, COUNTED_PAIRS = 256, 1 << 14, 1 << 26
"""Elements of a row from which, elements of all and pairs of one row up to which comparing all pairs is fastest.

On an H200 one row of 4096 takes 5.5 µs (51 by digits), 8 rows of 2048 take 9.1 (28 in registers), 16 of 4096 take 55
(as by digits).
"""


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    length: int
    indices: bool


def shape_class(problem: Problem) -> str:
    """Rows held in registers, longer ones, and very long ones."""
    return "short" if problem.length <= 2048 else "long" if problem.length <= 1 << 20 else "huge"


def counted(rows: int, length: int, least: int = COUNTED_FROM, pairs: int = COUNTED_PAIRS) -> bool:
    """Return whether rows are sorted by comparing all pairs of elements."""
    return length >= least and rows * length <= COUNTED_ELEMENTS and rows * length**2 <= pairs


def _rejects_kernels(problem: Problem, _target: Target) -> str | None:
    return None if problem.length < 1 << 31 else "the kernels use 31-bit positions in a row"


def _rejects_torch(problem: Problem, target: Target) -> str | None:
    if target.vendor == "amd":
        return "torch's order of NaN and -0.0 is checked on NVIDIA and the CPU only"
    if target.vendor == "nvidia" and problem.length < 1024:
        return "the kernels sort short rows faster: 4096x128 on an H200 takes 8 µs, 32 µs in torch"
    if target.vendor == "nvidia" and counted(problem.rows, problem.length):
        return "the kernels sort a few thousand elements in one launch"
    return None


OP = declare(
    __name__,
    summary="Stable sort and argsort along an axis, NaN last.",
    functions=("sort", "argsort", "partition", "argpartition"),
    problem=Problem,
    implementations=(
        Implementation(
            "torch.sort",
            "vendor",
            "reference:run_torch",
            _rejects_torch,
            note="64x151936 floats on an H200 take 0.7 ms, 1.5 ms in the kernels",
        ),
        Implementation("kernels", "triton", "kernel:run", _rejects_kernels),
        Implementation("torch", "reference", "reference:run"),
    ),
    domain="Any shape, strides and axis; rows of fewer than 2^31 elements.",
    cost=lambda p: Cost(0.0, float(p.rows) * p.length * (NUMBERS[p.dtype] + (8 if p.indices else NUMBERS[p.dtype]))),
    tolerance=dict.fromkeys(NUMBERS, Tolerance()),
    shape_class=shape_class,
    mlx="mlx.core.sort",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.sort.html",),
)
