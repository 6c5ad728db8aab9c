"""Dropout by MLX's generator (threefry) and by philox, kept apart."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import BYTES
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    elements: int
    generator: str


OP = declare(
    __name__,
    summary="Dropout that regenerates its mask in the backward pass.",
    functions=("dropout_mlx", "dropout_philox"),
    problem=Problem,
    implementations=(
        Implementation("drawn", "triton", "kernel:run", record_class=lambda p: f"{p.generator}/*"),
        Implementation("torch", "reference", "reference:run"),
    ),
    example="generator=threefry",
    domain="Any shape with fewer than 2^33 elements.",
    cost=lambda p: Cost(50.0 * p.elements, 2.0 * p.elements * BYTES[p.dtype]),
    # The reference computes in the op's own types: which elements are kept must agree bit by bit.
    tolerance=dict.fromkeys(BYTES, Tolerance()),
    mlx="mlx.nn.Dropout",
    sources=(
        "https://ml-explore.github.io/mlx/build/html/python/nn/_autosummary/mlx.nn.Dropout.html",
        "https://www.thesalmons.org/john/random123/papers/random123sc11.pdf",
    ),
)
