"""Plan the kernel whose programs stay and walk over tiles of experts' weights: many rows in bfloat16, on Hopper."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

from rocmend.kernels import allocate
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import gluon
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.gather_qmm import Problem
from rocmend.kernels.ops.gather_qmm.arguments import Arguments
from rocmend.kernels.ops.gather_qmm.kernels.order import order_kernel
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config

Launches = Callable[[Sequence[torch.Tensor | None]], None]
GROUPS = {("affine", 4): 64, ("affine", 8): 64, ("mxfp4", 4): 32}
"""Size of a group by format."""
MOST_PAIRS = 1 << 15
"""Pairs that each expert's program of the launch before looks through."""
MOST_EXPERTS = 512
LARGEST = 1 << 31
"""Numbers of x: places are 32 bits wide."""


def suits(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes a problem's types on a target."""
    return (
        gluon.on_target(target, "gather_qmm.resident")
        and problem.dtype == "bfloat16"
        and GROUPS.get((problem.mode, problem.bits)) == problem.group_size
        and problem.transpose
        and problem.m == 1
        and problem.pairs <= MOST_PAIRS
        and problem.experts <= MOST_EXPERTS
        and problem.pairs * problem.k < LARGEST
    )


def fits(problem: Problem, config: Config) -> bool:
    """Return whether a problem's shape is whole tiles and steps of a record, more steps than are under way.

    A record that fills no compute unit takes none: there the other kernel is faster.
    """
    step = step_of(problem, config)
    return (
        config["fill"] > 0
        and problem.n % height_of(problem, config) == 0
        and problem.k % step == 0
        and problem.k >= step * config["STAGES"]
    )


def class_of(problem: Problem, kind: str) -> str:
    """Name the class of records: rows of an expert, and the format where it is not 4 affine bits."""
    form = "" if problem.mode == "affine" and problem.bits == 4 else f"-{problem.mode}{problem.bits}"
    return f"{kind}{form}-gated" if problem.gated else f"{kind}{form}"


def height_of(problem: Problem, config: Config) -> int:
    """Return how many rows of a matrix are a tile's."""
    return 16 * config["num_warps"] * config["PARTS"] // (2 if problem.gated else 1)


def step_of(problem: Problem, config: Config) -> int:
    """Return the columns of a step: as many bytes of a row whatever the width of a code is."""
    return config["BK"] * 4 // problem.bits


def lds_bytes(problem: Problem, config: Config) -> int:
    """Return the bytes of shared memory that a program's steps of x and of weights take, and the sums of x."""
    step = step_of(problem, config)
    weights = 16 * config["num_warps"] * config["PARTS"] * step * problem.bits // 8
    sums = _sums(problem) * config["TOKENS"] * 2
    return config["STAGES"] * (config["TOKENS"] * step * 2 + weights) + sums


def _sums(problem: Problem) -> int:
    """Return how many columns the sums of a row of x take: of 32 groups at a time, in two parts."""
    return cdiv(problem.k // problem.group_size, 32) * 64 if problem.mode == "affine" else 0


def plan(
    a: Arguments,
    problem: Problem,
    config: Config,
    first: Config,
    target: Target,
    types: Sequence[torch.dtype | None],
    otherwise: Callable[[], Launches],
) -> Launches:
    """Plan the two launches of x, weights, second weights, the output and indices.

    Args:
        a: Arguments of a problem that the kernel takes.
        problem: The same.
        config: The kernel's record: ``fill`` programs that a compute unit should have, columns ``BK`` of 4-bit codes.
        first: Of the launch before it.
        target: Whose compute units count.
        types: What the ten tensors are seen as.
        otherwise: Plans the kernel that takes tensors at any address.
    """
    planned = _planned(a, problem, config, first, target, types)
    unaligned = functools.cache(otherwise)

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        if gluon.aligned(*tensors[1:7]):
            planned(tensors)
        else:
            unaligned()(tensors)

    return launches


def _planned(
    a: Arguments, problem: Problem, config: Config, first: Config, target: Target, types: Sequence[torch.dtype | None]
) -> Launches:
    # Gluon's kernels are for NVIDIA alone: nothing else is to load them.
    from rocmend.kernels.ops.gather_qmm.kernels.resident import resident_kernel

    p, x_rows = problem, a.x.shape[:-1].numel()
    slots = p.pairs // config["TOKENS"] + p.experts
    width = p.k + _sums(p)
    ordered_of = allocate.Output((x_rows * width,), torch.bfloat16, a.x.device)
    table_of = allocate.Output((p.experts + 1 + 2 * p.pairs,), torch.int32, a.x.device)
    block = min(first["BLOCK"], max(16, next_power_of_2(p.pairs)))
    order = LaunchPlan(
        order_kernel,
        (p.experts + cdiv(x_rows, first["LINES"]),),
        {
            "BITS": p.bits,
            "GROUP": p.group_size if p.mode == "affine" else 0,
            "BLOCK": block,
            "ONCE": p.pairs <= block,
            "ORDERED": a.ordered,
            "WIDTH": max(min(first["WIDTH"], next_power_of_2(p.k)), 256),
            "PDL": bool(first.get("launch_pdl", 0)),
        },
        first,
        (p.pairs, p.experts, x_rows, p.k, width, a.pairs.divisor),
        (None, types[9], None, None),
    )
    programs = min(config["fill"] * (target.compute_units or 132), slots * (p.n // height_of(p, config)))
    main = LaunchPlan(
        resident_kernel,
        (programs,),
        {
            "MODE": p.mode,
            "BITS": p.bits,
            "GROUP": p.group_size,
            "GATED": p.gated,
            "DEPTH": p.k,
            "WIDTH": width,
            "STEP": step_of(p, config),
            "WAVEFRONTS": config["num_warps"],
            "EXPERTS": max(32, next_power_of_2(p.experts)),
            "PDL": bool(config.get("launch_pdl", 0)),
        },
        config,
        (p.n, p.experts, p.pairs),
        (None, *types[1:7], None, None),
    )

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        x, *weights, out, _, rhs = tensors
        ordered, table = ordered_of(), table_of()
        order((x, rhs, ordered, table))
        main((ordered, *weights, out, table))

    return launches
