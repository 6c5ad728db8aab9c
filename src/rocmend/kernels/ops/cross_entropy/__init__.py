"""Cross-entropy of logits and integer targets, and its gradient."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.cross_entropy"
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    columns: int
    backward: bool = False


def _forward(problem: Problem, target: Target) -> str | None:
    del target
    if problem.backward:
        return "it has no gradients"
    return None if problem.dtype in BYTES else f"the kernel takes {', '.join(BYTES)}, not {problem.dtype}"


def _backward(problem: Problem, target: Target) -> str | None:
    del target
    if not problem.backward:
        return "it computes gradients"
    return None if problem.dtype in BYTES else f"the kernel takes {', '.join(BYTES)}, not {problem.dtype}"


def cost(problem: Problem) -> Cost:
    """Return what must be done: x read; for the gradient x read and a tensor like it written."""
    elements = float(problem.rows) * problem.columns
    moved = elements * (2.0 if problem.backward else 1.0) + problem.rows
    return Cost(4.0 * elements, moved * BYTES.get(problem.dtype, 8))


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
            Implementation("walk", "triton", f"{HERE}.host:run", _forward, note="reads the logits once, in any type"),
            Implementation("walk_backward", "triton", f"{HERE}.host:run_backward", _backward),
            Implementation(
                "torch",
                "reference",
                f"{HERE}.reference:rows",
                lambda problem, _target: "it has no gradients" if problem.backward else None,
            ),
            Implementation(
                "torch_backward",
                "reference",
                f"{HERE}.reference:rows_backward",
                lambda problem, _target: None if problem.backward else "it computes gradients",
            ),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Any leading axes, any number of classes; int8 to int64 targets; losses per row, in fp32.",
        cost=cost,
        tolerance={
            # Of losses, in fp32: a sum of exponentials and a logarithm, from which a logit is taken away.
            "float32": Tolerance(ulps=8, scaled=4e-7),
        },
        cases=f"{HERE}.cases:cases",
        mlx="mlx.nn.losses.cross_entropy",
        sources=(
            "https://ml-explore.github.io/mlx/build/html/python/nn/_autosummary_functions/mlx.nn.losses.cross_entropy.html",
        ),
    )
)
