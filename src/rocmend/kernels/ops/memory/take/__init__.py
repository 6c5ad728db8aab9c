"""Gather along an axis: whole lines, or single elements."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.ops.memory.copy import BYTES
from rocmend.kernels.registry import register

HERE = "rocmend.kernels.ops.memory.take"


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
    return Cost(0.0, 2.0 * elements * BYTES[p.dtype] + 8.0 * p.indices)


OP = register(
    Op(
        name="take",
        summary="Gather along an axis, with negative indices.",
        functions={"take": f"{HERE}.function:take", "take_along_axis": f"{HERE}.function:take_along_axis"},
        reference=f"{HERE}.reference:take",
        problem=Problem,
        implementations=(
            Implementation(
                "lines", "triton", f"{HERE}.kernel:run",
                note="torch does not accept negative indices and fails on one out of range",
            ),
            Implementation("torch", "reference", f"{HERE}.reference:run"),
        ),
        dtypes=tuple(BYTES),
        domain="Any shape, axis and type; indices of int32, int64 or uint32 (narrower ones are widened).",
        cost=_cost,
        tolerance=dict.fromkeys(BYTES, Tolerance()),
        cases=f"{HERE}.cases:cases",
        mlx="mlx.core.take",
        sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.take.html",),
    )
)  # fmt: skip
