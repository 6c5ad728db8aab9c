"""Random bits by threefry, and uniform, normal, Gumbel and Bernoulli numbers made of them, as MLX makes them."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare

BYTES = {"uint8": 1, "uint16": 2, "uint32": 4, "bool": 1, "float16": 2, "bfloat16": 2, "float32": 4}
FUNCTIONS = (
    "random_bits", "random_split", "random_key", "uniform", "normal", "gumbel", "bernoulli", "categorical",
)  # fmt: skip


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    kind: str
    keys: int
    elements: int


OP = declare(
    __name__,
    summary="Threefry random bits and numbers, bitwise equal to MLX's.",
    functions=FUNCTIONS,
    problem=Problem,
    implementations=(
        Implementation("stream", "triton", "kernel:run", record_class=lambda p: p.kind),
        Implementation("torch", "reference", "reference:run"),
    ),
    example="dtype=float32 kind=uniform keys=1",
    domain="Any shape; up to 65535 keys; streams of fewer than 2^33 words.",
    cost=lambda p: Cost(50.0 * p.keys * p.elements, float(p.keys) * p.elements * BYTES[p.dtype]),
    tolerance=dict.fromkeys(BYTES, Tolerance()),
    shape_class=lambda problem: problem.kind,
    mlx="mlx.core.random.bits",
    sources=(
        "https://ml-explore.github.io/mlx/build/html/python/random.html",
        "https://www.thesalmons.org/john/random123/papers/random123sc11.pdf",
    ),
)
