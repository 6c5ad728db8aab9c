"""Rotary position embedding in all of MLX's variants, for one tensor or for queries and keys at once."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare


class Options(NamedTuple):
    """How to rotate; see ``function.rope``."""

    dims: int
    traditional: bool
    base: float | None
    scale: float
    inverse: bool = False


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    elements: int
    tokens: int


def shape_class(problem: Problem) -> str:
    """Few tokens (decoding), or many."""
    return "decode" if problem.tokens < 16 else "any"


OP = declare(
    __name__,
    summary="Rotary position embedding and its gradient; queries and keys in one launch.",
    functions=("rope", "rope_backward", "rope_pair"),
    problem=Problem,
    implementations=(
        Implementation(
            "rope",
            "triton",
            "host:run",
            rejects_dtype,
            note="angles computed in the kernel",
            record_class=lambda p: shape_class(p).replace("any", "*"),
        ),
        Implementation("torch", "reference", "reference:run"),
    ),
    domain="At least 3 axes of any strides; dims even and at most the last axis; offsets within int32.",
    cost=lambda p: Cost(3.0 * p.elements, 2.0 * p.elements * bytes_of(p.dtype)),
    tolerance={
        # A frequency is a power that GPUs compute to 2 units (2.4e-7): angles at place 4096 are off by up to 1e-3,
        # and so is what is rotated, relative to its length.
        "float32": Tolerance(ulps=8, scaled=5e-4),
        "float16": Tolerance(ulps=0.52, scaled=5e-4),
        "bfloat16": Tolerance(ulps=0.52, scaled=5e-4),
    },
    shape_class=shape_class,
    mlx="mlx.core.fast.rope",
    sources=(
        "https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.rope.html",
        "https://github.com/ml-explore/mlx/blob/main/mlx/backend/metal/kernels/rope.metal",
    ),
)
