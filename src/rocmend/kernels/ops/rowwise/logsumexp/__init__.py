"""Log-sum-exp over any axes, and its gradient."""

from __future__ import annotations

from rocmend.kernels.common.floats import (
    Rows,
    any_class,
    class_of_width,
    cost_per_element,
    held_rows,
    kernel,
    references,
    rejects_backward,
    rejects_forward,
    tolerances,
)
from rocmend.kernels.op import Tolerance
from rocmend.kernels.registry import declare

OP = declare(
    __name__,
    summary="Log-sum-exp over any axes, and its gradient.",
    functions=("logsumexp", "logsumexp_backward"),
    problem=Rows,
    implementations=(
        kernel("held", rejects_forward, held_rows(), record_class=class_of_width, note="keeps rows in registers"),
        kernel("walk", rejects_forward, function="walk_rows", record_class=any_class, note="long rows, read once"),
        kernel("backward", rejects_backward, record_class=any_class),
        *references("rows", "logsumexp_backward"),
    ),
    domain="Any shape, any axes, rows of any length.",
    cost=cost_per_element(4, 1, backward=(4, 2), per_row=1),
    # fp32 sums of exponentials that GPUs compute to 2 units, and a logarithm; near 0 the result cancels.
    tolerance=tolerances(Tolerance(ulps=8, scaled=4e-7), Tolerance(ulps=0.52, scaled=4e-7)),
    mlx="mlx.core.logsumexp",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.logsumexp.html",),
)
