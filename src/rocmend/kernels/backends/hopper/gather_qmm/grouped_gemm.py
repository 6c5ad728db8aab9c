"""Plan the kernel in which a program has an expert's rows of x: some for each of many experts, on Hopper."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from rocmend.kernels import backends
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.backends.hopper.gather_qmm.kernels.grouped_gemm_ptx import FORMS
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.moe.gather_qmm import Problem
from rocmend.kernels.ops.moe.gather_qmm.arguments import Arguments
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
DEEPEST = 2048
"""Columns with which few rows are fast with a gate: more rounds of more columns take longer than the other kernels."""
LARGEST = 1 << 31
"""Bytes of x: places are 32 bits wide."""


def suits(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes a problem's types on a target."""
    return (
        gluon.on_target(target, "gather_qmm.grouped_gemm")
        and problem.dtype == "bfloat16"
        and (problem.mode, problem.bits, problem.group_size) in FORMS
        and problem.transpose
        and problem.m == 1
        and problem.pairs <= MOST_PAIRS
        and problem.experts <= MOST_EXPERTS
        and problem.pairs * problem.k * 2 < LARGEST
    )


class Cut(NamedTuple):
    """How an expert's rows of weights are cut: units of work, rounds of a unit, and blocks of a round, or 0."""

    slices: int
    rounds: int
    blocks: int


def class_of(problem: Problem, kind: str) -> str:
    """Name the class of records: rows of an expert, and with a gate whether there are many columns; or mxfp4."""
    if problem.mode == "mxfp4":
        return "mxfp4-deep" if problem.k > DEEPEST else "mxfp4-gated" if problem.gated else "mxfp4"
    if not problem.gated:
        return kind
    return f"{kind}-gated-deep" if problem.k > DEEPEST else f"{kind}-gated"


def cut_of(problem: Problem, config: Config, target: Target) -> Cut:
    """Return how an expert's rows of weights are cut, so that units of work fill programs.

    A round has as many blocks as a record says at most, and as registers have sums of.
    """
    programs, matrices = target.compute_units or 132, 2 if problem.gated else 1
    blocks = problem.n // HEIGHT * matrices
    most = min(config.get("blocks", SUMS), SUMS // max(tiles_of(problem), 1))
    for parts in range(1, blocks + 1):
        each = blocks // parts
        if blocks % parts or each > most or each < 2 or each % matrices:
            continue
        # Without a gate all of a unit's sums are made at once: rounds were not measured there.
        for slices in range(1 if problem.gated else parts, parts + 1):
            units = problem.experts * slices
            if parts % slices == 0 and units >= FILLED * cdiv(units, programs) * programs:
                return Cut(slices, parts // slices, each)
    return Cut(0, 0, 0)


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
        and cut_of(problem, config, target).slices > 0
    )


def plan(
    a: Arguments,
    types: Sequence[torch.dtype | None],
    otherwise: Callable[[], Launches],
    *,
    problem: Problem,
    config: Config,
    target: Target,
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
    from rocmend.kernels.backends.hopper.gather_qmm.kernels.grouped_gemm import grouped_gemm_kernel

    cut = cut_of(problem, config, target)
    main = LaunchPlan(
        grouped_gemm_kernel,
        (target.compute_units or 132,),
        {
            "DEPTH": problem.k,
            "SLICES": cut.slices,
            "EXPERTS": _room_for(problem.experts),
            "TILES": tiles_of(problem),
            "BLOCKS": cut.blocks,
            "ROUNDS": cut.rounds,
            "GATED": problem.gated,
            "SLOTS": config["SLOTS"],
            "PDL": bool(config.get("launch_pdl", 0)),
            "FORM": FORMS[problem.mode, problem.bits, problem.group_size],
        },
        config,
        (problem.n, problem.pairs, problem.experts, a.pairs.divisor),
        (*types[:7], None, types[9]),
    )
    unaligned = functools.cache(otherwise)

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        *first, out, _, rhs = tensors
        if backends.aligned(*first):
            main((*first, out, rhs))
        else:
            unaligned()(tensors)

    return launches
