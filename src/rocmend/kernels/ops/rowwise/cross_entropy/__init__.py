"""Cross-entropy of logits and integer targets, and its gradient."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, references, rejects_backward, rejects_forward
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register

HERE = "rocmend.kernels.ops.rowwise.cross_entropy"


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
        name="cross_entropy",
        summary="Cross-entropy of logits and integer targets, and its gradient.",
        functions={
            "cross_entropy": f"{HERE}.function:cross_entropy",
            "cross_entropy_backward": f"{HERE}.function:cross_entropy_backward",
        },
        reference=f"{HERE}.reference:cross_entropy",
        problem=Problem,
        implementations=(
            Implementation(
                "walk",
                "triton",
                f"{HERE}.kernel:run",
                rejects_forward,
                note="reads the logits once, in their own dtype",
            ),
            Implementation("walk_backward", "triton", f"{HERE}.kernel:run_backward", rejects_backward),
            *references(f"{HERE}.reference:rows", f"{HERE}.reference:rows_backward"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Any leading axes, any number of classes; int8 to int64 targets; one fp32 loss per row.",
        cost=cost,
        tolerance={
            # Of losses, in fp32: a sum of exponentials and a logarithm, from which a logit is taken away.
            "float32": Tolerance(ulps=8, scaled=4e-7)
        },
        cases=f"{HERE}.cases:cases",
        mlx="mlx.nn.losses.cross_entropy",
        sources=(
            "https://ml-explore.github.io/mlx/build/html/python/nn/_autosummary_functions/mlx.nn.losses.cross_entropy.html",
        ),
    )
)
