"""Gated linear units: SwiGLU and GeGLU, and their gradients."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, references, rejects_backward, rejects_forward
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register

HERE = "rocmend.kernels.ops.rowwise.gated_linear_unit"
KINDS = ("silu", "gelu", "gelu_tanh")


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    elements: int
    kind: str
    backward: bool = False


def cost(problem: Problem) -> Cost:
    """Return the least work: two tensors read and one written; for the gradients three and two."""
    moved = 5.0 if problem.backward else 3.0
    return Cost(10.0 * problem.elements, moved * problem.elements * bytes_of(problem.dtype))


OP = register(
    Op(
        name="gated_linear_unit",
        summary="SwiGLU and GeGLU, and their gradients.",
        functions={
            "swiglu": f"{HERE}.function:swiglu",
            "geglu": f"{HERE}.function:geglu",
            "glu_backward": f"{HERE}.function:glu_backward",
        },
        reference=f"{HERE}.reference:swiglu",
        problem=Problem,
        implementations=(
            Implementation("tile", "triton", f"{HERE}.kernel:run", rejects_forward, note="one pass; torch takes two"),
            Implementation("tile_backward", "triton", f"{HERE}.kernel:run_backward", rejects_backward),
            *references(f"{HERE}.reference:run", f"{HERE}.reference:run_backward"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Any shape; any strides without a copy if the elements of a row are contiguous.",
        cost=cost,
        tolerance={
            # Where the activation is near 0 it is a small difference of numbers near 1: absolute, not relative.
            "float32": Tolerance(ulps=8, scaled=2e-7),
            "float16": Tolerance(ulps=0.52, scaled=2e-7),
            "bfloat16": Tolerance(ulps=0.52, scaled=2e-7),
        },
        cases=f"{HERE}.cases:cases",
        mlx="mlx.nn.silu",
        sources=("https://arxiv.org/abs/2002.05202",),
    )
)
