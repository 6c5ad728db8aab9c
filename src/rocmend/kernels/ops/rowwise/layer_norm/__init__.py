"""LayerNorm with rounding to the output's type after normalising, weighting and adding the bias."""

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
from rocmend.kernels.op import Implementation, Tolerance
from rocmend.kernels.ops.rowwise.rms_norm import Problem, rejects_torch
from rocmend.kernels.registry import declare

OP = declare(
    __name__,
    summary="LayerNorm (mean 0, variance 1) over the last axis, and its gradients.",
    functions=("layer_norm", "layer_norm_backward"),
    problem=Problem,
    implementations=(
        held("rounds intermediate results, as MLX does; torch does not"),
        forward("split", "long rows, over several programs each"),
        kernel("backward", rejects_held_backward, record_class=lambda p: f"{class_of_width(p)} column_sum/*"),
        Implementation("torch.nn.functional.layer_norm", "vendor", "reference:run_torch", rejects_torch),
        *references("layer_norm", "layer_norm_backward"),
    ),
    domain="Any number of leading axes, last axis of any length (gradient kernel: up to 16,384); "
    "x of any strides; weight and bias of any floating dtype, or None.",
    cost=cost_per_element(7, 2, backward=(10, 3)),
    # Sums of a row in fp32; the bias may cancel what was weighted.
    # Three roundings; the second rounding's half unit may be larger than the result's unit where the bias cancels.
    tolerance=tolerances(
        Tolerance(ulps=8, scaled=2e-7), Tolerance(ulps=2.1, scaled=2.5e-4), Tolerance(ulps=2.1, scaled=2e-3)
    ),
    shape_class=class_of_width,
    mlx="mlx.core.fast.layer_norm",
    sources=(
        "https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.layer_norm.html",
        "https://github.com/ml-explore/mlx/blob/main/mlx/backend/metal/kernels/layer_norm.metal",
    ),
)
