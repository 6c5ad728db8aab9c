"""Cross-entropy of logits and integer targets, and its gradient."""

from __future__ import annotations

from rocmend.kernels.common.floats import FLOATS, Rows, backward, cost_per_element, forward, held, references
from rocmend.kernels.op import Tolerance
from rocmend.kernels.registry import declare

OP = declare(
    __name__,
    summary="Cross-entropy of logits and integer targets, and its gradient.",
    functions=("cross_entropy", "cross_entropy_backward"),
    problem=Rows,
    implementations=(
        held(),
        forward("walk", "long rows, read once, in the logits' own dtype", function="walk_rows"),
        backward(),
        *references("rows", "rows_backward"),
    ),
    dtypes=FLOATS,
    example="columns=32000",
    domain="Any leading axes, any number of classes; int8 to int64 targets; one fp32 loss per row.",
    cost=cost_per_element(4, 1, backward=(4, 2), per_row=1),
    tolerance={
        # Of losses, in fp32: a sum of exponentials and a logarithm, from which a logit is taken away.
        "float32": Tolerance(ulps=8, scaled=4e-7)
    },
    mlx="mlx.nn.losses.cross_entropy",
    sources=(
        "https://ml-explore.github.io/mlx/build/html/python/nn/_autosummary_functions/mlx.nn.losses.cross_entropy.html",
    ),
)
