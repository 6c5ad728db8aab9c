"""The sum of a few rows, each times its weight: what the experts of a mixture come to."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.moe.weighted_sum"
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


OP = register(
    Op(
        name="weighted_sum",
        summary="Weighted sum of a few rows.",
        functions={"weighted_sum": f"{HERE}.function:weighted_sum"},
        reference=f"{HERE}.reference:weighted_sum",
        problem=Problem,
        implementations=(
            Implementation("rows", "triton", f"{HERE}.kernel:run", _rejects, note="reads x once"),
            Implementation("torch", "reference", f"{HERE}.reference:run"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="x of two axes or more; any strides.",
        cost=lambda p: Cost(
            2.0 * p.sums * p.rows * p.size, (p.sums * (p.rows + 1) * p.size + p.sums * p.rows) * bytes_of(p.dtype)
        ),
        # Products are rounded to the type, half a unit each; their sum may cancel.
        tolerance={
            "float32": Tolerance(ulps=4, scaled=2e-6),
            "float16": Tolerance(ulps=1, scaled=1e-3),
            "bfloat16": Tolerance(ulps=1, scaled=8e-3),
        },
        cases=f"{HERE}.cases:cases",
    )
)
