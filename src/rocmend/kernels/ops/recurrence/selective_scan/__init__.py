"""Mamba's selective scan."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.recurrence.selective_scan"
MOST_STATE = 256
# Backward by implementation.
BACKWARD = {"chunks": f"{HERE}.kernel:run_gradients", "torch": f"{HERE}.reference:gradients"}


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    batch: int
    times: int
    channels: int
    state_dim: int


def _rejects_chunks(problem: Problem, target: Target) -> str | None:
    if problem.state_dim > MOST_STATE:
        return f"the kernel takes states of up to {MOST_STATE}"
    return rejects_dtype(problem, target)


def _cost(p: Problem) -> Cost:
    steps = float(p.batch) * p.times
    rows = steps * (3 * p.channels + 2 * p.state_dim) * bytes_of(p.dtype)
    state = float(p.batch) * p.channels * p.state_dim
    return Cost(7.0 * steps * p.channels * p.state_dim, rows + 8.0 * state)


OP = register(
    Op(
        name="selective_scan",
        summary="Mamba's selective scan, with input and output state.",
        functions={
            "selective_scan": f"{HERE}.function:selective_scan",
            "selective_scan_gradients": f"{HERE}.function:selective_scan_gradients",
        },
        reference=f"{HERE}.reference:selective_scan",
        problem=Problem,
        implementations=(
            Implementation(
                "chunks", "triton", f"{HERE}.kernel:run", _rejects_chunks, note="state in registers, chunks in parallel"
            ),
            Implementation("torch", "reference", f"{HERE}.reference:selective_scan"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="x and dt [B, T, M] of any strides, states of up to 256; forward and backward.",
        cost=_cost,
        tolerance={
            "float32": Tolerance(ulps=8, scaled=4e-6),
            # All in fp32, rounded once; the state is fp32 whatever the type.
            "float16": Tolerance(ulps=0.6, scaled=4e-6),
            "bfloat16": Tolerance(ulps=0.6, scaled=4e-6),
        },
        cases=f"{HERE}.cases:cases",
        shape_class=lambda p: "step" if p.times <= 4 else "long",
        sources=(
            "https://arxiv.org/abs/2312.00752",
            "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/mamba.py",
        ),
        notes=("dt must have its softplus applied already, as in mlx-lm.",),
    )
)
