"""Log-sum-exp over any axes, and its gradient."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, references, rejects_backward, rejects_forward
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register

HERE = "rocmend.kernels.ops.rowwise.logsumexp"


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    columns: int
    backward: bool = False


def cost(problem: Problem) -> Cost:
    """Return the least work: x read; for the gradient x read and a tensor like it written."""
    elements = float(problem.rows) * problem.columns
    moved = elements * (2.0 if problem.backward else 1.0) + problem.rows
    return Cost(4.0 * elements, moved * bytes_of(problem.dtype))


OP = register(
    Op(
        name="logsumexp",
        summary="Log-sum-exp over any axes, and its gradient.",
        functions={
            "logsumexp": f"{HERE}.function:logsumexp",
            "logsumexp_backward": f"{HERE}.function:logsumexp_backward",
        },
        reference=f"{HERE}.reference:logsumexp",
        problem=Problem,
        implementations=(
            Implementation("walk", "triton", f"{HERE}.kernel:run", rejects_forward, note="reads its input once"),
            Implementation("walk_backward", "triton", f"{HERE}.kernel:run_backward", rejects_backward),
            *references(f"{HERE}.reference:rows", f"{HERE}.reference:rows_backward"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Any shape, any axes, rows of any length.",
        cost=cost,
        tolerance={
            # fp32 sums of exponentials that GPUs compute to 2 units, and a logarithm; near 0 the result cancels.
            "float32": Tolerance(ulps=8, scaled=4e-7),
            "float16": Tolerance(ulps=0.52, scaled=4e-7),
            "bfloat16": Tolerance(ulps=0.52, scaled=4e-7),
        },
        cases=f"{HERE}.cases:cases",
        mlx="mlx.core.logsumexp",
        sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.logsumexp.html",),
    )
)
