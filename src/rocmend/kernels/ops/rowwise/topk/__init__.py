"""The largest elements along an axis and where they stand."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.common.floats import NUMBERS
from rocmend.kernels.op import Cost, Implementation, Tolerance
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    length: int
    k: int


def shape_class(problem: Problem) -> str:
    """Routing to a few experts, sampling from a vocabulary, and large k."""
    return "short" if problem.length <= 2048 else "long" if problem.k <= 256 else "many"


def _rejects_kernels(problem: Problem, _target: Target) -> str | None:
    return None if problem.length < 1 << 31 else "the kernels use 31-bit positions in a row"


OP = declare(
    __name__,
    summary="The k largest elements along an axis, sorted, NaN first, ties by position.",
    problem=Problem,
    implementations=(
        Implementation(
            "pieces",
            "triton",
            "kernel:run",
            _rejects_kernels,
            note="torch.topk does not define the order of equal elements: the same input may select other experts",
        ),
        Implementation("torch", "reference", "reference:topk"),
    ),
    domain="Any shape, strides and axis; rows of fewer than 2^31 elements.",
    cost=lambda p: Cost(0.0, float(p.rows) * (p.length * NUMBERS[p.dtype] + p.k * (NUMBERS[p.dtype] + 8))),
    tolerance=dict.fromkeys(NUMBERS, Tolerance()),
    shape_class=shape_class,
    mlx="mlx.core.topk",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.topk.html",),
)
