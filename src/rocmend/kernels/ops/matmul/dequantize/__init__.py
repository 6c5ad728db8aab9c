"""Turn quantized words back into numbers: ``scale * code + bias`` for affine, else ``scale * number``."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import BYTES, bytes_of
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    mode: str
    bits: int
    group_size: int
    elements: int


def _rejects(problem: Problem, _target: Target) -> str | None:
    return None if problem.dtype in BYTES else f"the kernel returns {', '.join(BYTES)}, not {problem.dtype}"


def shape_class(problem: Problem) -> str:
    """The format: what a group costs does not depend on how many there are."""
    return problem.mode if problem.mode != "affine" else f"affine{problem.bits}"


def _cost(problem: Problem) -> Cost:
    size = bytes_of(problem.dtype)
    of_group = 2 * size if problem.mode == "affine" else 1
    read = problem.elements * problem.bits / 8 + problem.elements / problem.group_size * of_group
    return Cost(2.0 * problem.elements, problem.elements * size + read)


OP = declare(
    __name__,
    summary="Dequantize rows: affine 1 to 8 bits, mxfp4, mxfp8, nvfp4, in MLX's packing.",
    problem=Problem,
    implementations=(
        Implementation(
            "chunks", "triton", "host:run", _rejects, note="bitwise equal to the reference", record_class=shape_class
        ),
        Implementation("torch", "reference", "reference:run"),
    ),
    domain="Packed words [..., n * bits / 32] and scales [..., n / group size].",
    cost=_cost,
    tolerance={"float32": Tolerance(), "float16": Tolerance(), "bfloat16": Tolerance()},
    formats=True,
    shape_class=shape_class,
    mlx="mlx.core.dequantize",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.dequantize.html",),
)
