"""Quantize the rows of a matrix: codes of a few bits in 32-bit words, a scale (and a bias) for each group of a row."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    mode: str
    bits: int
    group_size: int
    elements: int


def shape_class(problem: Problem) -> str:
    """The format: what a group costs does not depend on how many there are."""
    return problem.mode if problem.mode != "affine" else f"affine{problem.bits}"


def _record(problem: Problem) -> str:
    return f"{'affine' if problem.mode == 'affine' else 'float'}/{shape_class(problem)}"


def _cost(problem: Problem) -> Cost:
    size = bytes_of(problem.dtype)
    of_group = 2 * size if problem.mode == "affine" else 1
    out = problem.elements * problem.bits / 8 + problem.elements / problem.group_size * of_group
    return Cost(8.0 * problem.elements, problem.elements * size + out)


OP = declare(
    __name__,
    summary="Quantize rows in groups: affine 1 to 8 bits, mxfp4, mxfp8, nvfp4, in MLX's packing.",
    problem=Problem,
    implementations=(
        Implementation(
            "groups", "triton", "host:run", rejects_dtype, note="bitwise equal to the reference", record_class=_record
        ),
        Implementation("torch", "reference", "reference:run"),
    ),
    domain="At least 2 axes; the last a multiple of the group size (and of 32 bits).",
    cost=_cost,
    tolerance={"float32": Tolerance(), "float16": Tolerance(), "bfloat16": Tolerance()},
    formats=True,
    shape_class=shape_class,
    mlx="mlx.core.quantize",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.quantize.html",),
)
