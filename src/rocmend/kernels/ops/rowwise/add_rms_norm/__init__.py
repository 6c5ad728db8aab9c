"""A residual added, and the sum's RMSNorm, in one pass; and the gradients. Its kernels are those of ``rms_norm``."""

from __future__ import annotations

from rocmend.kernels.common.floats import bytes_of, references, rejects_forward, rejects_held_backward
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.ops.rowwise.rms_norm import Problem
from rocmend.kernels.registry import register

__all__ = ["OP", "Problem"]

HERE = "rocmend.kernels.ops.rowwise.add_rms_norm"


def cost(problem: Problem) -> Cost:
    """Return the least work: two tensors read and two written; for the gradients three and one."""
    elements = float(problem.rows) * problem.columns
    return Cost((11.0 if problem.backward else 5.0) * elements, 4.0 * elements * bytes_of(problem.dtype))


OP = register(
    Op(
        name="add_rms_norm",
        summary="Residual addition and RMSNorm of the sum in one pass, and the gradients.",
        functions={
            "add_rms_norm": f"{HERE}.function:add_rms_norm",
            "add_rms_norm_backward": f"{HERE}.function:add_rms_norm_backward",
        },
        reference=f"{HERE}.reference:add_rms_norm",
        problem=Problem,
        implementations=(
            Implementation(
                "row", "triton", f"{HERE}.kernel:run", rejects_forward, note="one pass: the sum is not read again"
            ),
            Implementation("row_backward", "triton", f"{HERE}.kernel:run_backward", rejects_held_backward),
            *references(f"{HERE}.reference:add_rms_norm", f"{HERE}.reference:add_rms_norm_backward"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="As rms_norm; x and the residual have the same shape and dtype.",
        cost=cost,
        tolerance={
            "float32": Tolerance(ulps=6),
            "float16": Tolerance(ulps=3.05, scaled=1e-7),
            "bfloat16": Tolerance(ulps=3.05),
        },
        cases=f"{HERE}.cases:cases",
        sources=("https://github.com/ml-explore/mlx/blob/main/mlx/backend/metal/kernels/rms_norm.metal",),
    )
)
