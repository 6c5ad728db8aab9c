"""Plan the kernel whose programs walk over rows of weights: one row of x, 4 or 8 bits, on NVIDIA."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch

from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common import gluon
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.quantized_matmul import Problem, few
from rocmend.kernels.ops.quantized_matmul.operands import Operands
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, with_warps

MOST_ROUNDS = 8
"""Of a program, which keeps what it has in that many registers of its lanes."""
SLICE = 512
"""Codes of four bits of a wavefront; one of eight counts as two."""
MOST_PARTS = 7
"""Of K, each of which is code of its own."""
MANY = 1 << 25
"""Weights from which it is taken: with fewer, most of the time is not theirs."""
RESIDENT = 2
"""Programs of a compute unit. With tiles for no more than these, weights of a next one cannot be under way."""
GROUP = 64
"""Codes of 4 bits whose scales keep programs' registers so many that they spread evenly: two to a compute unit."""
FORMS = ((4, 64), (4, 128), (8, 64))
"""Bits of a code, and codes of a group."""
SHARES = {4: (4, 2), 8: (8,)}
"""How many wavefronts may share a tile, by bits: with 8, a program of 4 has tiles that come out less even."""
MOST_FOURS = {4: 1 << 30, 8: 8192}
"""Codes of four bits in a row up to which it is taken, by bits, as measured."""


class Walk(NamedTuple):
    """How rows of weights are walked over: programs, tiles of each, wavefronts that share a tile."""

    programs: int
    rounds: int
    slices: int


def suits(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes a problem on a target."""
    return (
        gluon.on_target(target, "quantized_matmul.walkers")
        and problem.dtype == "bfloat16"
        and problem.mode == "affine"
        and (problem.bits, problem.group_size) in FORMS
        and problem.transpose
        and problem.batch == 1
        and problem.rows == 1
        and problem.columns * problem.depth >= MANY
        and problem.columns // few.TILE > RESIDENT * (target.compute_units or 132)
        and problem.columns % few.TILE == 0
        and slices_of(problem) > 0
    )


def slices_of(problem: Problem) -> int:
    """Return how many wavefronts share a tile, 4 or 2, with 8 bits 8; or 0 where K cannot be cut so."""
    fours = problem.depth * problem.bits // 4
    fit = SHARES[problem.bits]
    if fours > MOST_FOURS[problem.bits]:
        return 0
    return next((n for n in fit if fours % (n * SLICE) == 0 and fours <= n * SLICE * MOST_PARTS), 0)


def walk_of(problem: Problem, config: Config, compute_units: int) -> Walk:
    """Return how rows are walked over.

    Args:
        problem: One that the kernel takes.
        config: ``fill`` programs of 4 wavefronts that a compute unit should have.
        compute_units: Of the target.
    """
    tiles, slices = problem.columns // few.TILE, slices_of(problem)
    # Twice as many programs of half as many wavefronts.
    fill = config["fill"] * 4 // slices * compute_units
    rounds = cdiv(tiles, fill)
    if rounds > MOST_ROUNDS:
        # All programs of the last rounds but one are resident at once; each multiprocessor has as many as the next one.
        fill *= cdiv(rounds, MOST_ROUNDS)
        rounds = cdiv(tiles, fill)
    return Walk(min(tiles, fill), rounds, slices)


def plan(ops: Operands, config: Config, target: Target, otherwise: Config) -> few.Launches:
    """Plan the launch of ``x, w, scales, biases, out``.

    Args:
        ops: A problem's tensors.
        config: The kernel's record.
        target: Whose compute units count.
        otherwise: The record of ``lanes``, which takes tensors that stand at any address.
    """
    return where_aligned(_planned(ops, config, target), lambda: few.plan(ops, otherwise, target))


def where_aligned(planned: LaunchPlan, otherwise: Callable[[], few.Launches]) -> few.Launches:
    """Return launches of a plan for tensors that stand at multiples of 16 bytes, and of another one for all others.

    Args:
        planned: Of ``x, w, scales, biases, out``.
        otherwise: Makes the other one, where it is needed.
    """
    unaligned = functools.cache(otherwise)

    def launches(
        x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        if gluon.aligned(x, w, scales, biases):
            planned((x, w, scales, biases, out))
        else:
            unaligned()(x, w, scales, biases, out)

    return launches


def _planned(ops: Operands, config: Config, target: Target) -> LaunchPlan:
    # Gluon's kernels are for NVIDIA alone: nothing else is to load them.
    from rocmend.kernels.ops.quantized_matmul.kernels.walkers import walkers_kernel

    p = ops.problem
    walk = walk_of(p, config, target.compute_units or 132)
    constants = {
        "DEPTH": p.depth, "GROUP": p.group_size, "BITS": p.bits, "SLICES": walk.slices, "ROUNDS": walk.rounds,
        "PDL": bool(config.get("launch_pdl", 0)),
    }  # fmt: skip
    numbers = (p.columns // few.TILE,)
    warped = with_warps(config, walk.slices)
    return LaunchPlan(walkers_kernel, (walk.programs, 1), constants, warped, numbers, few.TYPES)
