"""The sum of a few rows, each times its weight: what the experts of a mixture come to."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype, tolerances
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target

MOST = 32
"""Rows of a sum: the kernel's loop over them is unrolled."""


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    sums: int
    rows: int
    size: int


def _rejects(problem: Problem, target: Target) -> str | None:
    if problem.rows > MOST:
        return f"the kernel adds at most {MOST} rows, not {problem.rows}"
    return rejects_dtype(problem, target)


OP = declare(
    __name__,
    "weighted_sum",
    summary="Weighted sum of a few rows.",
    problem=Problem,
    implementations=(
        Implementation("rows", "triton", "kernel:run", _rejects, note="reads x once"),
        Implementation("torch", "reference", "reference:weighted_sum"),
    ),
    domain="x of two axes or more; any strides.",
    cost=lambda p: Cost(
        2.0 * p.sums * p.rows * p.size, (p.sums * (p.rows + 1) * p.size + p.sums * p.rows) * bytes_of(p.dtype)
    ),
    # Products are rounded to the type, half a unit each; their sum may cancel.
    tolerance=tolerances(
        Tolerance(ulps=4, scaled=2e-6), Tolerance(ulps=1, scaled=1e-3), Tolerance(ulps=1, scaled=8e-3)
    ),
)
