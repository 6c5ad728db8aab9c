"""The gated delta rule: linear attention whose state forgets and corrects itself."""

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
    key_heads: int
    heads: int
    key_dim: int
    value_dim: int
    vector_gate: bool


def _records(problem: Problem) -> str:
    if problem.times == 1 or problem.vector_gate:
        return f"recurrent/{'step' if problem.times == 1 else 'steps'}"
    kind = f"{problem.dtype}-{'wide' if max(problem.key_dim, problem.value_dim) > 128 else 'usual'}"
    return f"recurrent/steps chunk/{kind} solve/{kind}"


def _cost(p: Problem) -> Cost:
    steps = float(p.batch) * p.times
    size = bytes_of(p.dtype)
    state = float(p.batch) * p.heads * p.key_dim * p.value_dim
    gates = steps * p.heads * (1 + (p.key_dim if p.vector_gate else 1)) * size
    rows = steps * size * 2 * (p.key_heads * p.key_dim + p.heads * p.value_dim)
    return Cost(7.0 * steps * p.heads * p.key_dim * p.value_dim, rows + gates + 8.0 * state)


OP = declare(
    __name__,
    summary="Gated delta rule: recurrent steps and chunked prefill, with input and output state.",
    problem=Problem,
    implementations=(
        Implementation(
            "state",
            "triton",
            "kernel:run",
            limits(key_dim=256, value_dim=256),
            note="state in registers, in fp32",
            record_class=_records,
        ),
        Implementation("torch", "reference", "reference:gated_delta"),
    ),
    example="key_heads=16 vector_gate=false",
    domain="Scalar gates (chunked prefill) or one per key channel (step by step); dims up to 256; no backward.",
    cost=_cost,
    # In chunks, the solved keys and values, scores and the state are rounded before matrix instructions.
    tolerance=tolerances(
        Tolerance(ulps=8, scaled=2e-5), Tolerance(ulps=2, scaled=1.2e-3), Tolerance(ulps=2, scaled=8e-3)
    ),
    shape_class=lambda p: "step" if p.times == 1 else f"{p.dtype}-{'wide' if p.key_dim > 128 else 'usual'}",
    sources=(
        "https://arxiv.org/abs/2412.06464",
        "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/gated_delta.py",
    ),
    notes=("As in mlx-lm, q and k must be normalised and scaled; a masked step keeps the state and returns 0.",),
)
