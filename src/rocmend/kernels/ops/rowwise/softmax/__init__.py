"""Softmax and log-softmax over any axes, and their gradients."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, references, rejects_backward, rejects_forward, width_class
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register

HERE = "rocmend.kernels.ops.rowwise.softmax"
LONGEST = 32768
"""Longest row that one program keeps in registers."""


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    columns: int
    backward: bool = False


def shape_class(problem: Problem) -> str:
    """Row lengths: short, middle, long (held in registers by one program) and split (over several)."""
    return width_class(problem.columns, LONGEST)


def cost(problem: Problem) -> Cost:
    """Return the least work: x read, one like it written; for the gradient two are read."""
    elements = float(problem.rows) * problem.columns
    moved = elements * (3.0 if problem.backward else 2.0)
    return Cost(4.0 * elements, moved * bytes_of(problem.dtype))


OP = register(
    Op(
        name="softmax",
        summary="Softmax and log-softmax over any axes, and their gradients.",
        functions={
            "softmax": f"{HERE}.function:softmax",
            "log_softmax": f"{HERE}.function:log_softmax",
            "softmax_backward": f"{HERE}.function:softmax_backward",
        },
        reference=f"{HERE}.reference:softmax",
        problem=Problem,
        implementations=(
            Implementation("row", "triton", f"{HERE}.kernel:run", rejects_forward, note="keeps rows in registers"),
            Implementation("row_backward", "triton", f"{HERE}.kernel:run_backward", rejects_backward),
            Implementation(
                "torch.softmax",
                "vendor",
                f"{HERE}.reference:run_torch",
                lambda problem, _target: "it computes no gradients" if problem.backward else None,
            ),
            *references(f"{HERE}.reference:rows", f"{HERE}.reference:rows_backward"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Any shape, any axes, rows of any length.",
        cost=cost,
        tolerance={
            # Exponentials of numbers far below the largest lose bits to the argument's rounding; they are small.
            "float32": Tolerance(ulps=8, scaled=4e-7),
            "float16": Tolerance(ulps=0.52, scaled=4e-7),
            "bfloat16": Tolerance(ulps=0.52, scaled=4e-7),
        },
        cases=f"{HERE}.cases:cases",
        shape_class=shape_class,
        mlx="mlx.core.softmax",
        sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.softmax.html",),
    )
)
