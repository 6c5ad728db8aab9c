"""Plan the launches of the kernels of ``quantized_matmul`` on Hopper.

Kernels in Gluon are for NVIDIA alone, and imported where one is planned.
"""

from __future__ import annotations

import torch

from rocmend.kernels import allocate
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.backends.hopper.quantized_matmul import gemm_w4a16_wgmma as wgmma
from rocmend.kernels.backends.hopper.quantized_matmul import skinny_gemm_persistent as skinny
from rocmend.kernels.backends.hopper.quantized_matmul.kernels.terms import ordered_kernel
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul import NAME
from rocmend.kernels.ops.matmul.quantized_matmul.host import added, kernel
from rocmend.kernels.ops.matmul.quantized_matmul.operands import TYPES, Launches, Operands
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for


def plan_gemm_w4a16_wgmma(ops: Operands, target: Target) -> Launches:
    """Plan x in order, the product, and the sum of parts of K."""
    from rocmend.kernels.backends.hopper.quantized_matmul.kernels.gemm_w4a16_wgmma import gemm_w4a16_wgmma_kernel

    p, device = ops.problem, ops.x.device
    config = config_for(NAME, "gemm_w4a16_wgmma", wgmma.record_class(p), target)
    block, stride, chunk = config["BLOCK_M"], ops.x.stride(-2), wgmma.chunk_of(p)
    chunks = p.depth // chunk
    splits, tiles = wgmma.splits_of(p, config, target.compute_units or wgmma.UNITS), cdiv(p.rows, block)
    constants = {"BITS": p.bits, "GROUP": p.group_size}
    steps = chunks // config["CHUNKS"] // splits
    numbers = (p.rows, p.columns, ops.w.shape[-1], chunks // wgmma.FOUR, stride, steps)
    grid = (tiles * (p.columns // config["ROWS"]), splits)
    product = added(ops, LaunchPlan(gemm_w4a16_wgmma_kernel, grid, constants, config, numbers, TYPES), splits, target)
    if config["OWN"]:
        return product
    order = config_for(NAME, "ordered", "*", target)
    ordered_of = allocate.Output((tiles * block, p.depth), ops.x.dtype, device)
    shape = {
        "BITS": p.bits, "BLOCK_M": block, "WIDTH": chunk // config["PIECES"], "PDL": bool(order.get("launch_pdl", 0)),
    }  # fmt: skip
    first = LaunchPlan(
        ordered_kernel, (tiles * block // order["LINES"], chunks), shape, order, (p.rows, stride, chunks)
    )

    def launches(
        x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        ordered = ordered_of()
        first((x, ordered))
        product(ordered, w, scales, biases, out)

    return launches


def plan_skinny_gemm_persistent(ops: Operands, target: Target) -> Launches | None:
    """Plan the launch, if rows of x stand at multiples of 16 bytes."""
    p = ops.problem
    if p.rows > 1 and ops.x.stride(-2) % 8:
        return None
    from rocmend.kernels.backends.hopper.quantized_matmul.kernels.skinny_gemm_persistent import (
        skinny_gemm_persistent_kernel,
    )

    config = config_for(NAME, "skinny_gemm_persistent", skinny.depth_class(p), target)
    walk = skinny.walk_of(p, target.compute_units or 132)
    constants = {
        "DEPTH": p.depth, "GROUP": p.group_size, "SLICES": walk.slices, "SIDE": walk.side, "ROUNDS": walk.rounds,
        "HELD": 1 if p.rows == 1 else skinny.ROWS,
    }  # fmt: skip
    numbers = (p.rows, p.columns // TILE, ops.x.stride(-2) // 8)
    planned = LaunchPlan(skinny_gemm_persistent_kernel, (walk.programs, 1), constants, config, numbers, TYPES)
    return lambda x, w, scales, biases, out: planned((x, w, scales, biases, out))


gemm_w4a16_wgmma = kernel(plan_gemm_w4a16_wgmma, aligned=True)
skinny_gemm_persistent = kernel(plan_skinny_gemm_persistent, aligned=True)
