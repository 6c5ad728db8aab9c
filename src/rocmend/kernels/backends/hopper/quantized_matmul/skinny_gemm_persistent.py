"""Plan the kernel for up to eight rows of x whose programs walk over rows of weights: 4 bits, on NVIDIA."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import torch

from rocmend.kernels import backends
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul import NAME, Problem, few
from rocmend.kernels.ops.matmul.quantized_matmul.operands import Operands
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for

ROWS = 8
"""Of x: the columns of the matrix unit."""
FORMS = ((4, 64), (4, 128))
"""Bits of a code, and codes of a group."""
SLICE = 512
"""Codes of a wavefront."""
NARROW = 4096
"""K up to which x takes no more than 64 KB of shared memory."""
MOST_DEPTH = 8192
"""K for which x takes 128 KB."""
MANY = 3 << 24
"""Weights from which it is taken whatever their shape, as measured."""
LEAST = 10 << 20
"""Weights from which it is taken where enough wavefronts have a tile."""
ENOUGH = 0.55
"""Of the wavefronts that there are, how many are to have a tile at least, where weights are not many."""
WARPS = 16
"""Wavefronts of a program, one program to a compute unit."""
MOST_PARTS = 8
"""Of K, each of which is code of its own."""


class Walk(NamedTuple):
    """How rows of weights are walked over: programs, tiles of each in turn and at once, wavefronts that share one."""

    programs: int
    rounds: int
    side: int
    slices: int


def suits(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes a problem on a target."""
    return (
        gluon.on_target(target, "quantized_matmul.skinny_gemm_persistent")
        and problem.dtype == "bfloat16"
        and problem.mode == "affine"
        and (problem.bits, problem.group_size) in FORMS
        and problem.transpose
        and problem.batch == 1
        and 1 <= problem.rows <= ROWS
        and problem.columns % few.TILE == 0
        and problem.depth <= MOST_DEPTH
        and bool(_slices(problem))
        and _is_faster(problem, target)
    )


def _is_faster(problem: Problem, target: Target) -> bool:
    """Return whether a problem that the kernel can take is computed sooner by it, as measured."""
    units = target.compute_units or 132
    weights = problem.columns * problem.depth
    return weights >= MANY or (weights >= LEAST and _even(problem, _best_slices(problem, units), units) >= ENOUGH)


def depth_class(problem: Problem) -> str:
    """Name the class of tuning records: how much shared memory x takes."""
    return "narrow" if problem.depth <= NARROW else "wide"


def _slices(problem: Problem) -> tuple[int, ...]:
    """Return how many wavefronts may share a tile."""
    return tuple(
        n for n in (1, 2, 4, 8) if problem.depth % (n * SLICE) == 0 and problem.depth <= n * SLICE * MOST_PARTS
    )


def _even(problem: Problem, slices: int, compute_units: int) -> float:
    """Return how many of the wavefronts have a tile, of all rounds."""
    at_once = WARPS * compute_units
    wanted = problem.columns // few.TILE * slices
    return wanted / (cdiv(wanted, at_once) * at_once)


def _best_slices(problem: Problem, compute_units: int) -> int:
    """Return how many wavefronts share a tile: so that many have one, and few add up; fitted to what was measured."""
    return min(
        _slices(problem),
        key=lambda n: _even(problem, n, compute_units) ** -0.5 * (1 + 0.04 * math.log2(n)),
    )


def walk_of(problem: Problem, compute_units: int) -> Walk:
    """Return how rows are walked over on so many compute units."""
    tiles, slices = problem.columns // few.TILE, _best_slices(problem, compute_units)
    side = WARPS // slices
    programs = min(cdiv(tiles, side), compute_units)
    return Walk(programs, cdiv(tiles, programs * side), side, slices)


def plan(ops: Operands, otherwise: Callable[[], few.Launches], target: Target) -> few.Launches:
    """Plan the launch of ``x, w, scales, biases, out``.

    Args:
        ops: A problem's tensors.
        otherwise: Plans a kernel that takes tensors that stand at any address.
        target: Whose compute units count.
    """
    p = ops.problem
    if p.rows > 1 and ops.x.stride(-2) % 8:  # rows of x stand at multiples of 16 bytes
        return otherwise()
    from rocmend.kernels.backends.hopper.quantized_matmul.kernels.skinny_gemm_persistent import (
        skinny_gemm_persistent_kernel,
    )

    config = config_for(NAME, "skinny_gemm_persistent", depth_class(p), target)
    walk = walk_of(p, target.compute_units or 132)
    constants = {
        "DEPTH": p.depth, "GROUP": p.group_size, "SLICES": walk.slices, "SIDE": walk.side, "ROUNDS": walk.rounds,
        "HELD": 1 if p.rows == 1 else ROWS, "PDL": bool(config.get("launch_pdl", 0)),
    }  # fmt: skip
    numbers = (p.rows, p.columns // few.TILE, ops.x.stride(-2) // 8)
    planned = LaunchPlan(skinny_gemm_persistent_kernel, (walk.programs, 1), constants, config, numbers, few.TYPES)
    return where_aligned(planned, otherwise)


def where_aligned(planned: Callable[..., None], otherwise: Callable[[], few.Launches]) -> few.Launches:
    """Return launches of a plan for tensors that stand at multiples of 16 bytes, and of another one for all others."""
    unaligned = functools.cache(otherwise)

    def launches(
        x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        if backends.aligned(x, w, scales, biases):
            planned((x, w, scales, biases, out))
        else:
            unaligned()(x, w, scales, biases, out)

    return launches
