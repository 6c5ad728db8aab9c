"""Gated linear units: SwiGLU and GeGLU, and their gradients."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import backward, cost_per_element, forward, references, tolerances
from rocmend.kernels.op import Tolerance
from rocmend.kernels.registry import declare

KINDS = ("silu", "gelu", "gelu_tanh")


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    elements: int
    kind: str
    backward: bool = False


def size_class(elements: int) -> str:
    """Name the class of sizes of tuning records."""
    return "large" if elements >= 1 << 22 else "small"


OP = declare(
    __name__,
    summary="SwiGLU and GeGLU, and their gradients.",
    functions=("swiglu", "geglu", "glu_backward"),
    problem=Problem,
    implementations=(
        forward("forward", "one pass; torch takes two", record_class=lambda p: size_class(p.elements)),
        backward(),
        *references("run", "glu_backward"),
    ),
    example="kind=silu",
    domain="Any shape; any strides without a copy if the elements of a row are contiguous.",
    cost=cost_per_element(10, 3, backward=(10, 5)),
    # Where the activation is near 0 it is a small difference of numbers near 1: absolute, not relative.
    tolerance=tolerances(Tolerance(ulps=8, scaled=2e-7), Tolerance(ulps=0.52, scaled=2e-7)),
    mlx="mlx.nn.silu",
    sources=("https://arxiv.org/abs/2002.05202",),
)
