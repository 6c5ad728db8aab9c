"""RWKV-7's recurrence."""

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
    head_dim: int


def _cost(p: Problem) -> Cost:
    rows = float(p.batch) * p.times * p.heads * p.head_dim
    state = float(p.batch) * p.heads * p.head_dim**2
    return Cost(9.0 * rows * p.head_dim, 7.0 * rows * bytes_of(p.dtype) + 8.0 * state)


OP = declare(
    __name__,
    summary="RWKV-7's recurrence, with input and output state.",
    problem=Problem,
    implementations=(
        Implementation(
            "state",
            "triton",
            "kernel:run",
            limits(head_dim=256),
            note="state in registers, in fp32",
            record_class=lambda _: "recurrent/*",
        ),
        Implementation("torch", "reference", "reference:wkv7"),
    ),
    example="head_dim=64",
    domain="Any number of steps, one after the other; head dimensions up to 256; no backward.",
    cost=_cost,
    # All in fp32, rounded once; the state is fp32 whatever the type.
    tolerance=tolerances(Tolerance(ulps=8, scaled=1e-5), Tolerance(ulps=0.6, scaled=1e-5)),
    sources=(
        "https://arxiv.org/abs/2503.14456",
        "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/rwkv7.py",
    ),
    notes=("mlx-lm keeps the state in the dtype of the inputs; here it is fp32.",),
)
