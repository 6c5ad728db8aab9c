"""Plan the kernel for two to eight rows of x whose programs walk over rows of weights: 4 bits, on NVIDIA."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common import gluon
from rocmend.kernels.common.plans import Plan
from rocmend.kernels.ops.quantized_matmul import Problem, few, walkers
from rocmend.kernels.ops.quantized_matmul.operands import Operands
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config

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
"""Weights from which it is taken, as measured."""
FULL = 0.6
"""Of the wavefronts that there are, how many are to have a tile at least."""
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
        gluon.on_target(target)
        and problem.dtype == "bfloat16"
        and problem.mode == "affine"
        and (problem.bits, problem.group_size) in FORMS
        and problem.transpose
        and problem.batch == 1
        and 1 < problem.rows <= ROWS
        and problem.columns * problem.depth >= MANY
        and problem.columns % few.TILE == 0
        and problem.depth <= MOST_DEPTH
        and problem.depth % SLICE == 0
        and _slices(problem, ROWS) > 0
    )


def depth_class(problem: Problem) -> str:
    """Name the class of tuning records: how much shared memory x takes."""
    return "narrow" if problem.depth <= NARROW else "wide"


def _slices(problem: Problem, most: int) -> int:
    """Return how many wavefronts share a tile, the least from ``most`` on downwards that K can be cut for, or 0."""
    fit = (n for n in (8, 4, 2, 1) if n <= most and problem.depth % (n * SLICE) == 0)
    return next((n for n in fit if problem.depth <= n * SLICE * MOST_PARTS), 0)


def walk_of(problem: Problem, config: Config, compute_units: int) -> Walk:
    """Return how rows are walked over.

    Args:
        problem: One that the kernel takes.
        config: ``slices`` wavefronts that share a tile at best, ``num_warps`` of a program, ``fill`` programs that a
            compute unit should have.
        compute_units: Of the target.
    """
    tiles = problem.columns // few.TILE
    at_once = config["fill"] * compute_units * config["num_warps"]
    slices = _slices(problem, config["slices"]) or _slices(problem, ROWS)
    # With few tiles more wavefronts share one.
    while tiles * slices < FULL * at_once and 2 * slices <= ROWS and problem.depth % (2 * slices * SLICE) == 0:
        slices *= 2
    side = max(1, config["num_warps"] // slices)
    programs = min(cdiv(tiles, side), config["fill"] * compute_units)
    return Walk(programs, cdiv(tiles, programs * side), side, slices)


def plan(ops: Operands, config: Config, target: Target, otherwise: Config) -> few.Launches:
    """Plan the launch of ``x, w, scales, biases, out``; see ``walkers.plan``."""
    p = ops.problem
    if ops.x.stride(-2) % 8:  # rows of x stand at multiples of 16 bytes
        return few.plan(ops, otherwise, target)
    from rocmend.kernels.ops.quantized_matmul.kernels.walkers_rows import walkers_rows_kernel

    walk = walk_of(p, config, target.compute_units or 132)
    constants = {
        "DEPTH": p.depth, "GROUP": p.group_size, "SLICES": walk.slices, "SIDE": walk.side, "ROUNDS": walk.rounds,
        "PDL": bool(config.get("launch_pdl", 0)),
    }  # fmt: skip
    numbers = (p.rows, p.columns // few.TILE, ops.x.stride(-2) // 8)
    config = few.with_warps(config, walk.side * walk.slices)
    planned = Plan(walkers_rows_kernel, (walk.programs, 1), constants, config, numbers, few.TYPES)
    return walkers.where_aligned(planned, lambda: few.plan(ops, otherwise, target))
