"""Matrix products with quantized weights: ``x @ dequantize(w).T`` or ``x @ dequantize(w)``."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from rocmend.kernels.common.floats import bytes_of, kernel, tolerances
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.ops.matmul.dequantize import Problem as Dequantize
from rocmend.kernels.ops.matmul.quantized_matmul import rules
from rocmend.kernels.ops.matmul.quantized_matmul.rules import FEW
from rocmend.kernels.registry import declare

NAME = "quantized_matmul"
MOST_ROWS = (1, 8, 16, 32, 64, 256)
"""Most rows of each class."""


class Problem(NamedTuple):
    """What choices depend on.

    ``batch`` counts matrices of weights that differ (or are broadcast over x), ``rows`` those of x for each of them,
    ``columns`` those of the output, ``depth`` the terms of a sum.
    """

    dtype: str
    mode: str
    bits: int
    group_size: int
    transpose: bool
    batch: int
    rows: int
    columns: int
    depth: int


def rows_class(rows: int) -> str:
    """Return the class of a number of rows: m1, m8, m16, m32, m64, m256 or many."""
    for most in MOST_ROWS:
        if rows <= most:
            return f"m{most}"
    return "many"


def shape_class(problem: Problem) -> str:
    """Name the class: whether w is transposed, the width of a code, the rows of x."""
    kind = "qmm" if problem.transpose else "qvm"
    return f"{kind}-b{problem.bits}-{rows_class(problem.rows)}"


def tuning_class(problem: Problem) -> str:
    """Name the class of tuning records: rows of x, apart for fp32, codes that straddle words, and codes of floats."""
    odd = "odd-" if 32 % problem.bits else "fp-" if problem.mode != "affine" else ""
    return "f32" if problem.dtype == "float32" else odd + rows_class(problem.rows)


def gemv_class(dtype: str, bits: int, *, gated: bool = False) -> str:
    """Name the class of ``gemv``'s tuning records: the width of a code, with 4 bits apart for a gated pair; fp32."""
    return "f32" if dtype == "float32" else f"b{bits}" + "-gated" * (gated and bits == 4)


def few_class(problem: Problem) -> str:
    """Name the class of tuning records of the kernel for a few rows: the format up to 8 rows, m32 with more."""
    if problem.rows > FEW // 2:
        return "m32"
    return f"b{problem.bits}" if problem.mode == "affine" else problem.mode


def _dequantized(problem: Problem) -> tuple[tuple[str, Any], ...]:
    """Return the call that dequantizes the weights; the product is the vendor's."""
    elements = problem.batch * problem.columns * problem.depth
    return (("dequantize", Dequantize(problem.dtype, problem.mode, problem.bits, problem.group_size, elements)),)


_kernel = functools.partial(kernel, file="host", record_class=lambda problem: f"{tuning_class(problem)} sum/*")


def _cost(problem: Problem) -> Cost:
    weights = problem.batch * problem.columns * problem.depth
    scale = 2.0 * bytes_of(problem.dtype) if problem.mode == "affine" else 1.0
    vectors = problem.batch * problem.rows * (problem.columns + problem.depth) * bytes_of(problem.dtype)
    return Cost(
        2.0 * weights * problem.rows,
        weights * problem.bits / 8 + weights / problem.group_size * scale + vectors,
    )


OP = declare(
    __name__,
    summary="Matrix product with quantized weights, unpacked inside the kernel.",
    problem=Problem,
    implementations=(
        Implementation(
            "dequantize+matmul",
            "vendor",
            "dequantized:run",
            rules.rejects_dequantized,
            note="with many rows the vendor's faster matrix product outweighs the cost of dequantizing the weights",
            calls=_dequantized,
        ),
        _kernel(
            "lanes",
            rules.rejects_lanes,
            note="each lane unpacks words where the matrix instruction wants its operand",
            avoid=rules.avoid_lanes,
            vendor="nvidia",
            record_class=few_class,
        ),
        _kernel(
            "gemv",
            rules.rejects_gemv,
            note="one row of x, held in registers; one launch",
            record_class=lambda problem: gemv_class(problem.dtype, problem.bits),
        ),
        _kernel("kept", rules.rejects_kept, note="few rows of x, held in registers", avoid=rules.avoid_groups),
        _kernel("groups", rules.rejects_groups, note="few rows of x, group by group", avoid=rules.avoid_groups),
        _kernel("rows", rules.rejects_transposed, note="few rows of x, one by one", avoid=rules.avoid_rows),
        _kernel("tiles", rules.rejects_transposed, note="tiles of the output; weights are unpacked on the way"),
        _kernel("columns", rules.rejects_columns, note="the same where weights are not transposed"),
        Implementation("torch", "reference", "host:run_reference"),
    ),
    example="rows=1",
    domain=(
        "Affine 1, 2, 3, 4, 5, 6 and 8 bits with groups of 32, 64, 128; mxfp4, mxfp8, nvfp4. x of any leading axes "
        "and strides, w with or without leading axes, which broadcast with those of x."
    ),
    cost=_cost,
    # Sums are fp32. Where a tile of weights is rounded to x's type before it is multiplied, each weight carries
    # up to half an ulp of it (twice, for product and bias): over a sum of terms of either sign that is no more than
    # about one eps of the largest output.
    tolerance=tolerances(
        Tolerance(ulps=4, scaled=4e-6), Tolerance(ulps=1, scaled=2.0**-10), Tolerance(ulps=1, scaled=2.0**-7)
    ),
    formats=True,
    shape_class=shape_class,
    mlx="mlx.core.quantized_matmul",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.quantized_matmul.html",),
)
