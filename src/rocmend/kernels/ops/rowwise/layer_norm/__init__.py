"""LayerNorm with rounding to the output's type after normalising, weighting and adding the bias."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, references, rejects_forward, rejects_held_backward, width_class
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.rowwise.layer_norm"


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
        return "torch does not round intermediate results, so its results differ from MLX's"
    return None


def cost(problem: Problem) -> Cost:
    """Return the least work: x read, the output written; for gradients grad and x read, one tensor written."""
    elements = float(problem.rows) * problem.columns
    moved = 3.0 if problem.backward else 2.0
    return Cost((10.0 if problem.backward else 7.0) * elements, moved * elements * bytes_of(problem.dtype))


OP = register(
    Op(
        name="layer_norm",
        summary="LayerNorm (mean 0, variance 1) over the last axis, and its gradients.",
        functions={
            "layer_norm": f"{HERE}.function:layer_norm",
            "layer_norm_backward": f"{HERE}.function:layer_norm_backward",
        },
        reference=f"{HERE}.reference:layer_norm",
        problem=Problem,
        implementations=(
            Implementation(
                "row",
                "triton",
                f"{HERE}.kernel:run",
                rejects_forward,
                note="rounds intermediate results, as MLX does; torch does not",
            ),
            Implementation("row_backward", "triton", f"{HERE}.kernel:run_backward", rejects_held_backward),
            Implementation("torch.nn.functional.layer_norm", "vendor", f"{HERE}.reference:run_torch", _rejects_torch),
            *references(f"{HERE}.reference:layer_norm", f"{HERE}.reference:layer_norm_backward"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Any number of leading axes, last axis of any length (gradient kernel: up to 16,384); "
        "x of any strides; weight and bias of any floating dtype, or None.",
        cost=cost,
        tolerance={
            # Sums of a row in fp32; the bias may cancel what was weighted.
            "float32": Tolerance(ulps=8, scaled=2e-7),
            # Three roundings; the second one's half unit may be larger than the result's unit where the bias cancels.
            "float16": Tolerance(ulps=2.1, scaled=2.5e-4),
            "bfloat16": Tolerance(ulps=2.1, scaled=2e-3),
        },
        cases=f"{HERE}.cases:cases",
        shape_class=shape_class,
        mlx="mlx.core.fast.layer_norm",
        sources=(
            "https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.fast.layer_norm.html",
            "https://github.com/ml-explore/mlx/blob/main/mlx/backend/metal/kernels/layer_norm.metal",
        ),
    )
)
