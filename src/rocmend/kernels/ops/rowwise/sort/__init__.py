"""Sort and argsort along an axis, stable, with NaN last in every float type."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import NUMBERS, kernel
from rocmend.kernels.op import Cost, Implementation, Tolerance, first_reason
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for

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


def bits_class(problem: Problem) -> str:
    """Name the class of tuning records: the bits of an element."""
    return str(8 * NUMBERS[problem.dtype])


def _rejects_long(problem: Problem, _target: Target) -> str | None:
    return first_reason((problem.length < 1 << 31, "the kernels use 31-bit positions in a row"))


def _rejects_rows(problem: Problem, target: Target) -> str | None:
    longest = longest_held(problem.dtype, target)
    return first_reason((problem.length <= longest, f"registers hold rows of up to {longest} elements"))


def longest_held(dtype: str, target: Target) -> int:
    """Return how many elements of a row are sorted in registers."""
    return config_for("sort", "rows", str(8 * NUMBERS[dtype]), target)["longest"]


def _rejects_counted(problem: Problem, _target: Target) -> str | None:
    return first_reason((problem.rows < 1 << 16, "it takes fewer than 65,536 rows: an axis of a grid"))


def _avoid_counted(problem: Problem, target: Target) -> str | None:
    config = config_for("sort", "counted", bits_class(problem), target)
    least, pairs = config.get("least", COUNTED_FROM), config.get("pairs", COUNTED_PAIRS)
    return first_reason(
        (
            counted(problem.rows, problem.length, least, pairs),
            "with fewer or more elements comparing all pairs is slower",
        )
    )


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
        kernel(
            "counted",
            _rejects_long,
            _rejects_counted,
            avoid=_avoid_counted,
            record_class=bits_class,
            note="compares all pairs",
        ),
        kernel("rows", _rejects_long, _rejects_rows, record_class=bits_class, note="bitonic, in registers"),
        kernel("radix", _rejects_long, record_class=bits_class, note="eight bits a pass"),
        Implementation("torch", "reference", "reference:run"),
    ),
    example="length=4096 indices=false",
    domain="Any shape, strides and axis; rows of fewer than 2^31 elements.",
    cost=lambda p: Cost(0.0, float(p.rows) * p.length * (NUMBERS[p.dtype] + (8 if p.indices else NUMBERS[p.dtype]))),
    tolerance=dict.fromkeys(NUMBERS, Tolerance()),
    shape_class=shape_class,
    mlx="mlx.core.sort",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.sort.html",),
)
