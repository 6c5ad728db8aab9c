"""Where the GEMM for 1 to 8 rows of x is taken whose programs walk over rows of weights. Imports no torch."""

from __future__ import annotations

import math
from typing import NamedTuple

from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.op import first_reason
from rocmend.kernels.ops.matmul.quantized_matmul import Problem
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE, rejects_transposed
from rocmend.kernels.target import Target

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


def rejects(problem: Problem, target: Target) -> str | None:
    """Say why the kernel does not take a problem on a target."""
    return (
        gluon.rejects_target(target)
        or rejects_transposed(problem, target)
        or first_reason(
            (problem.dtype == "bfloat16", f"it takes bfloat16, not {problem.dtype}"),
            (
                problem.mode == "affine" and (problem.bits, problem.group_size) in FORMS,
                "it takes affine codes of 4 bits in groups of 64 or 128",
            ),
            (problem.batch == 1, "it takes one matrix of weights"),
            (1 <= problem.rows <= ROWS, f"it takes 1 to {ROWS} rows of x, not {problem.rows}"),
            (problem.columns % TILE == 0, f"it takes rows of weights in multiples of {TILE}"),
            (
                problem.depth <= MOST_DEPTH and bool(_slices(problem)),
                f"it takes K in multiples of {SLICE}, up to {MOST_DEPTH}",
            ),
        )
    )


def avoid(problem: Problem, target: Target) -> str | None:
    """Say why another kernel is faster, as measured."""
    units = target.compute_units or 132
    weights = problem.columns * problem.depth
    faster = weights >= MANY or (weights >= LEAST and _even(problem, _best_slices(problem, units), units) >= ENOUGH)
    return None if faster else "too few wavefronts would have a tile of weights"


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
    wanted = problem.columns // TILE * slices
    return wanted / (cdiv(wanted, at_once) * at_once)


def _best_slices(problem: Problem, compute_units: int) -> int:
    """Return how many wavefronts share a tile: so that many have one, and few add up; fitted to what was measured."""
    return min(
        _slices(problem),
        key=lambda n: _even(problem, n, compute_units) ** -0.5 * (1 + 0.04 * math.log2(n)),
    )


def walk_of(problem: Problem, compute_units: int) -> Walk:
    """Return how rows are walked over on so many compute units."""
    tiles, slices = problem.columns // TILE, _best_slices(problem, compute_units)
    side = WARPS // slices
    programs = min(cdiv(tiles, side), compute_units)
    return Walk(programs, cdiv(tiles, programs * side), side, slices)
