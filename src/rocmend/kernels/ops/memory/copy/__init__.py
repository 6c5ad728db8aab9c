"""Copies of any strides and types in one launch."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import ELEMENTS
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    to: str
    elements: int
    contiguous: bool


def _records(problem: Problem) -> str:
    width = 8 * max(ELEMENTS[problem.dtype], ELEMENTS[problem.to])
    return f"lines/{width}" if problem.contiguous else f"lines/{width} turned/{width}"


def _rejects_torch(problem: Problem, _target: Target) -> str | None:
    if problem.contiguous:
        return None
    return "torch copies transposed axes at 15 to 62 % of an H200's bandwidth, the kernels at 94 % or more"


OP = declare(
    __name__,
    summary="Copy between any strides, with a cast.",
    functions=("copy", "copy_into"),
    problem=Problem,
    implementations=(
        Implementation("torch.copy_", "vendor", "reference:copy", _rejects_torch),
        Implementation("lines", "triton", "host:run", record_class=_records),
        Implementation("torch", "reference", "reference:copy"),
    ),
    example="to=float32 contiguous=true",
    domain="Any shape and strides; casts between bool, integers and float16 to float64.",
    cost=lambda p: Cost(0.0, float(p.elements) * (ELEMENTS[p.dtype] + ELEMENTS[p.to])),
    tolerance=dict.fromkeys(ELEMENTS, Tolerance()),
    mlx="mlx.core.contiguous",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.contiguous.html",),
)
