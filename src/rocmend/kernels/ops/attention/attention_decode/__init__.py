"""Attention of a few queries to a long cache, split over the cache."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import NamedTuple

from rocmend.kernels.common import floats
from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Rule, Tolerance, first_reason
from rocmend.kernels.op import Problem as AnyProblem
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target

MOST_QUERIES = 64
MOST_DIM = 1024
FEW_ROWS = 4


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    value_dim: int


def shape_class(problem: AnyProblem) -> str:
    """Half or full precision and the larger of the two head dimensions, rounded up."""
    width = max(problem.head_dim, problem.value_dim)
    bucket = next((size for size in (64, 128, 256) if width <= size), 512)
    return f"{'float' if problem.dtype == 'float32' else 'half'}-d{bucket}"


def rows_of(problem: AnyProblem) -> int:
    """Count the rows that read the same keys: query heads of a KV head times queries."""
    return problem.heads // problem.kv_heads * problem.queries


def uses_matrix(target: Target, dtype: str, rows: int) -> bool:
    """Return whether padding the rows to 16 for matrix instructions is worth it."""
    if rows > FEW_ROWS:
        return True
    if dtype == "float32":
        return False
    return {"float16": "fp16", "bfloat16": "bf16"}[dtype] in target.matrix_dtypes


def split_kernels(rejects: Rule, spilling: Collection[str]) -> tuple[Implementation, ...]:
    """Return the kernels that are split over the cache: with matrix instructions, and for few rows and many without.

    Args:
        rejects: Says why none of them takes a problem.
        spilling: Classes of shapes whose tiles for matrix instructions spill where wavefronts have 32 lanes.
    """

    def rejects_matrix(problem: AnyProblem, target: Target) -> str | None:
        return rejects(problem, target) or first_reason(
            (target.vendor != "amd" or bool(target.matrix_dtypes), f"{target.name} has no matrix instructions"),
            (
                target.vendor != "amd" or target.wave_size != 32 or shape_class(problem) not in spilling,
                f"on {target.name} its tiles of such heads ({shape_class(problem)}) spill registers",
            ),
        )

    def worth(problem: AnyProblem, target: Target) -> bool:
        return uses_matrix(target, problem.dtype, rows_of(problem))

    def avoid_matrix(problem: AnyProblem, target: Target) -> str | None:
        few = f"{rows_of(problem)} rows are not worth padding for matrix instructions on {target.name}"
        return first_reason((worth(problem, target), few))

    def avoid_vector(problem: AnyProblem, target: Target) -> str | None:
        many = f"{rows_of(problem)} rows are worth larger tiles on {target.name}"
        return first_reason((not worth(problem, target), many))

    # floats.kernel by its module: `kernel` is a module of this package, once it was imported
    of_rows = functools.partial(
        floats.kernel, file="host", record_class=lambda problem: f"{shape_class(problem)} merge/*"
    )
    together = "matrix instructions; all query heads of a KV head read it once"
    few = f"up to {FEW_ROWS} rows of a KV head, without matrix instructions"
    return (
        of_rows("split", rejects_matrix, note=together, avoid=avoid_matrix),
        of_rows("split_vector", rejects, note=few, avoid=avoid_vector),
        of_rows("split_rows", rejects, note="more rows, without matrix instructions"),
    )


def _rejects_split(problem: Problem, target: Target) -> str | None:
    if reason := rejects_dtype(problem, target):
        return reason
    if problem.queries > MOST_QUERIES:
        return f"the kernel takes up to {MOST_QUERIES} queries, not {problem.queries}"
    if max(problem.head_dim, problem.value_dim) > MOST_DIM:
        return f"the kernel takes head dimensions up to {MOST_DIM}"
    return None


def _cost(p: Problem) -> Cost:
    rows = float(p.batch * p.heads * p.queries)
    cache = float(p.batch * p.kv_heads * p.keys) * (p.head_dim + p.value_dim)
    width = p.head_dim + p.value_dim
    return Cost(2.0 * rows * p.keys * width, (cache + rows * width) * bytes_of(p.dtype))


OP = declare(
    __name__,
    summary="Scaled dot-product attention of a few queries to a long KV cache.",
    problem=Problem,
    implementations=(
        *split_kernels(_rejects_split, ("half-d512", "float-d64", "float-d128", "float-d256", "float-d512")),
        Implementation("torch", "reference", "reference:attention_decode"),
    ),
    example="queries=1 keys=4096",
    domain=(
        "1 to 64 queries; heads a multiple of KV heads; head dimensions up to 1024, Dv may differ from D; "
        "any strides; boolean, additive and causal masks, sinks, soft cap, window; lengths in device memory."
    ),
    cost=_cost,
    tolerance={
        # Sums of up to thousands of products of either sign in fp32; the result is a mean and can cancel.
        "float32": Tolerance(ulps=8, scaled=2e-6),
        # Weights are rounded to the type before they multiply values: half an ulp.
        "float16": Tolerance(ulps=1.0, scaled=3e-4),
        "bfloat16": Tolerance(ulps=1.0, scaled=2.5e-3),
    },
    shape_class=shape_class,
    mlx="mlx.core.fast.scaled_dot_product_attention",
    sources=(
        "https://pytorch.org/blog/flash-decoding/",
        "https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.scaled_dot_product_attention.html",
    ),
    notes=("A query with every key masked by a boolean or causal mask returns the mean of the values, as in MLX.",),
)
