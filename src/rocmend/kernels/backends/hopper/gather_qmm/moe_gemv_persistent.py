"""Plan the kernel whose programs walk over the tiles of chosen experts: few rows, 4 or 8 bits, on Hopper."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from rocmend.kernels import backends
from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE
from rocmend.kernels.ops.moe.gather_qmm import Problem
from rocmend.kernels.ops.moe.gather_qmm.arguments import Arguments
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, with_warps

Launches = Callable[[Sequence[torch.Tensor | None]], None]
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


def suits(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes a problem on a target."""
    return (
        gluon.on_target(target, "gather_qmm.moe_gemv_persistent")
        and problem.dtype == "bfloat16"
        and problem.mode == "affine"
        and problem.bits in FEWEST_PAIRS
        and problem.group_size * problem.bits in GROUP_BITS
        and problem.transpose
        and problem.m == 1
        and FEWEST_PAIRS[problem.bits] <= problem.pairs <= (MOST_SHARED if _shares(problem) else MOST_PAIRS)
        and problem.n % TILE == 0
        and cut_of(problem.k, problem.bits) is not None
    )


def cut_of(k: int, bits: int) -> Cut | None:
    """Return how K is cut, or None where it cannot be."""
    for slices, per in ((4, 4), (4, 3), (2, 4), (2, 3)):
        step = slices * per * CHUNK_BITS // bits
        if k % step == 0 and k <= step * MOST_PARTS:
            return Cut(slices, per)
    return None


def class_of(problem: Problem) -> str:
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


def plan(
    a: Arguments, types: Sequence[torch.dtype | None], otherwise: Callable[[], Launches], config: Config, target: Target
) -> Launches:
    """Plan the launch of x, weights, second weights, the output and indices.

    Args:
        a: Arguments of a problem that the kernel takes.
        config: The kernel's record: ``fill`` programs of 4 wavefronts that a compute unit should have.
        target: Whose compute units count.
        types: What the tensors are seen as.
        otherwise: Plans the kernel that takes tensors at any address.
    """
    planned = _planned(a, config, target, types)
    unaligned = functools.cache(otherwise)

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        if backends.aligned(*tensors[:7]):
            planned(tensors)
        else:
            unaligned()(tensors)

    return launches


def _planned(a: Arguments, config: Config, target: Target, types: Sequence[torch.dtype | None]) -> LaunchPlan:
    # Gluon's kernels are for NVIDIA alone: nothing else is to load them.
    from rocmend.kernels.backends.hopper.gather_qmm.kernels.moe_gemv_persistent import moe_gemv_persistent_kernel

    k, bits = a.x.shape[-1], a.form.bits
    cut = cut_of(k, bits)
    if cut is None:
        raise ValueError(f"[gather_qmm] expected K that wavefronts can share, got {k}.")
    if config.get("slices", 0):
        each = k * bits // CHUNK_BITS // config["slices"]
        cut = Cut(config["slices"], next(per for per in (4, 3) if each % per == 0))
    tiles = a.n // TILE
    mates = config["MATES"]
    constants = {
        "DEPTH": k, "BITS": bits, "GROUP": a.form.group_size, "TILES": tiles, "GATED": a.up is not None,
        "HAS_LHS": a.pairs.lhs is not None, "MATES": mates,
        "ROWS": max(32, next_power_of_2(a.pairs.count)) if mates > 1 else 1,
        "SLICES": cut.slices, "PER": cut.per, "PDL": bool(config.get("launch_pdl", 0)),
    }  # fmt: skip
    programs = min(config["fill"] * 4 // cut.slices * (target.compute_units or 132), a.pairs.count * tiles)
    return LaunchPlan(
        moe_gemv_persistent_kernel,
        (programs,),
        constants,
        with_warps(config, cut.slices),
        (a.pairs.count, a.pairs.divisor),
        types,
    )
