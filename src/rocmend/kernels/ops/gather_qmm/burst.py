"""Plan the kernel that asks for all its weights at once: very few rows, affine codes or mxfp4, on Hopper."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import gluon
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.gather_qmm import Problem
from rocmend.kernels.ops.gather_qmm.arguments import Arguments
from rocmend.kernels.ops.quantized_matmul import few
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, with_warps

Launches = Callable[[Sequence[torch.Tensor | None]], None]
COLUMNS = 512
"""Of K for a wavefront."""
MOST_WAVEFRONTS = 8
MOST_PAIRS = 128
"""More share experts, whose weights other kernels read once for them."""
CHUNK = 128
"""What K is a multiple of: two groups, or four, whose scales are loaded together."""
GROUPS = {("affine", 4): (64, 128), ("affine", 8): (64, 128), ("mxfp4", 4): (32,)}
"""Of the formats that the kernel takes."""


def suits(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes a problem on a target."""
    return (
        gluon.on_target(target, "gather_qmm.burst")
        and problem.dtype == "bfloat16"
        and problem.group_size in GROUPS.get((problem.mode, problem.bits), ())
        and problem.transpose
        and problem.m == 1
        and problem.pairs <= MOST_PAIRS
        and problem.n % few.TILE == 0
        and problem.k % CHUNK == 0
        and problem.k <= COLUMNS * MOST_WAVEFRONTS
    )


def pays(problem: Problem, config: Config) -> bool:
    """Return whether the kernel is the fastest for a problem: up to ``most`` tiles of 16 rows of all pairs."""
    return problem.pairs * problem.n <= int(config["most"]) * few.TILE


def wavefronts(k: int) -> int:
    """Return how many wavefronts share a row of K columns."""
    return next_power_of_2(cdiv(k, COLUMNS))


def class_of(problem: Problem) -> str:
    """Name the class of tuning records: the format, how many wavefronts share K alike, and whether there is a gate."""
    name = problem.mode if problem.mode == "mxfp4" else f"b{problem.bits}"
    count = wavefronts(problem.k)
    share = count if problem.k == count * COLUMNS else "uneven"
    return f"{name}-{share}{'-gated' if problem.gated else ''}"


def plan(
    a: Arguments, config: Config, types: Sequence[torch.dtype | None], otherwise: Callable[[], Launches]
) -> Launches:
    """Plan the launch of x, weights, second weights, the output and indices.

    Args:
        a: Arguments of a problem that the kernel takes.
        config: The kernel's record: ``most`` tiles that it is for, SETS of 16 rows a program has, and for how many of
            them it waits (HELD).
        types: What the tensors are seen as.
        otherwise: Plans the kernel that takes tensors at any address.
    """
    planned = _planned(a, config, types)
    unaligned = functools.cache(otherwise)

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        if gluon.aligned(*tensors[:7]):
            planned(tensors)
        else:
            unaligned()(tensors)

    return launches


def _planned(a: Arguments, config: Config, types: Sequence[torch.dtype | None]) -> LaunchPlan:
    # Gluon's kernels are for NVIDIA alone: nothing else is to load them.
    from rocmend.kernels.ops.gather_qmm.kernels.burst import burst_kernel
    from rocmend.kernels.ops.gather_qmm.kernels.burst_blocks import E2M1

    k, tiles, gated = a.x.shape[-1], a.n // few.TILE, a.up is not None
    sets = 1 if gated or tiles % 2 else config["SETS"]
    constants = {
        "DIVISOR": a.pairs.divisor, "DEPTH": k, "KIND": E2M1 if a.form.mode == "mxfp4" else a.form.bits,
        "GROUP": a.form.group_size, "TILES": tiles, "GATED": gated, "HAS_LHS": a.pairs.lhs is not None, "SETS": sets,
        "SLICES": wavefronts(k), "HELD": config["HELD"], "MEET": bool(config.get("MEET", 0)),
        "PDL": bool(config.get("launch_pdl", 0)),
    }  # fmt: skip
    return LaunchPlan(
        burst_kernel,
        (a.pairs.count * tiles // sets,),
        constants,
        with_warps(config, wavefronts(k)),
        (0,),
        types,
    )
