"""Mamba's selective scan."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, limits, tolerances
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    batch: int
    times: int
    channels: int
    state_dim: int


def _shape_class(problem: Problem) -> str:
    return "step" if problem.times <= 4 else "long"


def _cost(p: Problem) -> Cost:
    steps = float(p.batch) * p.times
    rows = steps * (3 * p.channels + 2 * p.state_dim) * bytes_of(p.dtype)
    state = float(p.batch) * p.channels * p.state_dim
    return Cost(7.0 * steps * p.channels * p.state_dim, rows + 8.0 * state)


OP = declare(
    __name__,
    summary="Mamba's selective scan, with input and output state.",
    functions=("selective_scan", "selective_scan_gradients"),
    problem=Problem,
    implementations=(
        Implementation(
            "chunks",
            "triton",
            "kernel:run",
            limits(state_dim=256),
            note="state in registers, chunks in parallel",
            record_class=lambda p: f"scan/{_shape_class(p)} backward/*",
        ),
        Implementation("torch", "reference", "reference:selective_scan"),
    ),
    example="state_dim=16",
    domain="x and dt [B, T, M] of any strides, states of up to 256; forward and backward.",
    cost=_cost,
    # All in fp32, rounded once; the state is fp32 whatever the type.
    tolerance=tolerances(Tolerance(ulps=8, scaled=4e-6), Tolerance(ulps=0.6, scaled=4e-6)),
    shape_class=_shape_class,
    sources=(
        "https://arxiv.org/abs/2312.00752",
        "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/mamba.py",
    ),
    notes=("dt must have its softplus applied already, as in mlx-lm.",),
)
