"""The largest elements along an axis and where they stand."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.ops.rowwise.sort import BYTES
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.rowwise.topk"


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    length: int
    k: int


def shape_class(problem: Problem) -> str:
    """Routing to a few experts, sampling from a vocabulary, and large k."""
    return "short" if problem.length <= 2048 else "long" if problem.k <= 256 else "many"


def _rejects_kernels(problem: Problem, _target: Target) -> str | None:
    return None if problem.length < 1 << 31 else "the kernels use 31-bit positions in a row"


OP = register(
    Op(
        name="topk",
        summary="The k largest elements along an axis, sorted, NaN first, ties by position.",
        functions={"topk": f"{HERE}.function:topk"},
        reference=f"{HERE}.reference:topk",
        problem=Problem,
        implementations=(
            Implementation(
                "pieces", "triton", f"{HERE}.kernel:run", _rejects_kernels,
                note="torch.topk does not define the order of equal elements: the same input may select other experts",
            ),
            Implementation("torch", "reference", f"{HERE}.reference:run"),
        ),
        dtypes=tuple(BYTES),
        domain="Any shape, strides and axis; rows of fewer than 2^31 elements.",
        cost=lambda p: Cost(0.0, float(p.rows) * (p.length * BYTES[p.dtype] + p.k * (BYTES[p.dtype] + 8))),
        tolerance=dict.fromkeys(BYTES, Tolerance()),
        cases=f"{HERE}.cases:cases",
        shape_class=shape_class,
        mlx="mlx.core.topk",
        sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.topk.html",),
    )
)  # fmt: skip
