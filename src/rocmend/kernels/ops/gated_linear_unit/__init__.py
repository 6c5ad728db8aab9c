"""Gated linear units: SwiGLU and GeGLU, and their gradients."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.gated_linear_unit"
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
KINDS = ("silu", "gelu", "gelu_tanh")


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    elements: int
    kind: str
    backward: bool = False


def _forward(problem: Problem, target: Target) -> str | None:
    del target
    if problem.backward:
        return "it has no gradients"
    return None if problem.dtype in BYTES else f"the kernel takes {', '.join(BYTES)}, not {problem.dtype}"


def _backward(problem: Problem, target: Target) -> str | None:
    del target
    if not problem.backward:
        return "it computes gradients"
    return None if problem.dtype in BYTES else f"the kernel takes {', '.join(BYTES)}, not {problem.dtype}"


def cost(problem: Problem) -> Cost:
    """Return what must be done: two tensors read and one written; for the gradients three and two."""
    moved = 5.0 if problem.backward else 3.0
    return Cost(10.0 * problem.elements, moved * problem.elements * BYTES.get(problem.dtype, 8))


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
            Implementation("tile", "triton", f"{HERE}.host:run", _forward, note="one pass; torch takes two"),
            Implementation("tile_backward", "triton", f"{HERE}.host:run_backward", _backward),
            Implementation(
                "torch",
                "reference",
                f"{HERE}.reference:run",
                lambda problem, _target: "it has no gradients" if problem.backward else None,
            ),
            Implementation(
                "torch_backward",
                "reference",
                f"{HERE}.reference:run_backward",
                lambda problem, _target: None if problem.backward else "it computes gradients",
            ),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Any shape; strides are taken as they are where elements of a row are adjacent.",
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
