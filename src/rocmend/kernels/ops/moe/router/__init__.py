"""Which experts of a mixture a token takes, and with which weights: softmax and its k largest values in one launch."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.moe.router"
MOST_EXPERTS = 4096
MOST_CHOSEN = 32
"""Experts of a token: each is looked for by itself."""


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    experts: int
    chosen: int


def _rejects(problem: Problem, target: Target) -> str | None:
    if reason := rejects_dtype(problem, target):
        return reason
    if problem.experts > MOST_EXPERTS or problem.chosen > MOST_CHOSEN:
        return f"the kernel takes at most {MOST_EXPERTS} experts and selects at most {MOST_CHOSEN}"
    return None


OP = register(
    Op(
        name="router",
        summary="Top-k of a softmax with indices, optionally normalised to sum to 1.",
        functions={"router": f"{HERE}.function:router"},
        reference=f"{HERE}.reference:router",
        problem=Problem,
        implementations=(
            Implementation("rows", "triton", f"{HERE}.kernel:run", _rejects, note="one program per row"),
            Implementation("torch", "reference", f"{HERE}.reference:run"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="x of any leading axes; 1 <= k <= experts.",
        cost=lambda p: Cost(
            10.0 * p.rows * p.experts, p.rows * (p.experts + p.chosen) * bytes_of(p.dtype) + 4.0 * p.rows * p.chosen
        ),
        # As softmax; a sum and a division of values that are rounded already come on top.
        tolerance={
            "float32": Tolerance(ulps=32, scaled=1e-6),
            "float16": Tolerance(ulps=2.1, scaled=1e-4),
            "bfloat16": Tolerance(ulps=2.1, scaled=1e-4),
        },
        cases=f"{HERE}.cases:cases",
    )
)
