"""Attention to a quantized KV cache, dequantized on the way."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.attention.quantized_attention"
BITS = (2, 4, 8)
MOST_DIM = 512


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
    bits: int
    group_size: int


def shape_class(problem: Problem) -> str:
    """Half or full precision and the larger of the two head dimensions, rounded up."""
    width = max(problem.head_dim, problem.value_dim)
    bucket = next((size for size in (64, 128, 256) if width <= size), 512)
    return f"{'float' if problem.dtype == 'float32' else 'half'}-d{bucket}"


def _rejects_split(problem: Problem, target: Target) -> str | None:
    if reason := rejects_dtype(problem, target):
        return reason
    if problem.bits not in BITS:
        return f"the kernel takes {BITS} bits, not {problem.bits}"
    if max(problem.head_dim, problem.value_dim) > MOST_DIM:
        return f"the kernel takes head dimensions up to {MOST_DIM}"
    return None


def _cost(p: Problem) -> Cost:
    rows = float(p.batch * p.heads * p.queries)
    width = p.head_dim + p.value_dim
    size = bytes_of(p.dtype)
    cache = float(p.batch * p.kv_heads * p.keys) * width * (p.bits / 8 + 2 * size / p.group_size)
    return Cost(2.0 * rows * p.keys * width, cache + rows * width * size)


OP = register(
    Op(
        name="quantized_attention",
        summary="Scaled dot-product attention over an affine-quantized KV cache.",
        functions={"quantized_attention": f"{HERE}.function:quantized_attention"},
        reference=f"{HERE}.reference:quantized_attention",
        problem=Problem,
        implementations=(
            Implementation(
                "split",
                "triton",
                f"{HERE}.host:run",
                _rejects_split,
                note="dequantizes in registers; reads the cache once",
            ),
            Implementation("torch", "reference", f"{HERE}.reference:quantized_attention"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
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
        cases=f"{HERE}.cases:cases",
        formats=f"{HERE}.cases:formats",
        shape_class=shape_class,
        sources=("https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/base.py",),
        notes=("Semantics of mlx-lm's quantized_scaled_dot_product_attention; the packing is that of MLX's quantize.",),
    )
)
