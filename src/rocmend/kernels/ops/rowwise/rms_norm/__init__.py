"""RMSNorm: ``x / sqrt(mean(x²) + eps) · weight``, rounded to the output's type before the weight is applied."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import (
    class_of_width,
    cost_per_element,
    forward,
    held,
    kernel,
    references,
    rejects_gradients,
    rejects_held_backward,
    tolerances,
)
from rocmend.kernels.op import Implementation, Tolerance
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    columns: int
    weighted: bool = True
    promoted: bool = False
    backward: bool = False

    @property
    def elements(self) -> float:
        """Elements of all rows."""
        return float(self.rows) * self.columns


def held_class(problem: Problem) -> str:
    """Name the class of row lengths, of fp32 apart."""
    return class_of_width(problem) + ("-32" if problem.dtype == "float32" else "")


def rejects_torch(problem: Problem, target: Target) -> str | None:
    """Say why torch's own function does not compute a problem as MLX does, or None."""
    if problem.promoted:
        return "torch's result has another dtype if x and the weight differ in dtype"
    if problem.weighted and problem.dtype != "float32":
        return "torch does not round intermediate results, so its results differ from MLX's"
    return rejects_gradients(problem, target)


OP = declare(
    __name__,
    summary="RMSNorm over the last axis, and its gradients.",
    functions=("rms_norm", "rms_norm_backward"),
    problem=Problem,
    implementations=(
        held("rounds before the weight is applied, as MLX does; torch does not", record_class=held_class),
        forward("split", "long rows, over several programs each"),
        kernel("backward", rejects_held_backward, record_class=lambda p: f"{class_of_width(p)} column_sum/*"),
        Implementation("torch.nn.functional.rms_norm", "vendor", "reference:run_torch", rejects_torch),
        *references("rms_norm", "rms_norm_backward"),
    ),
    domain="Any number of leading axes, last axis of any length (gradient kernel: up to 16,384); "
    "x of any strides; weight of any floating dtype, or None.",
    cost=cost_per_element(4, 2, backward=(10, 3)),
    # A row's sum of squares in fp32, then a square root, a division, a product and the weight: half a unit each
    # and half of the sum's, of a number of small mantissa up to a whole one. Of 2·10^8 elements none is off by
    # more than 4.1.
    # Two roundings, after normalising and after weighting: half a unit each, of a number of small mantissa
    # up to a whole one. A denormal of fp16 times a weight is off by more.
    tolerance=tolerances(Tolerance(ulps=5), Tolerance(ulps=2.05, scaled=1e-7), Tolerance(ulps=2.05)),
    shape_class=class_of_width,
    mlx="mlx.core.fast.rms_norm",
    sources=(
        "https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.rms_norm.html",
        "https://github.com/ml-explore/mlx/blob/main/mlx/backend/metal/kernels/rms_norm.metal",
    ),
)
