"""argmax and argmin: the first NaN, else the first of the best."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.ops.rowwise.sort import BYTES
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.rowwise.arg_reduce"


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


OP = register(
    Op(
        name="arg_reduce",
        summary="Index of the largest or smallest element along an axis.",
        functions={"argmax": f"{HERE}.function:argmax", "argmin": f"{HERE}.function:argmin"},
        reference=f"{HERE}.reference:argmax",
        problem=Problem,
        implementations=(
            Implementation(
                "torch.argmax",
                "vendor",
                f"{HERE}.reference:run_torch",
                _rejects_torch,
                note="65536x1024 floats on an H200 take 89 µs, 110 µs in the kernels",
            ),
            Implementation("pieces", "triton", f"{HERE}.kernel:run"),
            Implementation("torch", "reference", f"{HERE}.reference:run"),
        ),
        dtypes=tuple(BYTES),
        domain="Any shape, strides and axis.",
        cost=lambda p: Cost(0.0, float(p.outer) * p.inner * (p.length * BYTES[p.dtype] + 8)),
        tolerance=dict.fromkeys(BYTES, Tolerance()),
        cases=f"{HERE}.cases:cases",
        shape_class=shape_class,
        mlx="mlx.core.argmax",
        sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.argmax.html",),
    )
)
