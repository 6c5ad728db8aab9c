"""Plan the kernel for very few rows on Hopper.

It multiplies affine codes as whole numbers with digits of x, and mxfp4's as bfloat16 with x as it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import torch

from rocmend.kernels import backends
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE
from rocmend.kernels.ops.moe.gather_qmm import Problem
from rocmend.kernels.ops.moe.gather_qmm.arguments import Arguments
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, with_warps

Launches = Callable[[Sequence[torch.Tensor | None]], None]
COLUMNS = 256
"""Of K for a wavefront at a time."""
MOST_WAVEFRONTS = 16
MOST_PAIRS = 128
"""More share experts, whose weights other kernels read once for them."""
CHUNK = {"affine": 128, "mxfp4": 64}
"""What K is a multiple of."""
GROUPS = {("affine", 4): (64, 128), ("affine", 8): (64, 128), ("mxfp4", 4): (32,)}
"""Of the formats that the kernel takes."""
SINGLE = 3
"""Sets of 16 rows of weights for each compute unit up to which a class is ``single``."""


def suits(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes a problem on a target."""
    return (
        gluon.on_target(target, "gather_qmm.moe_gemv")
        and problem.dtype == "bfloat16"
        and problem.group_size in GROUPS.get((problem.mode, problem.bits), ())
        and problem.transpose
        and problem.m == 1
        and problem.pairs <= MOST_PAIRS
        and problem.n % TILE == 0
        and problem.k % CHUNK[problem.mode] == 0
        and problem.k <= COLUMNS * MOST_WAVEFRONTS
    )


def tiles(problem: Problem) -> int:
    """Return how many sets of 16 rows of weights all pairs have."""
    return problem.pairs * problem.n // TILE * (2 if problem.gated else 1)


def pays(problem: Problem, config: Config) -> bool:
    """Return whether the kernel is the fastest for a problem: up to ``most`` sets of 16 rows."""
    return tiles(problem) <= int(config["most"])


def wavefronts(k: int, parts: int = 1) -> int:
    """Return how many wavefronts share a row of K columns, of which each has parts of 256."""
    return next_power_of_2(cdiv(k, COLUMNS * parts))


def class_of(problem: Problem, target: Target) -> str:
    """Name the class of tuning records: the format, wavefronts that share K alike, the gate, whether rows are few."""
    count = wavefronts(problem.k)
    share = count if problem.k == count * COLUMNS else "halves" if problem.k % (COLUMNS // 2) else "uneven"
    single = tiles(problem) <= SINGLE * (target.compute_units or 132)
    name = problem.mode if problem.mode == "mxfp4" else f"b{problem.bits}"
    return f"{name}-{share}{'-gated' if problem.gated else ''}{'-single' if single else ''}"


def plan(
    a: Arguments, types: Sequence[torch.dtype | None], otherwise: Callable[[], Launches], config: Config
) -> Launches:
    """Plan the launch of x, weights, second weights, the output and indices.

    Args:
        a: Arguments of a problem that the kernel takes.
        config: The kernel's record: ``most`` sets of 16 rows that it is for, SETS of a program, PARTS
            of 256 columns of a wavefront.
        types: What the tensors are seen as.
        otherwise: Plans the kernel that takes tensors at any address.
    """
    planned = _planned(a, config, types)
    unaligned = functools.cache(otherwise)

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        if backends.aligned(*tensors[:7]):
            planned(tensors)
        else:
            unaligned()(tensors)

    return launches


def _planned(a: Arguments, config: Config, types: Sequence[torch.dtype | None]) -> LaunchPlan:
    # Gluon's kernels are for NVIDIA alone: nothing else is to load them.
    from rocmend.kernels.backends.hopper.gather_qmm.kernels.moe_gemv import moe_gemv_kernel
    from rocmend.kernels.backends.hopper.gather_qmm.kernels.moe_gemv_ptx import E2M1

    k, gated = a.x.shape[-1], a.up is not None
    each = TILE // (2 if gated else 1)
    sets = config["SETS"] if a.n % (each * config["SETS"]) == 0 else 1
    slices = wavefronts(k, config["PARTS"])
    units = a.n // (each * sets)
    constants = {
        "DIVISOR": a.pairs.divisor, "DEPTH": k, "KIND": E2M1 if a.form.mode == "mxfp4" else a.form.bits,
        "GROUP": a.form.group_size, "UNITS": units, "GATED": gated, "HAS_LHS": a.pairs.lhs is not None, "SETS": sets,
        "SLICES": slices, "PARTS": config["PARTS"], "PDL": bool(config.get("launch_pdl", 0)),
    }  # fmt: skip
    return LaunchPlan(moe_gemv_kernel, (units, a.pairs.count), constants, with_warps(config, slices), (), types)
