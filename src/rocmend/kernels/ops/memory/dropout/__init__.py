"""Dropout by MLX's generator (threefry) and by philox, kept apart."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import BYTES
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register

HERE = "rocmend.kernels.ops.memory.dropout"


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    elements: int
    generator: str


OP = register(
    Op(
        name="dropout",
        summary="Dropout that regenerates its mask in the backward pass.",
        functions={"dropout_mlx": f"{HERE}.function:dropout_mlx", "dropout_philox": f"{HERE}.function:dropout_philox"},
        reference=f"{HERE}.reference:dropout_mlx",
        problem=Problem,
        implementations=(
            Implementation("drawn", "triton", f"{HERE}.kernel:run"),
            Implementation("torch", "reference", f"{HERE}.reference:run"),
        ),
        dtypes=tuple(BYTES),
        domain="Any shape with fewer than 2^33 elements.",
        cost=lambda p: Cost(50.0 * p.elements, 2.0 * p.elements * BYTES[p.dtype]),
        # The reference computes in the op's own types: which elements are kept must agree bit by bit.
        tolerance=dict.fromkeys(BYTES, Tolerance()),
        cases=f"{HERE}.cases:cases",
        mlx="mlx.nn.Dropout",
        sources=(
            "https://ml-explore.github.io/mlx/build/html/python/nn/_autosummary/mlx.nn.Dropout.html",
            "https://www.thesalmons.org/john/random123/papers/random123sc11.pdf",
        ),
    )
)
