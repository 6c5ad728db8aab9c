"""Softmax and log-softmax over any axes, and their gradients."""

from __future__ import annotations

from rocmend.kernels.common.floats import (
    Rows,
    cost_per_element,
    kernels,
    references,
    rejects_gradients,
    tolerances,
    width_class,
)
from rocmend.kernels.op import Implementation, Tolerance
from rocmend.kernels.registry import declare

LONGEST = 32768
"""Longest row that one program keeps in registers."""


OP = declare(
    __name__,
    summary="Softmax and log-softmax over any axes, and their gradients.",
    functions=("softmax", "log_softmax", "softmax_backward"),
    problem=Rows,
    implementations=(
        *kernels("row", "keeps rows in registers"),
        Implementation("torch.softmax", "vendor", "reference:run_torch", rejects_gradients),
        *references("rows", "softmax_backward"),
    ),
    domain="Any shape, any axes, rows of any length.",
    cost=cost_per_element(4, 2, backward=(4, 3)),
    # Exponentials of numbers far below the largest lose bits to the argument's rounding; they are small.
    tolerance=tolerances(Tolerance(ulps=8, scaled=4e-7), Tolerance(ulps=0.52, scaled=4e-7)),
    shape_class=lambda p: width_class(p.columns, LONGEST),
    mlx="mlx.core.softmax",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.softmax.html",),
)
