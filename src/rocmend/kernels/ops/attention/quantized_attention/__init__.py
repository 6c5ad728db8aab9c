"""Attention to a quantized KV cache, dequantized on the way."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.core.units import listed
from rocmend.kernels.common.floats import bytes_of, kernel, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Tolerance, first_reason
from rocmend.kernels.ops.attention.attention_decode import rows_of, shape_class, split_kernels, uses_matrix
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for

__all__ = ("OP", "Problem", "rows_of", "shape_class")
NAME = "quantized_attention"
BITS = (2, 4, 8)
MOST_DIM = 512
MOST_GROUPS = 8


class Problem(NamedTuple):
    """What choices depend on; ``masked``: keys are hidden by a mask, not by lengths alone."""

    dtype: str
    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_dim: int
    value_dim: int
    bits: int
    group_size: int
    masked: bool = False


def rejects_split(problem: Problem, target: Target) -> str | None:
    """Say why the portable kernels do not take a problem."""
    return rejects_dtype(problem, target) or first_reason(
        (problem.bits in BITS, f"the kernel takes codes of {listed(list(map(str, BITS)))} bits, not {problem.bits}"),
        (
            max(problem.head_dim, problem.value_dim) <= MOST_DIM,
            f"the kernel takes head dimensions up to {MOST_DIM}",
        ),
    )


def _rejects_grouped(problem: Problem, target: Target) -> str | None:
    widest = max(problem.head_dim, problem.value_dim)
    most = int(config_for(NAME, "grouped", shape_class(problem), target)["most_rows"])
    rows = f"up to {most} rows (query heads of a KV head times queries), not {rows_of(problem)}"
    return rejects_split(problem, target) or first_reason(
        (problem.dtype != "float32", "the matrix unit takes float16 and bfloat16, not float32"),
        (problem.bits * problem.group_size >= 4 * 32, "a group has fewer than four words"),
        (widest <= MOST_GROUPS * problem.group_size, f"a head has more than {MOST_GROUPS} groups"),
        (
            rows_of(problem) <= most,
            f"on {target.name} it is used for {rows}" if most else f"on {target.name} it is not used",
        ),
    )


def _avoid_grouped(problem: Problem, target: Target) -> str | None:
    return first_reason(
        (
            uses_matrix(target, problem.dtype, rows_of(problem)),
            f"{target.name} has no matrix instructions that {rows_of(problem)} rows are worth padding for",
        )
    )


def _cost(p: Problem) -> Cost:
    rows = float(p.batch * p.heads * p.queries)
    width = p.head_dim + p.value_dim
    size = bytes_of(p.dtype)
    cache = float(p.batch * p.kv_heads * p.keys) * width * (p.bits / 8 + 2 * size / p.group_size)
    return Cost(2.0 * rows * p.keys * width, cache + rows * width * size)


OP = declare(
    __name__,
    summary="Scaled dot-product attention over an affine-quantized KV cache.",
    problem=Problem,
    implementations=(
        kernel(
            "grouped",
            _rejects_grouped,
            note="few rows; a matrix product a group of codes, scaled afterwards",
            avoid=_avoid_grouped,
            record_class=lambda problem: f"{shape_class(problem)} merge/*",
            file="host",
        ),
        *split_kernels(rejects_split, ("half-d256", "float-d128", "float-d256")),
        Implementation("torch", "reference", "reference:quantized_attention"),
    ),
    example="queries=1 keys=4096",
    domain=(
        "Affine 2, 4 or 8 bits in groups of 32, 64 or 128 (other widths use the reference); any number of "
        "queries; head dimensions up to 512; boolean, additive and causal masks; lengths in device memory."
    ),
    cost=_cost,
    tolerance={
        "float32": Tolerance(ulps=8, scaled=3e-6),
        # Values and weights are rounded to the type before matrix instructions, half an ulp each.
        "float16": Tolerance(ulps=1.0, scaled=6e-4),
        "bfloat16": Tolerance(ulps=1.0, scaled=5e-3),
    },
    formats=True,
    shape_class=shape_class,
    sources=("https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/base.py",),
    notes=("Semantics of mlx-lm's quantized_scaled_dot_product_attention; the packing is that of MLX's quantize.",),
)
