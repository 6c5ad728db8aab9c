"""Gather along an axis: whole lines, or single elements."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import ELEMENTS
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare


class Problem(NamedTuple):
    """What choices depend on: sizes before, on and after the axis, and how many indices there are."""

    dtype: str
    outer: int
    length: int
    inner: int
    indices: int
    along: bool


def _cost(p: Problem) -> Cost:
    elements = float(p.indices) if p.along else float(p.outer) * p.indices * p.inner
    return Cost(0.0, 2.0 * elements * ELEMENTS[p.dtype] + 8.0 * p.indices)


OP = declare(
    __name__,
    summary="Gather along an axis, with negative indices.",
    functions=("take", "take_along_axis"),
    problem=Problem,
    implementations=(
        Implementation(
            "lines",
            "triton",
            "kernel:run",
            note="torch does not accept negative indices and fails on one out of range",
            record_class=lambda p: f"{'along' if p.along else 'lines'}/{8 * ELEMENTS[p.dtype]}",
        ),
        Implementation("torch", "reference", "reference:run"),
    ),
    example="inner=4096",
    domain="Any shape, axis and type; indices of int32, int64 or uint32 (narrower ones are widened).",
    cost=_cost,
    tolerance=dict.fromkeys(ELEMENTS, Tolerance()),
    mlx="mlx.core.take",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.take.html",),
)
