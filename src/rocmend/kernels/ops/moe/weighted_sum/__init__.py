"""Weighted sum of a few rows: the outputs of a token's experts, combined."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import any_class, bytes_of, kernel, limits, tolerances
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    sums: int
    rows: int
    size: int


OP = declare(
    __name__,
    summary="Weighted sum of a few rows.",
    problem=Problem,
    implementations=(
        # The kernel's loop over rows is unrolled.
        kernel("rows", limits(rows=32), record_class=any_class, note="reads x once"),
        Implementation("torch", "reference", "reference:weighted_sum"),
    ),
    example="sums=512 rows=8 size=4096",
    domain="x of two axes or more; any strides.",
    cost=lambda p: Cost(
        2.0 * p.sums * p.rows * p.size, (p.sums * (p.rows + 1) * p.size + p.sums * p.rows) * bytes_of(p.dtype)
    ),
    # Products are rounded to the type, half a unit each; their sum may cancel.
    tolerance=tolerances(
        Tolerance(ulps=4, scaled=2e-6), Tolerance(ulps=1, scaled=1e-3), Tolerance(ulps=1, scaled=8e-3)
    ),
)
