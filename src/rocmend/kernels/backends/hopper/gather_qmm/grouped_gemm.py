"""Where the kernel is taken in which a program has an expert's rows of x, on Hopper. Imports no torch."""

from __future__ import annotations

import math
from typing import NamedTuple

from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.backends.hopper.gather_qmm.kernels.grouped_gemm_ptx import FORMS
from rocmend.kernels.op import first_reason
from rocmend.kernels.ops.moe.gather_qmm import NAME, Problem, shape_class
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

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


def rejects(problem: Problem, target: Target) -> str | None:
    """Say why the kernel does not take a problem on a target."""
    return (
        gluon.rejects_target(target)
        or first_reason(
            (shape_class(problem) != "few", "each row has experts of its own"),
            (not problem.lhs, "rows of x are given by index"),
            (problem.dtype == "bfloat16", f"it takes bfloat16, not {problem.dtype}"),
            (
                (problem.mode, problem.bits, problem.group_size) in FORMS,
                "it takes affine codes of 4 bits in groups of 64, and mxfp4",
            ),
            (problem.transpose, "the weights are not transposed"),
            (problem.m == 1 and problem.pairs <= MOST_PAIRS, f"it takes up to {MOST_PAIRS} pairs of one row"),
            (problem.experts <= MOST_EXPERTS, f"it takes up to {MOST_EXPERTS} experts"),
            (problem.pairs * problem.k * 2 < LARGEST, "x has more bytes than places have bits for"),
        )
        or _rejects_shape(problem, target)
    )


def _rejects_shape(problem: Problem, target: Target) -> str | None:
    config = config_for(NAME, "grouped_gemm", class_of(problem), target)
    return first_reason((fits(problem, config, target), "its shape does not fill the programs, or has no room in LDS"))


class Cut(NamedTuple):
    """How an expert's rows of weights are cut: units of work, rounds of a unit, and blocks of a round, or 0."""

    slices: int
    rounds: int
    blocks: int


def class_of(problem: Problem) -> str:
    """Name the class of records: rows of an expert, and with a gate whether there are many columns; or mxfp4."""
    if problem.mode == "mxfp4":
        return "mxfp4-deep" if problem.k > DEEPEST else "mxfp4-gated" if problem.gated else "mxfp4"
    kind = shape_class(problem)
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
    numbers = 16 + 4 * (config["ROOM"] + most + 64 + room_for(problem.experts)) + 16 * config["SLOTS"] + 40
    return cdiv(2 * PART * 2 * most + slots + numbers, 1024) * 1024


def room_for(experts: int) -> int:
    """Return for how many experts a program has room, a power of two."""
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
