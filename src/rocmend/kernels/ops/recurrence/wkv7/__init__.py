"""RWKV-7's recurrence."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import bytes_of, rejects_dtype
from rocmend.kernels.op import Cost, Implementation, Op, Tolerance
from rocmend.kernels.registry import register
from rocmend.kernels.target import Target

HERE = "rocmend.kernels.ops.recurrence.wkv7"


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    batch: int
    times: int
    heads: int
    head_dim: int


def _rejects_state(problem: Problem, target: Target) -> str | None:
    if problem.head_dim > 256:
        return "the kernel takes head dimensions up to 256"
    return rejects_dtype(problem, target)


def _cost(p: Problem) -> Cost:
    rows = float(p.batch) * p.times * p.heads * p.head_dim
    state = float(p.batch) * p.heads * p.head_dim**2
    return Cost(9.0 * rows * p.head_dim, 7.0 * rows * bytes_of(p.dtype) + 8.0 * state)


OP = register(
    Op(
        name="wkv7",
        summary="RWKV-7's recurrence, with input and output state.",
        functions={"wkv7": f"{HERE}.function:wkv7"},
        reference=f"{HERE}.reference:wkv7",
        problem=Problem,
        implementations=(
            Implementation("state", "triton", f"{HERE}.kernel:run", _rejects_state, note="state in registers, in fp32"),
            Implementation("torch", "reference", f"{HERE}.reference:wkv7"),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        domain="Any number of steps, one after the other; head dimensions up to 256; no backward.",
        cost=_cost,
        tolerance={
            "float32": Tolerance(ulps=8, scaled=1e-5),
            # All in fp32, rounded once; the state is fp32 whatever the type.
            "float16": Tolerance(ulps=0.6, scaled=1e-5),
            "bfloat16": Tolerance(ulps=0.6, scaled=1e-5),
        },
        cases=f"{HERE}.cases:cases",
        sources=(
            "https://arxiv.org/abs/2503.14456",
            "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/rwkv7.py",
        ),
        notes=("mlx-lm keeps the state in the dtype of the inputs; here it is fp32.",),
    )
)
