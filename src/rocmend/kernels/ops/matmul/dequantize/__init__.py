"""Turn quantized words back into numbers: ``scale * code + bias`` for affine, else ``scale * number``."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import BYTES, bytes_of
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.matmul.dequantize"


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


OP = register(
    Op(
        name="dequantize",
        summary="Dequantize rows: affine 1 to 8 bits, mxfp4, mxfp8, nvfp4, in MLX's packing.",
        functions={"dequantize": f"{HERE}.function:dequantize"},
        reference=f"{HERE}.reference:dequantize",
        problem=Problem,
        implementations=(
            Implementation("chunks", "triton", f"{HERE}.host:run", _rejects, note="bitwise equal to the reference"),
            Implementation("torch", "reference", f"{HERE}.reference:run"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Packed words [..., n * bits / 32] and scales [..., n / group size].",
        cost=_cost,
        tolerance={"float32": Tolerance(), "float16": Tolerance(), "bfloat16": Tolerance()},
        cases=f"{HERE}.cases:cases",
        formats=f"{HERE}.cases:formats",
        shape_class=shape_class,
        mlx="mlx.core.dequantize",
        sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.dequantize.html",),
    )
)
