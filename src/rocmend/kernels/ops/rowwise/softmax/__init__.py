"""Softmax and log-softmax over any axes, and their gradients."""

from __future__ import annotations

from rocmend.kernels.common.floats import (
    Rows,
    backward,
    class_of_width,
    cost_per_element,
    forward,
    held,
    held_rows,
    references,
    rejects_gradients,
    tolerances,
    width_class,
)
from rocmend.kernels.op import Implementation, Tolerance
from rocmend.kernels.registry import declare

LONGEST = 32768
"""Longest row that one program keeps in registers."""


def _shape_class(problem: Rows) -> str:
    return width_class(problem.columns, LONGEST)


OP = declare(
    __name__,
    summary="Softmax and log-softmax over any axes, and their gradients.",
    functions=("softmax", "log_softmax", "softmax_backward"),
    problem=Rows,
    implementations=(
        held(longest=LONGEST, record_class=_shape_class),
        forward("split", "long rows, over several programs each"),
        backward("backward", held_rows(), record_class=class_of_width),
        backward("split_backward", note="long rows, over several programs each", record_class=lambda _: "split/*"),
        Implementation("torch.softmax", "vendor", "reference:run_torch", rejects_gradients),
        *references("rows", "softmax_backward"),
    ),
    domain="Any shape, any axes, rows of any length.",
    cost=cost_per_element(4, 2, backward=(4, 3)),
    # Exponentials of numbers far below the largest lose bits to the argument's rounding; they are small.
    tolerance=tolerances(Tolerance(ulps=8, scaled=4e-7), Tolerance(ulps=0.52, scaled=4e-7)),
    shape_class=_shape_class,
    mlx="mlx.core.softmax",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.softmax.html",),
)
