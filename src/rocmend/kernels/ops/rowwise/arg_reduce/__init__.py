"""argmax and argmin: the first NaN, else the first of the best."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import NUMBERS
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target


class Problem(NamedTuple):
    """What choices depend on: sizes before, on and after the axis."""

    dtype: str
    outer: int
    length: int
    inner: int


def shape_class(problem: Problem) -> str:
    """Along rows, or across them."""
    return "row" if problem.inner == 1 else "column"


def _rejects_torch(problem: Problem, target: Target) -> str | None:
    if problem.dtype in ("uint16", "uint32", "uint64", "bool"):
        return f"torch does not reduce {problem.dtype}"
    if target.vendor == "amd":
        return "torch's handling of NaN is checked on NVIDIA and the CPU only"
    if target.vendor == "nvidia" and (problem.inner > 1 or problem.outer < 4096):
        return "the kernels are faster: one row of 151,936 on an H200 takes 4 µs, 9 µs in torch"
    return None


OP = declare(
    __name__,
    summary="Index of the largest or smallest element along an axis.",
    functions=("argmax", "argmin"),
    problem=Problem,
    implementations=(
        Implementation(
            "torch.argmax",
            "vendor",
            "reference:run_torch",
            _rejects_torch,
            note="65536x1024 floats on an H200 take 89 µs, 110 µs in the kernels",
        ),
        Implementation(
            "pieces", "triton", "kernel:run", record_class=lambda p: f"{shape_class(p)} combine/{shape_class(p)}"
        ),
        Implementation("torch", "reference", "reference:run"),
    ),
    domain="Any shape, strides and axis.",
    cost=lambda p: Cost(0.0, float(p.outer) * p.inner * (p.length * NUMBERS[p.dtype] + 8)),
    tolerance=dict.fromkeys(NUMBERS, Tolerance()),
    shape_class=shape_class,
    mlx="mlx.core.argmax",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.argmax.html",),
)
