"""Copies of any strides and types in one launch."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.memory.copy"
INTO = {"host": f"{HERE}.host:run_into", "reference": f"{HERE}.reference:run_into"}
BYTES = {
    "bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1,
}  # fmt: skip


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    to: str
    elements: int
    contiguous: bool


def _rejects_torch(problem: Problem, _target: Target) -> str | None:
    if problem.contiguous:
        return None
    return "torch copies transposed axes at 15 to 62 % of an H200's bandwidth, the kernels at 94 % or more"


OP = register(
    Op(
        name="copy",
        summary="Copy between any strides, with a cast.",
        functions={"copy": f"{HERE}.function:copy", "copy_into": f"{HERE}.function:copy_into"},
        reference=f"{HERE}.reference:copy",
        problem=Problem,
        implementations=(
            Implementation("torch.copy_", "vendor", f"{HERE}.reference:run", _rejects_torch),
            Implementation("lines", "triton", f"{HERE}.host:run"),
            Implementation("torch", "reference", f"{HERE}.reference:run"),
        ),
        dtypes=tuple(BYTES),
        domain="Any shape and strides; casts between bool, integers and float16 to float64.",
        cost=lambda p: Cost(0.0, float(p.elements) * (BYTES[p.dtype] + BYTES[p.to])),
        tolerance=dict.fromkeys(BYTES, Tolerance()),
        cases=f"{HERE}.cases:cases",
        mlx="mlx.core.contiguous",
        sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.contiguous.html",),
    )
)
