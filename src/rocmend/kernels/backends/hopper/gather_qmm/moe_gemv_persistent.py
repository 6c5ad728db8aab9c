"""Where the kernel is taken whose programs walk over tiles of experts that pairs share, on Hopper. Imports no torch."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.op import first_reason
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE
from rocmend.kernels.ops.moe.gather_qmm import Problem, shape_class
from rocmend.kernels.target import Target

CHUNK = 128
"""Codes that four lanes take of a row at once."""
MOST_PAIRS = 256
MOST_EXPERTS = 256
SHARED, SPARED = 0.7, 32
"""Experts for each pair below which it pays to bring pairs together, and how many must need no weights of their own."""


class Cut(NamedTuple):
    """How K is cut: wavefronts that share a tile, and chunks that each takes."""

    slices: int
    per: int


CUTS = {slices * per * CHUNK: Cut(slices, per) for slices in (2, 4) for per in (3, 4)}
"""By K."""


def rejects(problem: Problem, target: Target) -> str | None:
    """Say why the kernel does not take a problem on a target."""
    return gluon.rejects_target(target) or first_reason(
        (shape_class(problem) == "few", "rows share experts"),
        (problem.dtype == "bfloat16", f"it takes bfloat16, not {problem.dtype}"),
        (
            problem.mode == "affine" and problem.bits == 4 and problem.group_size in {CHUNK // 2, CHUNK},
            f"it takes affine codes of 4 bits in groups of {CHUNK // 2} or {CHUNK}",
        ),
        (problem.m == 1 and problem.pairs <= MOST_PAIRS, f"it takes up to {MOST_PAIRS} pairs of one row"),
        (problem.n % TILE == 0, f"it takes rows of weights in multiples of {TILE}"),
        (problem.k in CUTS, f"wavefronts cannot share K = {problem.k}"),
        (problem.experts <= MOST_EXPERTS, f"it takes up to {MOST_EXPERTS} experts"),
        (_shares(problem), "nearly every pair has an expert of its own"),
    )


def _shares(problem: Problem) -> bool:
    """Return whether it pays to bring pairs of an expert together, if all experts are as likely."""
    chosen = problem.experts * (1 - (1 - 1 / problem.experts) ** problem.pairs)
    return chosen < SHARED * problem.pairs and problem.pairs - chosen > SPARED
