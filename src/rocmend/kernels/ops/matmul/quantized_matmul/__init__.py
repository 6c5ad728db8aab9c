"""Matrix products with quantized weights: ``x @ dequantize(w).T`` or ``x @ dequantize(w)``."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels import backends
from rocmend.kernels.common.floats import BYTES, bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

NAME = "quantized_matmul"
HERE = "rocmend.kernels.ops.matmul.quantized_matmul"
MOST_ROWS = (1, 8, 16, 32, 64, 256)
"""Most rows of each class."""
FEWEST = 4
"""Rows of x for which a product without matrix instructions takes them one by one."""
FEW = 16
"""Rows of x that a group's product is padded to."""
WORKSPACE_BYTES = 1 << 30
"""Most memory that dequantized weights may take for the time of a product."""


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


def few_class(problem: Problem) -> str:
    """Name the class of tuning records of the kernel for a few rows: the format up to 8 rows, m32 with more."""
    if problem.rows > FEW // 2:
        return "m32"
    return f"b{problem.bits}" if problem.mode == "affine" else problem.mode


def many_rows(problem: Problem, target: Target) -> bool:
    """Return whether the weights are worth dequantizing once: that is little work against the product."""
    if problem.dtype == "float32":
        return problem.rows >= 32
    taken = backends.taken(NAME, problem, target)
    if taken is not None and taken.beats_vendor is not None:
        return not taken.beats_vendor()
    slow = target.vendor == "nvidia" and (problem.mode != "affine" or 32 % problem.bits != 0)
    return problem.rows >= (SLOW_CROSSOVER if slow else CROSSOVER)


CROSSOVER = 160
"""Rows of x from which it is so: on an H200, 4 bits, 14336 by 4096, 128 take 62 µs fused, 75 apart; 192 115 and 77."""
SLOW_CROSSOVER = 33
"""The same where tiles gather or convert code by code: there 32 rows of 3 bits take 200 µs in tiles, of mxfp4 95."""


def _rejects_vendor(problem: Problem, target: Target) -> str | None:
    if problem.dtype not in BYTES:
        return f"it takes {', '.join(BYTES)}, not {problem.dtype}"
    if target.vendor == "cpu":
        return "the weights are dequantized by a Triton kernel"
    size = problem.batch * problem.columns * problem.depth * BYTES[problem.dtype]
    if size > WORKSPACE_BYTES:
        return f"dequantized weights take {size >> 20} MiB, more than {WORKSPACE_BYTES >> 20}"
    if not many_rows(problem, target):
        return f"for {problem.rows} rows of x, unpacking the weights inside the product is faster"
    return None


def _cost(problem: Problem) -> Cost:
    weights = problem.batch * problem.columns * problem.depth
    scale = 2.0 * bytes_of(problem.dtype) if problem.mode == "affine" else 1.0
    vectors = problem.batch * problem.rows * (problem.columns + problem.depth) * bytes_of(problem.dtype)
    return Cost(
        2.0 * weights * problem.rows,
        weights * problem.bits / 8 + weights / problem.group_size * scale + vectors,
    )


OP = register(
    Op(
        name=NAME,
        summary="Matrix product with quantized weights, unpacked inside the kernel.",
        functions={"quantized_matmul": f"{HERE}.function:quantized_matmul"},
        reference=f"{HERE}.reference:quantized_matmul",
        problem=Problem,
        implementations=(
            Implementation(
                "dequantize+matmul",
                "vendor",
                f"{HERE}.dequantized:run",
                _rejects_vendor,
                note="with many rows the vendor's faster matrix product outweighs the cost of dequantizing the weights",
            ),
            Implementation("fused", "triton", f"{HERE}.host:run", rejects_dtype),
            Implementation("torch", "reference", f"{HERE}.host:run_reference"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain=(
            "Affine 1, 2, 3, 4, 5, 6 and 8 bits with groups of 32, 64, 128; mxfp4, mxfp8, nvfp4. x of any leading axes "
            "and strides, w with or without leading axes, which broadcast with those of x."
        ),
        cost=_cost,
        # Sums are fp32. Where a tile of weights is rounded to x's type before it is multiplied, each weight carries
        # up to half an ulp of it (twice, for product and bias): over a sum of terms of either sign that is no more than
        # about one eps of the largest output.
        tolerance={
            "float32": Tolerance(ulps=4, scaled=4e-6),
            "float16": Tolerance(ulps=1, scaled=2.0**-10),
            "bfloat16": Tolerance(ulps=1, scaled=2.0**-7),
        },
        cases=f"{HERE}.cases:cases",
        formats=f"{HERE}.cases:formats",
        shape_class=shape_class,
        mlx="mlx.core.quantized_matmul",
        sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.quantized_matmul.html",),
    )
)
