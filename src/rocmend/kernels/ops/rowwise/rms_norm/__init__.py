"""RMSNorm: ``x / sqrt(mean(x²) + eps) · weight``, rounded to the output's type before the weight is applied."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, references, rejects_forward, rejects_held_backward, width_class
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.rowwise.rms_norm"


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    columns: int
    weighted: bool = True
    promoted: bool = False
    backward: bool = False


def shape_class(problem: Problem) -> str:
    """Row lengths: short, middle, long (held in registers by one program) and split (over several)."""
    return width_class(problem.columns)


def _rejects_torch(problem: Problem, _target: Target) -> str | None:
    if problem.backward:
        return "it computes no gradients"
    if problem.promoted:
        return "torch's result has another dtype if x and the weight differ in dtype"
    if problem.weighted and problem.dtype != "float32":
        return "torch does not round before the weight is applied, so its results differ from MLX's"
    return None


def cost(problem: Problem) -> Cost:
    """Return the least work: x read, the output written; for gradients grad and x read, one tensor written."""
    elements = float(problem.rows) * problem.columns
    moved = 3.0 if problem.backward else 2.0
    return Cost((10.0 if problem.backward else 4.0) * elements, moved * elements * bytes_of(problem.dtype))


OP = register(
    Op(
        name="rms_norm",
        summary="RMSNorm over the last axis, and its gradients.",
        functions={"rms_norm": f"{HERE}.function:rms_norm", "rms_norm_backward": f"{HERE}.function:rms_norm_backward"},
        reference=f"{HERE}.reference:rms_norm",
        problem=Problem,
        implementations=(
            Implementation(
                "row",
                "triton",
                f"{HERE}.kernel:run",
                rejects_forward,
                note="rounds before the weight is applied, as MLX does; torch does not",
            ),
            Implementation("row_backward", "triton", f"{HERE}.kernel:run_backward", rejects_held_backward),
            Implementation("torch.nn.functional.rms_norm", "vendor", f"{HERE}.reference:run_torch", _rejects_torch),
            *references(f"{HERE}.reference:rms_norm", f"{HERE}.reference:rms_norm_backward"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Any number of leading axes, last axis of any length (gradient kernel: up to 16,384); "
        "x of any strides; weight of any floating dtype, or None.",
        cost=cost,
        tolerance={
            # A row's sum of squares in fp32, then a square root, a division, a product and the weight: half a unit each
            # and half of the sum's, of a number of small mantissa up to a whole one. Of 2·10^8 elements none is off by
            # more than 4.1.
            "float32": Tolerance(ulps=5),
            # Two roundings, after normalising and after weighting: half a unit each, of a number of small mantissa
            # up to a whole one. A denormal of fp16 times a weight is off by more.
            "float16": Tolerance(ulps=2.05, scaled=1e-7),
            "bfloat16": Tolerance(ulps=2.05),
        },
        cases=f"{HERE}.cases:cases",
        shape_class=shape_class,
        mlx="mlx.core.fast.rms_norm",
        sources=(
            "https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.rms_norm.html",
            "https://github.com/ml-explore/mlx/blob/main/mlx/backend/metal/kernels/rms_norm.metal",
        ),
    )
)
