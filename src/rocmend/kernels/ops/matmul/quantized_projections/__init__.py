"""Several products of one x with quantized weights in one launch; two of them gated; x normalised first."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from rocmend.kernels import backends
from rocmend.kernels.common.floats import bytes_of, kernel, tolerances
from rocmend.kernels.op import Cost, Tolerance, first_reason
from rocmend.kernels.ops.matmul.quantized_matmul import NAME as PRODUCT
from rocmend.kernels.ops.matmul.quantized_matmul import Problem as Product
from rocmend.kernels.ops.matmul.quantized_matmul import few_class, gemv_class
from rocmend.kernels.ops.matmul.quantized_matmul.rules import rejects_row
from rocmend.kernels.ops.rowwise.gated_linear_unit import Problem as GatedUnit
from rocmend.kernels.ops.rowwise.rms_norm import Problem as RMSNorm
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target

NAME = "quantized_projections"
MOST_ROWS = 8
"""Rows of x up to which the products wait for memory, and little else."""
_LARGE = 40_000_000
"""Weights of each product of a pair from which on Hopper's persistent kernel is faster, one product at a time."""


class Problem(NamedTuple):
    """What choices depend on; ``columns`` are those of all products together.

    ``normed``: x is normalised first (RMSNorm); ``added``: a residual is added to it before.
    """

    dtype: str
    mode: str
    bits: int
    group_size: int
    gated: bool
    products: int
    rows: int
    columns: int
    depth: int
    normed: bool = False
    added: bool = False


def _rejects_gemv(problem: Problem, _target: Target) -> str | None:
    fewest = 1 if problem.normed else 2
    return first_reason(
        (fewest <= problem.products <= 3, f"a launch takes {fewest} to 3 products, not {problem.products}")
    ) or rejects_row(problem.mode, problem.bits, problem.rows, problem.depth)


def _rejects_lanes(problem: Problem, _target: Target) -> str | None:
    return first_reason(
        (
            problem.dtype in {"float16", "bfloat16"},
            f"the matrix unit takes float16 and bfloat16, not {problem.dtype}",
        ),
        (
            problem.depth > 0 and 2 <= problem.products <= 3,
            f"a launch takes 2 or 3 products, not {problem.products} with K = {problem.depth}",
        ),
        (not problem.normed, "it does not normalise x"),
    )


def _without_norm(problem: Problem) -> Problem:
    """Return the problem behind a norm; one product is taken by the same kernels as several."""
    return problem._replace(normed=False, added=False, products=max(2, problem.products))


def _rejects_norm_first(problem: Problem, target: Target) -> str | None:
    return first_reason((problem.normed, "x is not normalised")) or _rejects_lanes(_without_norm(problem), target)


def _avoid_norm_first(problem: Problem, target: Target) -> str | None:
    return _avoid_lanes(_without_norm(problem), target)


def _avoid_lanes(problem: Problem, target: Target) -> str | None:
    return first_reason(
        (
            problem.rows <= MOST_ROWS,
            f"with {problem.rows} rows of x, more than {MOST_ROWS}, saving launches gains little",
        ),
        (backends.MEASURED, "only Triton 3.6 lays weights out in lanes as it needs them"),
        # H200, 4 bits: RMSNorm and 4096 against 6144 rows 8.5 µs for 12.0, against a pair of 14336 27.4 for 33.0.
        (_rejects_gemv(problem, target) is not None, "gemv computes one row of x in less time"),
        # H200, 2 to 8 rows: a pair of 14336 x 4096 30.6 to 36.3 µs for 26.3, of 6144 x 4096 13.3 to 15.5 for 16.7.
        (
            not (problem.gated and problem.columns // 2 * problem.depth > _LARGE and _persistent(problem, target)),
            "two persistent products and the gate take less time with so many weights",
        ),
    )


def _persistent(problem: Problem, target: Target) -> bool:
    """Return whether Hopper's persistent kernel takes each product."""
    form = problem.dtype, problem.mode, problem.bits
    fits = problem.group_size >= 64 and problem.depth % 512 == 0 and problem.depth <= 8192
    return target.name == "sm90" and form == ("bfloat16", "affine", 4) and fits


def _gemv_record(problem: Problem) -> str:
    return f"quantized_matmul/gemv/{gemv_class(problem.dtype, problem.bits, gated=problem.gated)}"


def _lanes_record(problem: Problem) -> str:
    return f"quantized_matmul/lanes/{few_class(product_of(problem))}"


def product_of(problem: Problem) -> Product:
    """Return the problem of one product as wide as all of them."""
    form = (problem.mode, problem.bits, problem.group_size)
    return Product(problem.dtype, *form, True, 1, problem.rows, problem.columns, problem.depth)


def _calls(problem: Problem) -> tuple[tuple[str, Any], ...]:
    """Return what ``apart`` calls: the norm and then this op without it, or products, all taken to be equally wide."""
    if problem.normed:
        norm = "add_rms_norm" if problem.added else "rms_norm"
        normed = (norm, RMSNorm(problem.dtype, problem.rows, problem.depth))
        rest = problem._replace(normed=False, added=False)
        return normed, ((NAME, rest) if problem.products > 1 else (PRODUCT, product_of(problem)))
    columns = problem.columns // max(1, problem.products)
    product = (PRODUCT, product_of(problem)._replace(columns=columns))
    gate = ("gated_linear_unit", GatedUnit(problem.dtype, problem.rows * columns, "silu"))
    return (product, gate) if problem.gated else (product,)


def _cost(problem: Problem) -> Cost:
    weights, size = problem.columns * problem.depth, bytes_of(problem.dtype)
    scale = 2.0 * size if problem.mode == "affine" else 1.0
    written = problem.columns // (2 if problem.gated else 1)
    # The norm reads its weight; a residual is read, and the sum written.
    rows = 1 + 2 * problem.added
    vectors = (problem.rows * (written + rows * problem.depth) + problem.normed * problem.depth) * size
    return Cost(
        2.0 * weights * problem.rows, weights * problem.bits / 8 + weights / problem.group_size * scale + vectors
    )


_kernel = functools.partial(kernel, file="host")
OP = declare(
    __name__,
    summary="Up to three products of x or its RMSNorm with quantized weights in one launch, or a gated pair.",
    functions=("quantized_matmul_many", "quantized_swiglu", "rms_norm_projections"),
    problem=Problem,
    implementations=(
        _kernel(
            "lanes",
            _rejects_lanes,
            note="up to 8 rows of x in one launch",
            avoid=_avoid_lanes,
            vendor="nvidia",
            record_class=_lanes_record,
        ),
        _kernel(
            "norm_first",
            _rejects_norm_first,
            note="the norm is a launch of its own: kernels for the matrix unit take the products",
            avoid=_avoid_norm_first,
            vendor="nvidia",
            function="apart",
            calls=_calls,
        ),
        _kernel("gemv", _rejects_gemv, note="one row of x, in one launch", record_class=_gemv_record),
        _kernel("apart", note="one launch after another", calls=_calls),
    ),
    example="products=3 rows=1 columns=6144",
    domain="Formats as in quantized_matmul; w with two axes; affine scales have the dtype of x.",
    cost=_cost,
    # As quantized_matmul; a gate adds the roundings of both products, of the sigmoid and of silu; a norm those of
    # the sum and of each element of x, which is half an eps of x twice.
    tolerance=tolerances(
        Tolerance(ulps=4, scaled=8e-6), Tolerance(ulps=3, scaled=2.0**-10), Tolerance(ulps=3, scaled=2.0**-7)
    ),
    formats=True,
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.quantized_matmul.html",),
)
