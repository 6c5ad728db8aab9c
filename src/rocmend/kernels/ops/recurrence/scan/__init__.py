"""Scans: cumulative sum, product, maximum, minimum and log-sum-exp."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import NUMBERS
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare

FUNCTIONS = ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")


class Problem(NamedTuple):
    """What choices depend on: sizes before, on and after the axis."""

    dtype: str
    outer: int
    length: int
    inner: int
    op: str


def shape_class(problem: Problem) -> str:
    """Along rows, or across them."""
    return "row" if problem.inner == 1 else "column"


OP = declare(
    __name__,
    summary="Cumulative sum, product, maximum, minimum and log-sum-exp along an axis.",
    functions=FUNCTIONS,
    problem=Problem,
    implementations=(
        Implementation("pieces", "triton", "kernel:run", record_class=lambda p: f"scan/{shape_class(p)} tiles/*"),
        Implementation("torch", "reference", "reference:run"),
    ),
    example="length=4096 op=cumsum",
    domain="Any shape, strides and axis.",
    cost=lambda p: Cost(float(p.outer) * p.length * p.inner, 2.0 * p.outer * p.length * p.inner * NUMBERS[p.dtype]),
    tolerance={
        **dict.fromkeys(NUMBERS, Tolerance()),
        # fp32 sums that cancel: each of log2(n) levels rounds a part of the largest sum.
        "float32": Tolerance(ulps=8, scaled=2e-6),
        "float64": Tolerance(ulps=8, scaled=4e-15),
        # One rounding of an fp32 result.
        "float16": Tolerance(ulps=0.51, scaled=2e-6),
        "bfloat16": Tolerance(ulps=0.51, scaled=2e-6),
    },
    shape_class=shape_class,
    mlx="mlx.core.cumsum",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.cumsum.html",),
)
