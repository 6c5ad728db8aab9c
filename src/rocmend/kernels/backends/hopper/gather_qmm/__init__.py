"""Kernels of ``gather_qmm`` on Hopper: which one takes a problem."""

from __future__ import annotations

import functools

from rocmend.kernels.backends import Taken
from rocmend.kernels.backends.hopper.gather_qmm import grouped_gemm, moe_gemv, moe_gemv_persistent
from rocmend.kernels.ops.moe.gather_qmm import Problem
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for


def taken(problem: Problem, target: Target, *, kind: str, has_lhs: bool) -> Taken | None:
    """Return the kernel that takes a problem of a class of shapes.

    Its ``plan`` takes the arguments, what the ten tensors are seen as, and a function that plans a kernel for tensors
    at any address. Both return launches of x, weights, second weights, the output and indices.
    """
    if kind != "few":
        return None if has_lhs else _many(problem, target, kind)
    if moe_gemv.suits(problem, target):
        name = moe_gemv.class_of(problem, target)
        config = config_for("gather_qmm", "moe_gemv", name, target)
        if moe_gemv.pays(problem, config):
            return Taken("moe_gemv", name, functools.partial(moe_gemv.plan, config=config))
    if moe_gemv_persistent.suits(problem, target):
        name = moe_gemv_persistent.class_of(problem)
        config = config_for("gather_qmm", "moe_gemv_persistent", name, target)
        plan = functools.partial(moe_gemv_persistent.plan, config=config, target=target)
        return Taken("moe_gemv_persistent", name, plan)
    return None


def _many(problem: Problem, target: Target, kind: str) -> Taken | None:
    if not grouped_gemm.suits(problem, target):
        return None
    name = grouped_gemm.class_of(problem, kind)
    config = config_for("gather_qmm", "grouped_gemm", name, target)
    if not grouped_gemm.fits(problem, config, target):
        return None
    return Taken(
        "grouped_gemm", name, functools.partial(grouped_gemm.plan, problem=problem, config=config, target=target)
    )
