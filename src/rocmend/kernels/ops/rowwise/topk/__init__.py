"""The largest elements along an axis and where they stand."""

from __future__ import annotations

import math
from typing import NamedTuple

from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.common.floats import NUMBERS, kernel
from rocmend.kernels.op import Cost, Implementation, Tolerance, first_reason
from rocmend.kernels.ops.rowwise.sort import longest_held
from rocmend.kernels.registry import declare
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for

_LEAST_GROUP, _MOST_GROUP = 16, 512


class Problem(NamedTuple):
    """What choices depend on."""

    dtype: str
    rows: int
    length: int
    k: int


def shape_class(problem: Problem) -> str:
    """Routing to a few experts, sampling from a vocabulary, and large k."""
    return "short" if problem.length <= 2048 else "long" if problem.k <= 256 else "many"


def group_of(length: int, k: int) -> int:
    """Return how many neighbours make a group: as many groups as members of the best groups, roughly."""
    return min(max(next_power_of_2(math.isqrt(length // k)), _LEAST_GROUP), _MOST_GROUP)


def _bits(problem: Problem) -> str:
    return str(8 * NUMBERS[problem.dtype])


def _rejects_long(problem: Problem, _target: Target) -> str | None:
    return first_reason((problem.length < 1 << 31, "the kernels use 31-bit positions in a row"))


def _rejects_fronts(problem: Problem, target: Target) -> str | None:
    block = config_for("topk", "pieces", _bits(problem), target)["block"]
    return first_reason(
        (NUMBERS[problem.dtype] < 8, "it takes elements of up to 32 bits"),
        (problem.rows > 0 and problem.k > 0, "there is nothing to take"),
        (2 * problem.k <= block, f"it takes up to {block // 2} of each piece, not {problem.k}"),
    )


def _rejects_groups(problem: Problem, _target: Target) -> str | None:
    members = 2 * problem.k * group_of(problem.length, problem.k)
    return first_reason((members <= problem.length, "the best groups would be more than half of a row"))


def _avoid_short(problem: Problem, target: Target) -> str | None:
    longest = longest_held(problem.dtype, target)
    return first_reason((problem.length > longest, f"rows of up to {longest} elements are sorted in registers"))


def _avoid_groups(problem: Problem, target: Target) -> str | None:
    least = config_for("topk", "pieces", _bits(problem), target).get("groups_from", 16384)
    return _avoid_short(problem, target) or first_reason(
        (problem.length >= least, f"with fewer than {least} elements pieces are faster")
    )


OP = declare(
    __name__,
    summary="The k largest elements along an axis, sorted, NaN first, ties by position.",
    problem=Problem,
    implementations=(
        # torch.topk does not define the order of equal elements: the same input may select other experts.
        kernel(
            "groups",
            _rejects_long,
            _rejects_fronts,
            _rejects_groups,
            avoid=_avoid_groups,
            note="reads a row once",
            record_class=lambda p: f"leaders/{_bits(p)} merge/*",
        ),
        kernel(
            "pieces",
            _rejects_long,
            _rejects_fronts,
            avoid=_avoid_short,
            record_class=lambda p: f"{_bits(p)} merge/*",
            note="reads a row once",
        ),
        kernel("sorted", _rejects_long, function="by_sorting", note="sorts the rows"),
        Implementation("torch", "reference", "reference:topk"),
    ),
    example="rows=1 k=50",
    domain="Any shape, strides and axis; rows of fewer than 2^31 elements.",
    cost=lambda p: Cost(0.0, float(p.rows) * (p.length * NUMBERS[p.dtype] + p.k * (NUMBERS[p.dtype] + 8))),
    tolerance=dict.fromkeys(NUMBERS, Tolerance()),
    shape_class=shape_class,
    mlx="mlx.core.topk",
    sources=("https://ml-explore.github.io/mlx/build/html/python/_autosummary/mlx.core.topk.html",),
)
