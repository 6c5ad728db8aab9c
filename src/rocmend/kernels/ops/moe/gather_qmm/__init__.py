"""Matrix products of gathered matrices with gathered quantized ones: the mixture of experts' matrix product."""

from __future__ import annotations

import functools
from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, kernel, rejects_dtype, tolerances
from rocmend.kernels.op import Cost, Implementation, Tolerance, first_reason
from rocmend.kernels.ops.matmul.quantized_matmul import gemv_class
from rocmend.kernels.ops.matmul.quantized_matmul.rules import rejects_row
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target

NAME = "gather_qmm"
SINGLE_PAIRS = 16
"""Rows up to which a launch is bound by latency."""
_kernel = functools.partial(kernel, file="host")


class Problem(NamedTuple):
    """What choices depend on; ``lhs``: rows of x are given by index."""

    dtype: str
    mode: str
    bits: int
    group_size: int
    transpose: bool
    gated: bool
    pairs: int
    m: int
    n: int
    k: int
    experts: int
    lhs: bool = False


def shape_class(problem: Problem) -> str:
    """How many rows an expert gets on average, which sets the height of a tile; ``few``: every row by itself."""
    rows = problem.pairs * problem.m
    if problem.transpose and (rows <= 32 or rows <= 2 * problem.experts):
        return "few"
    each = rows / max(1, min(problem.experts, problem.pairs))
    height = "tall" if each > 96 else "middle" if each > 24 else "low"
    return f"{height}-float32" if problem.dtype == "float32" else height


def _rejects_transposed(problem: Problem, target: Target) -> str | None:
    return rejects_dtype(problem, target) or first_reason((problem.transpose, "the weights are not transposed"))


def _rejects_tiles(problem: Problem, target: Target) -> str | None:
    return _rejects_transposed(problem, target) or first_reason(
        (problem.dtype != "float32", "the matrix unit takes float16 and bfloat16, not float32"),
        (
            (problem.mode == "affine" and problem.bits in {4, 8})
            or (problem.mode, problem.dtype) == ("mxfp4", "bfloat16"),
            "it takes affine codes of 4 or 8 bits, and mxfp4 with bfloat16",
        ),
        (shape_class(problem) != "few", "each row has experts of its own"),
    )


def _avoid_tiles(problem: Problem, _target: Target) -> str | None:
    """Say why ``grouped`` is faster; on an H200 mxfp4 with K of 2880 took 1.2 to 1.9 times as long."""
    return first_reason((problem.mode != "mxfp4" or problem.k % 128 == 0, "K of mxfp4 is no multiple of 128"))


def _rejects_gemv(problem: Problem, target: Target) -> str | None:
    return _rejects_transposed(problem, target) or rejects_row(problem.mode, problem.bits, problem.m, problem.k)


def _avoid_alone(problem: Problem, target: Target) -> str | None:
    """Say why rows are better brought together by expert than computed by themselves."""
    # From as many rows as experts on, enough of them share one.
    matrix = problem.dtype != "float32" and bool(target.matrix_dtypes)
    shared = matrix and problem.pairs * problem.m >= max(problem.experts, SINGLE_PAIRS)
    return first_reason(
        (shape_class(problem) == "few" and not shared, "rows share experts, whose weights are read once")
    )


def _rejects_columns(problem: Problem, target: Target) -> str | None:
    return rejects_dtype(problem, target) or first_reason((not problem.transpose, "the weights are transposed"))


def grouped_class(problem: Problem) -> str:
    """Name the class of records of ``grouped`` and ``columns``: rows of an expert, and the gate."""
    kind = shape_class(problem).replace("few", "low")
    return f"{kind}-gated" if problem.gated else kind


def _arranged_records(problem: Problem) -> str:
    return f"{grouped_class(problem)} arrange/*"


def pairs_record(problem: Problem) -> str:
    """Name the record of ``pairs``: gated or not, few rows or more."""
    size = "single" if problem.pairs * problem.m <= SINGLE_PAIRS else "several"
    return f"{'gated' if problem.gated else 'pairs'}/{size}"


def tiles_class(problem: Problem) -> str:
    """Name the class of records of ``tiles``: rows of an expert, but of uneven K, 4 affine bits, 8 with some rows."""
    kind, affine = shape_class(problem), problem.mode == "affine"
    if kind != "low" and problem.k % 128:
        kind = "uneven"
    elif kind != "low" and not problem.gated and affine and problem.bits == 4:
        kind = "b4"
    elif kind == "middle" and not problem.gated and affine:
        kind = "b8"
    return f"{kind}-gated" if problem.gated else kind


def _cost(problem: Problem) -> Cost:
    """Each row is read and written once, and the weights of as many experts as the pairs can choose."""
    rows, size, times = problem.pairs * problem.m, bytes_of(problem.dtype), 2 if problem.gated else 1
    elements = min(problem.experts, problem.pairs) * problem.n * problem.k * times
    of_group = 2 * size if problem.mode == "affine" else 1
    weights = elements * problem.bits / 8 + elements / problem.group_size * of_group
    return Cost(2.0 * rows * problem.n * problem.k * times, weights + rows * (problem.k + problem.n) * size)


OP = declare(
    __name__,
    summary="Matrix products with quantized matrices selected by index: experts, with an optional fused gate.",
    functions=("gather_qmm", "gather_qmm_swiglu"),
    problem=Problem,
    implementations=(
        _kernel(
            "tiles",
            _rejects_tiles,
            note="rows are brought together by expert; weights are unpacked in registers",
            avoid=_avoid_tiles,
            vendor="nvidia",
            record_class=lambda p: f"{tiles_class(p)} prepare/{tiles_class(p)}",
        ),
        _kernel(
            "gemv",
            _rejects_gemv,
            note="each row by itself, held in registers",
            avoid=_avoid_alone,
            record_class=lambda p: f"quantized_matmul/gemv/{gemv_class(p.dtype, p.bits, gated=p.gated)}",
        ),
        _kernel(
            "pairs",
            _rejects_transposed,
            note="each row by itself, in any format",
            avoid=_avoid_alone,
            record_class=pairs_record,
        ),
        _kernel(
            "grouped",
            _rejects_transposed,
            note="rows are brought together by expert, whose weights are read once",
            record_class=_arranged_records,
        ),
        _kernel(
            "columns",
            _rejects_columns,
            note="the same where weights are not transposed",
            record_class=_arranged_records,
        ),
        Implementation("torch", "reference", "reference:run"),
    ),
    example="pairs=8 m=1 n=1408 k=2048",
    domain="Indices in range, of shapes that broadcast; k (transposed) or n a multiple of the group size.",
    cost=_cost,
    # Sums of up to thousands of products that cancel, in fp32. On the matrix units a weight is rounded to the type of
    # x first: 2^-11 or 2^-8 each, which average out.
    tolerance=tolerances(
        Tolerance(ulps=4, scaled=4e-6), Tolerance(ulps=1, scaled=1e-3), Tolerance(ulps=1, scaled=6e-3)
    ),
    formats=True,
    shape_class=shape_class,
    mlx="mlx.core.gather_qmm",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.gather_qmm.html",),
)
