"""Scatter along an axis: assign, add, multiply, maximum, minimum; the same bits on every run."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import NUMBERS
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target

MODES = ("assign", "add", "prod", "max", "min")


class Problem(NamedTuple):
    """What choices depend on: sizes before, on and after the axis, and how many indices there are."""

    dtype: str
    outer: int
    length: int
    inner: int
    indices: int
    along: bool
    mode: str


def _cost(p: Problem) -> Cost:
    updates = float(p.indices) if p.along else float(p.outer) * p.indices * p.inner
    whole = float(p.outer) * p.length * p.inner
    return Cost(updates, (2 * whole + 3 * updates) * NUMBERS[p.dtype] + 8.0 * p.indices)


def _rejects(problem: Problem, _target: Target) -> str | None:
    return None if problem.indices < 1 << 31 else "the kernels use 31-bit indices"


OP = declare(
    __name__,
    summary="Scatter along an axis: assign, add, multiply, maximum, minimum.",
    functions=("scatter", "put_along_axis"),
    problem=Problem,
    implementations=(
        Implementation(
            "runs",
            "triton",
            "kernel:run",
            _rejects,
            record_class=lambda p: f"keys/* apply/{8 * NUMBERS[p.dtype]}",
            note="torch adds floats with atomics, in a different order on every run",
        ),
        Implementation("torch", "reference", "reference:run"),
    ),
    example="inner=4096 mode=add",
    domain="Any shape and axis; indices of int32, int64 or uint32 (narrower ones are widened), less than 2^31.",
    cost=_cost,
    tolerance={
        **dict.fromkeys(NUMBERS, Tolerance()),
        # Sums of a few terms, in the order of the reference: only the rounding of each step differs from float64's.
        "float32": Tolerance(ulps=8, scaled=1e-6),
        "float64": Tolerance(ulps=8, scaled=1e-15),
        "float16": Tolerance(ulps=0.51, scaled=1e-6),
        "bfloat16": Tolerance(ulps=0.51, scaled=1e-6),
    },
    mlx="mlx.core.put_along_axis",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.array.at.html",),
)
