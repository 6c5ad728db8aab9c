"""Matrix products of gathered matrices: the unquantized mixture of experts."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype, tolerances
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    pairs: int
    m: int
    n: int
    k: int
    experts: int


def shape_class(problem: Problem) -> str:
    """How many rows an expert gets on average, which sets the height of a tile."""
    each = problem.pairs * problem.m / max(1, min(problem.experts, problem.pairs))
    height = "tall" if each > 96 else "middle" if each > 24 else "low"
    return f"{height}-float32" if problem.dtype == "float32" else height


def _cost(problem: Problem) -> Cost:
    """Each row is read and written once, and the matrices of as many experts as the pairs can choose."""
    rows, size = problem.pairs * problem.m, bytes_of(problem.dtype)
    weights = min(problem.experts, problem.pairs) * problem.n * problem.k
    return Cost(2.0 * rows * problem.n * problem.k, (weights + rows * (problem.k + problem.n)) * size)


OP = declare(
    __name__,
    summary="Matrix products with matrices selected by index: experts that are not quantized.",
    problem=Problem,
    implementations=(
        Implementation(
            "grouped",
            "triton",
            "kernel:run",
            rejects_dtype,
            note="reads only the matrices of the selected experts, without a gathered copy",
            record_class=shape_class,
        ),
        Implementation("torch", "reference", "reference:run"),
    ),
    example="pairs=1024 m=1 n=1408 k=2048",
    domain="Indices in range, of shapes that broadcast; the last two axes of b of any strides.",
    cost=_cost,
    # Sums of up to thousands of products that cancel, in fp32.
    tolerance=tolerances(Tolerance(ulps=4, scaled=3e-6), Tolerance(ulps=1, scaled=1e-5)),
    shape_class=shape_class,
    mlx="mlx.core.gather_mm",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.gather_mm.html",),
)
