"""Which experts of a mixture a token takes, and with which weights: softmax and its k largest values in one launch."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype, tolerances
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target

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


OP = declare(
    __name__,
    "router",
    summary="Top-k of a softmax with indices, optionally normalised to sum to 1.",
    problem=Problem,
    implementations=(
        Implementation("rows", "triton", "kernel:run", _rejects, note="one program per row"),
        Implementation("torch", "reference", "reference:router"),
    ),
    domain="x of any leading axes; 1 <= k <= experts.",
    cost=lambda p: Cost(
        10.0 * p.rows * p.experts, p.rows * (p.experts + p.chosen) * bytes_of(p.dtype) + 4.0 * p.rows * p.chosen
    ),
    # As softmax; a sum and a division of values that are rounded already come on top.
    tolerance=tolerances(Tolerance(ulps=32, scaled=1e-6), Tolerance(ulps=2.1, scaled=1e-4)),
)
