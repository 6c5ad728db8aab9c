"""Mamba-2's state-space recurrence: one decay a head, in chunks or step by step."""

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
    heads: int
    groups: int
    head_dim: int
    state_dim: int


def _cost(p: Problem) -> Cost:
    steps = float(p.batch) * p.times
    state = float(p.batch) * p.heads * p.head_dim * p.state_dim
    rows = steps * (2 * p.heads * p.head_dim + 2 * p.groups * p.state_dim + p.heads) * bytes_of(p.dtype)
    return Cost(5.0 * steps * p.heads * p.head_dim * p.state_dim, rows + 8.0 * state)


OP = declare(
    __name__,
    summary="Mamba-2's state-space recurrence: steps and chunked prefill, with input and output state.",
    functions=("ssd_scan",),
    problem=Problem,
    implementations=(
        Implementation(
            "state",
            "triton",
            "kernel:run",
            limits(state_dim=256),
            note="state in registers, in fp32",
            record_class=lambda p: "recurrent/step" if p.times == 1 else f"recurrent/steps chunk/{p.dtype}",
        ),
        Implementation("torch", "reference", "reference:ssd_scan"),
    ),
    example="heads=64 head_dim=64 state_dim=128",
    domain="Any number of steps; heads a multiple of groups; states of up to 256; no backward.",
    cost=_cost,
    # In chunks, scores, dt x and the state are rounded before matrix instructions.
    tolerance=tolerances(
        Tolerance(ulps=8, scaled=1e-5), Tolerance(ulps=2, scaled=1.2e-3), Tolerance(ulps=2, scaled=8e-3)
    ),
    shape_class=lambda p: "step" if p.times == 1 else p.dtype,
    sources=("https://arxiv.org/abs/2405.21060", "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/ssm.py"),
)
