"""Log-sum-exp over any axes, and its gradient."""

from __future__ import annotations

from rocmend.kernels.common.floats import Rows, backward, cost_per_element, forward, held, references, tolerances
from rocmend.kernels.op import Tolerance
from rocmend.kernels.registry import declare

OP = declare(
    __name__,
    summary="Log-sum-exp over any axes, and its gradient.",
    functions=("logsumexp", "logsumexp_backward"),
    problem=Rows,
    implementations=(
        held(),
        forward("walk", "long rows, read once", function="walk_rows"),
        backward(),
        *references("rows", "logsumexp_backward"),
    ),
    domain="Any shape, any axes, rows of any length.",
    cost=cost_per_element(4, 1, backward=(4, 2), per_row=1),
    # fp32 sums of exponentials that GPUs compute to 2 units, and a logarithm; near 0 the result cancels.
    tolerance=tolerances(Tolerance(ulps=8, scaled=4e-7), Tolerance(ulps=0.52, scaled=4e-7)),
    mlx="mlx.core.logsumexp",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.logsumexp.html",),
)
