"""A residual added, and the sum's RMSNorm, in one pass; and the gradients. Its kernels are those of ``rms_norm``."""

from __future__ import annotations

from rocmend.kernels.common.floats import (
    class_of_width,
    cost_per_element,
    forward,
    held,
    kernel,
    references,
    rejects_held_backward,
    tolerances,
)
from rocmend.kernels.op import Tolerance
from rocmend.kernels.ops.rowwise.rms_norm import Problem, held_class
from rocmend.kernels.registry import declare

OP = declare(
    __name__,
    summary="Residual addition and RMSNorm of the sum in one pass, and the gradients.",
    functions=("add_rms_norm", "add_rms_norm_backward"),
    problem=Problem,
    implementations=(
        held("one pass: the sum is not read again", record_class=lambda p: f"rms_norm/held/{held_class(p)}"),
        forward("split", "long rows, over several programs each", record_class=lambda _: "rms_norm/split/*"),
        kernel(
            "backward",
            rejects_held_backward,
            record_class=lambda p: f"rms_norm/backward/{class_of_width(p)} rms_norm/column_sum/*",
        ),
        *references("add_rms_norm", "add_rms_norm_backward"),
    ),
    domain="As rms_norm; x and the residual have the same shape and dtype.",
    cost=cost_per_element(5, 4, backward=(11, 4)),
    tolerance=tolerances(Tolerance(ulps=6), Tolerance(ulps=3.05, scaled=1e-7), Tolerance(ulps=3.05)),
    sources=("https://github.com/ml-explore/mlx/blob/main/mlx/backend/metal/kernels/rms_norm.metal",),
)
