"""Matrix products of gathered matrices with gathered quantized ones: the mixture of experts' matrix product."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register

HERE = "rocmend.kernels.ops.moe.gather_qmm"


class Problem(NamedTuple):
    """What choices depend on."""

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


def shape_class(problem: Problem) -> str:
    """How many rows an expert gets on average, which sets the height of a tile; ``few``: every row by itself."""
    rows = problem.pairs * problem.m
    if problem.transpose and (rows <= 32 or rows <= 2 * problem.experts):
        return "few"
    each = rows / max(1, min(problem.experts, problem.pairs))
    height = "tall" if each > 96 else "middle" if each > 24 else "low"
    return f"{height}-float32" if problem.dtype == "float32" else height


def _cost(problem: Problem) -> Cost:
    """Each row is read and written once, and the weights of as many experts as the pairs can choose."""
    rows, size, times = problem.pairs * problem.m, bytes_of(problem.dtype), 2 if problem.gated else 1
    elements = min(problem.experts, problem.pairs) * problem.n * problem.k * times
    of_group = 2 * size if problem.mode == "affine" else 1
    weights = elements * problem.bits / 8 + elements / problem.group_size * of_group
    return Cost(2.0 * rows * problem.n * problem.k * times, weights + rows * (problem.k + problem.n) * size)


OP = register(
    Op(
        name="gather_qmm",
        summary="Matrix products with quantized matrices selected by index: experts, with an optional fused gate.",
        functions={
            "gather_qmm": f"{HERE}.function:gather_qmm",
            "gather_qmm_swiglu": f"{HERE}.function:gather_qmm_swiglu",
        },
        reference=f"{HERE}.reference:gather_qmm",
        problem=Problem,
        implementations=(
            Implementation(
                "experts",
                "triton",
                f"{HERE}.host:run",
                rejects_dtype,
                note="reads only the weights of the selected experts, once; torch has no such product",
            ),
            Implementation("torch", "reference", f"{HERE}.reference:run"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Indices in range, of shapes that broadcast; k (transposed) or n a multiple of the group size.",
        cost=_cost,
        tolerance={
            # Sums of up to thousands of products that cancel, in fp32.
            "float32": Tolerance(ulps=4, scaled=4e-6),
            # On the matrix units a weight is rounded to the type of x first: 2^-11 or 2^-8 each, which average out.
            "float16": Tolerance(ulps=1, scaled=1e-3),
            "bfloat16": Tolerance(ulps=1, scaled=6e-3),
        },
        cases=f"{HERE}.cases:cases",
        formats=f"{HERE}.cases:formats",
        shape_class=shape_class,
        mlx="mlx.core.gather_qmm",
        sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.gather_qmm.html",),
    )
)
