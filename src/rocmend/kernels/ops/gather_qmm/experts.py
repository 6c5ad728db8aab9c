"""Plan the kernel in which a program has an expert's rows of x: some for each of many experts, on Hopper."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import torch

from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import gluon
from rocmend.kernels.common.plans import Plan
from rocmend.kernels.ops.gather_qmm import Problem
from rocmend.kernels.ops.gather_qmm.arguments import Arguments
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config

Launches = Callable[[Sequence[torch.Tensor | None]], None]
HEIGHT = 128
"""Rows of a block of weights, which 8 wavefronts have."""
PART = 512
"""Columns of x that are in shared memory at a time."""
SUMS = 36
"""Blocks times tiles that registers have sums of."""
FILLED = 0.85
"""Of the compute units' time, what programs of the same length have to take: with less the other kernels are faster."""
SPREAD = 2.8
"""Standard deviations of an expert's pairs above their mean that a tile has room for: what is beyond is another's."""
MOST_EXPERTS = 256
MOST_PAIRS = 1 << 14
"""Pairs that each program looks through."""
LARGEST = 1 << 31
"""Bytes of x: places are 32 bits wide."""


def suits(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes a problem's types on a target."""
    return (
        gluon.on_target(target)
        and problem.dtype == "bfloat16"
        and (problem.mode, problem.bits, problem.group_size) == ("affine", 4, 64)
        and problem.transpose
        and not problem.gated
        and problem.m == 1
        and problem.pairs <= MOST_PAIRS
        and problem.experts <= MOST_EXPERTS
        and problem.pairs * problem.k * 2 < LARGEST
    )


def slices_of(problem: Problem, target: Target) -> int:
    """Return how many units of work an expert's rows of weights are so that a round of them fills programs, or 0."""
    programs, blocks = target.compute_units or 132, problem.n // HEIGHT
    for slices in range(1, blocks + 1):
        units, each = problem.experts * slices, blocks // slices
        if (
            blocks % slices == 0
            and 1 < each <= SUMS // max(tiles_of(problem), 1)
            and units >= FILLED * cdiv(units, programs) * programs
        ):
            return slices
    return 0


def tiles_of(problem: Problem) -> int:
    """Return of how many tiles of 8 rows few experts have more, if all experts are as likely."""
    mean = problem.pairs / max(problem.experts, 1)
    return cdiv(math.ceil(mean + SPREAD * math.sqrt(mean)), 8)


def lds_bytes(problem: Problem, config: Config) -> int:
    """Return the bytes of shared memory of two parts of x, slots of words and scales, pairs' numbers and barriers."""
    most = 8 * tiles_of(problem)
    slots = 8 * (config["SLOTS"] * 2048 + (config["SLOTS"] // 2 + 1) * 512)
    numbers = 16 + 4 * (config["ROOM"] + most + 64 + _room_for(problem.experts)) + 16 * config["SLOTS"] + 40
    return cdiv(2 * PART * 2 * most + slots + numbers, 1024) * 1024


def _room_for(experts: int) -> int:
    return max(32, next_power_of_2(experts))


def fits(problem: Problem, config: Config, target: Target) -> bool:
    """Return whether a problem's shape is one that the kernel takes, and is likely to be fast at."""
    return (
        problem.pairs >= config["fewest"] * problem.experts
        and tiles_of(problem) <= config["TILES"]
        and problem.k % PART == 0
        and problem.n % HEIGHT == 0
        and lds_bytes(problem, config) <= target.lds_bytes
        and slices_of(problem, target) > 0
    )


def plan(
    a: Arguments,
    problem: Problem,
    config: Config,
    target: Target,
    types: Sequence[torch.dtype | None],
    otherwise: Callable[[], Launches],
) -> Launches:
    """Plan the launch of x, weights, second weights, the output and indices.

    Args:
        a: Arguments of a problem that the kernel takes.
        problem: The same.
        config: The kernel's record; it is taken from ``fewest`` pairs of an expert on, up to TILES.
        target: Whose compute units count.
        types: What the ten tensors are seen as.
        otherwise: Plans the kernel that takes tensors at any address.
    """
    # Gluon's kernels are for NVIDIA alone: nothing else is to load them.
    from rocmend.kernels.ops.gather_qmm.kernels.experts import experts_kernel

    slices = slices_of(problem, target)
    blocks = problem.n // (HEIGHT * slices)
    main = Plan(
        experts_kernel,
        (target.compute_units or 132,),
        {
            "DEPTH": problem.k,
            "SLICES": slices,
            "EXPERTS": _room_for(problem.experts),
            "TILES": tiles_of(problem),
            "BLOCKS": blocks,
            "SLOTS": config["SLOTS"],
            "PDL": bool(config.get("launch_pdl", 0)),
        },
        config,
        (problem.n, problem.pairs, problem.experts, a.pairs.divisor),
        (*types[:4], None, types[9]),
    )
    unaligned = functools.cache(otherwise)

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        x, words, scales, biases, *_, out, _, rhs = tensors
        if gluon.aligned(x, words, scales, biases):
            main((x, words, scales, biases, out, rhs))
        else:
            unaligned()(tensors)

    return launches
