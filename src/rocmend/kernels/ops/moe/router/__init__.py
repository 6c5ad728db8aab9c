"""Routing of tokens to experts: softmax and its k largest values in one launch."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import any_class, bytes_of, kernel, limits, tolerances
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    experts: int
    chosen: int


OP = declare(
    __name__,
    summary="Top-k of a softmax with indices, optionally normalised to sum to 1.",
    problem=Problem,
    implementations=(
        # Each chosen expert is searched for by itself.
        kernel(
            "rows",
            limits(experts=4096, chosen=32),
            note="one program per row",
            record_class=any_class,
            function="run",
        ),
        Implementation("torch", "reference", "reference:router"),
    ),
    domain="x of any leading axes; 1 <= k <= experts.",
    cost=lambda p: Cost(
        10.0 * p.rows * p.experts, p.rows * (p.experts + p.chosen) * bytes_of(p.dtype) + 4.0 * p.rows * p.chosen
    ),
    # As softmax; a sum and a division of values that are rounded already come on top.
    tolerance=tolerances(Tolerance(ulps=32, scaled=1e-6), Tolerance(ulps=2.1, scaled=1e-4)),
)
