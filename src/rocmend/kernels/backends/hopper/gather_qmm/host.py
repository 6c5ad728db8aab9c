"""Plan the launches of the kernels of ``gather_qmm`` on Hopper.

Kernels in Gluon are for NVIDIA alone, and imported where one is planned.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.backends.hopper.gather_qmm import grouped_gemm as grouped
from rocmend.kernels.backends.hopper.gather_qmm import moe_gemv as gemv
from rocmend.kernels.backends.hopper.gather_qmm import moe_gemv_persistent as persistent
from rocmend.kernels.backends.hopper.gather_qmm.kernels.grouped_gemm_ptx import FORMS
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE
from rocmend.kernels.ops.moe.gather_qmm import NAME
from rocmend.kernels.ops.moe.gather_qmm.arguments import Arguments
from rocmend.kernels.ops.moe.gather_qmm.host import Kernel, Launches
from rocmend.kernels.ops.moe.gather_qmm.problem import problem_of
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for, with_warps


def plan_moe_gemv(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the launch."""
    from rocmend.kernels.backends.hopper.gather_qmm.kernels.moe_gemv import moe_gemv_kernel
    from rocmend.kernels.backends.hopper.gather_qmm.kernels.moe_gemv_ptx import E2M1

    config = config_for(NAME, "moe_gemv", gemv.class_of(problem_of(a)), target)
    k, gated = a.x.shape[-1], a.up is not None
    each = TILE // (2 if gated else 1)
    sets = config["SETS"] if a.n % (each * config["SETS"]) == 0 else 1
    slices = gemv.wavefronts(k, config["PARTS"])
    units = a.n // (each * sets)
    constants = {
        "DIVISOR": a.pairs.divisor, "DEPTH": k, "KIND": E2M1 if a.form.mode == "mxfp4" else a.form.bits,
        "GROUP": a.form.group_size, "UNITS": units, "GATED": gated, "HAS_LHS": a.pairs.lhs is not None, "SETS": sets,
        "SLICES": slices, "PARTS": config["PARTS"],
    }  # fmt: skip
    return LaunchPlan(moe_gemv_kernel, (units, a.pairs.count), constants, with_warps(config, slices), (), types)


def plan_moe_gemv_persistent(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the launch."""
    from rocmend.kernels.backends.hopper.gather_qmm.kernels.moe_gemv_persistent import moe_gemv_persistent_kernel

    config, k = config_for(NAME, "moe_gemv_persistent", "*", target), a.x.shape[-1]
    cut, tiles = persistent.CUTS[k], a.n // TILE
    constants = {
        "DEPTH": k, "GROUP": a.form.group_size, "TILES": tiles, "GATED": a.up is not None,
        "HAS_LHS": a.pairs.lhs is not None, "ROWS": max(32, next_power_of_2(a.pairs.count)), "SLICES": cut.slices,
        "PER": cut.per,
    }  # fmt: skip
    programs = min(config["fill"] * 4 // cut.slices * (target.compute_units or 132), a.pairs.count * tiles)
    config = with_warps(config, cut.slices)
    numbers = (a.pairs.count, a.pairs.divisor)
    return LaunchPlan(moe_gemv_persistent_kernel, (programs,), constants, config, numbers, types)


def plan_grouped_gemm(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the launch."""
    from rocmend.kernels.backends.hopper.gather_qmm.kernels.grouped_gemm import grouped_gemm_kernel

    problem = problem_of(a)
    config = config_for(NAME, "grouped_gemm", grouped.class_of(problem), target)
    cut = grouped.cut_of(problem, config, target)
    main = LaunchPlan(
        grouped_gemm_kernel,
        (target.compute_units or 132,),
        {
            "DEPTH": problem.k,
            "SLICES": cut.slices,
            "EXPERTS": grouped.room_for(problem.experts),
            "TILES": grouped.tiles_of(problem),
            "BLOCKS": cut.blocks,
            "ROUNDS": cut.rounds,
            "GATED": problem.gated,
            "SLOTS": config["SLOTS"],
            "FORM": FORMS[problem.mode, problem.bits, problem.group_size],
        },
        config,
        (problem.n, problem.pairs, problem.experts, a.pairs.divisor),
        (*types[:7], None, types[9]),
    )

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        *first, out, _, rhs = tensors
        main((*first, out, rhs))

    return launches


moe_gemv = Kernel(plan_moe_gemv, aligned=True)
moe_gemv_persistent = Kernel(plan_moe_gemv_persistent, aligned=True)
grouped_gemm = Kernel(plan_grouped_gemm, aligned=True)
