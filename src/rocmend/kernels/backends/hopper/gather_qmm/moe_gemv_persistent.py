"""Where the kernel is taken whose programs walk over the tiles of chosen experts, on Hopper. Imports no torch."""

from __future__ import annotations

from typing import NamedTuple

from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.op import first_reason
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE
from rocmend.kernels.ops.moe.gather_qmm import Problem, shape_class
from rocmend.kernels.target import Target

CHUNK_BITS = 512
"""Of the codes that four lanes take of a row at once."""
MOST_PARTS = 4
"""Of K, each of which is code of its own."""
FEWEST_PAIRS = {4: 1, 8: 32}
"""By bits of a code."""
MOST_PAIRS = 128
MOST_SHARED = 256
"""The same where pairs of an expert are brought together."""
MOST_EXPERTS = 256
"""Whose pairs can be brought together."""
DEEPEST = 2048 * 4
"""Bits of a row up to which rows of x of several pairs leave the caches enough of what LDS is a part of."""
SHARED, SPARED = 0.7, 32
"""Experts for each pair below which it pays to bring pairs together, and how many must need no weights of their own."""
GROUP_BITS = (256, 512)
"""Of a group's codes: half a chunk, or a whole one."""


class Cut(NamedTuple):
    """How K is cut: wavefronts that share a tile, and chunks that each takes at a step."""

    slices: int
    per: int


def rejects(problem: Problem, target: Target) -> str | None:
    """Say why the kernel does not take a problem on a target."""
    if reason := gluon.rejects_target(target) or first_reason(
        (shape_class(problem) == "few", "rows share experts"),
        (problem.dtype == "bfloat16", f"it takes bfloat16, not {problem.dtype}"),
        (problem.mode == "affine" and problem.bits in FEWEST_PAIRS, "it takes affine codes of 4 or 8 bits"),
    ):
        return reason
    fewest, most = FEWEST_PAIRS[problem.bits], MOST_SHARED if _shares(problem) else MOST_PAIRS
    return first_reason(
        (problem.group_size * problem.bits in GROUP_BITS, f"it takes no groups of {problem.group_size}"),
        (problem.m == 1 and fewest <= problem.pairs <= most, f"it takes {fewest} to {most} pairs of one row"),
        (problem.n % TILE == 0, f"it takes rows of weights in multiples of {TILE}"),
        (cut_of(problem.k, problem.bits) is not None, f"wavefronts cannot share K = {problem.k}"),
    )


def cut_of(k: int, bits: int) -> Cut | None:
    """Return how K is cut, or None where it cannot be."""
    for slices, per in ((4, 4), (4, 3), (2, 4), (2, 3)):
        step = slices * per * CHUNK_BITS // bits
        if k % step == 0 and k <= step * MOST_PARTS:
            return Cut(slices, per)
    return None


def class_of(problem: Problem, _target: Target) -> str:
    """Name the class of tuning records: what registers depend on, which decide how many programs are resident.

    These are how K is cut, whether there is a gate, and whether pairs of one expert are brought together, which pays
    where many of them are.
    """
    cut = cut_of(problem.k, problem.bits)
    parts = 0 if cut is None else problem.k * problem.bits // (cut.slices * cut.per * CHUNK_BITS)
    if cut is None or parts > 2:
        kind = "deep"
    elif problem.bits == 8:
        kind = "bytes"
    elif cut.per == 3:
        kind = "three"
    else:
        kind = "short" if parts == 1 else "long"
    shared = "" if not _shares(problem) else "-shared" if problem.pairs <= MOST_PAIRS else "-many"
    return f"{kind}{'-gated' if problem.gated else ''}{shared}"


def _shares(problem: Problem) -> bool:
    """Return whether it pays to bring pairs of an expert together."""
    if problem.bits != 4 or problem.k * problem.bits > DEEPEST or problem.experts > MOST_EXPERTS:
        return False
    chosen = problem.experts * (1 - (1 - 1 / problem.experts) ** problem.pairs)  # on average
    return chosen < SHARED * problem.pairs and problem.pairs - chosen > SPARED
