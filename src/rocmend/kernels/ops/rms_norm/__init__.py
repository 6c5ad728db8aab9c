"""RMSNorm: ``x / sqrt(mean(x²) + eps) · weight``, rounded to the type of ``x`` before the weight is applied."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.rms_norm"
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    columns: int


def shape_class(problem: Problem) -> str:
    """Rows that one program holds in registers, and longer ones that it walks."""
    return "held" if problem.columns <= 8192 else "walked"


def _unfit_row(problem: Problem, _target: Target) -> str | None:
    return None if problem.dtype in BYTES else f"the kernel takes {', '.join(BYTES)}, not {problem.dtype}"


OP = register(
    Op(
        name="rms_norm",
        summary="Root-mean-square normalisation over the last axis.",
        functions={"rms_norm": f"{HERE}.function:rms_norm"},
        reference=f"{HERE}.reference:rms_norm",
        problem=Problem,
        implementations=(
            Implementation(
                "row",
                "triton",
                f"{HERE}.host:run",
                _unfit_row,
                note="rounds between normalising and weighting, as MLX does; torch's own does not",
            ),
            Implementation("torch", "reference", f"{HERE}.reference:rms_norm"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Any number of leading axes, last axis of any length; x of any strides; weight contiguous or None.",
        cost=lambda p: Cost(4.0 * p.rows * p.columns, 2.0 * p.rows * p.columns * BYTES.get(p.dtype, 8)),
        tolerance={
            "float32": Tolerance(ulps=4),
            # Two roundings: after normalising, after weighting.
            "float16": Tolerance(ulps=1.6),
            "bfloat16": Tolerance(ulps=1.6),
        },
        cases=f"{HERE}.cases:cases",
        shape_class=shape_class,
        mlx="mlx.core.fast.rms_norm",
        sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.rms_norm.html",),
    )
)
