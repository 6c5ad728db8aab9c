"""Plan the kernel whose left operand comes from registers: 9 rows of x or more, 4 or 8 bits, on NVIDIA's Hopper."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from rocmend.kernels import allocate, backends
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.backends.hopper import gluon
from rocmend.kernels.backends.hopper.quantized_matmul import costs
from rocmend.kernels.backends.hopper.quantized_matmul.kernels.terms import ordered_kernel
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul import FEW, NAME, Problem, few, rows_class
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.tiles import sum_kernel
from rocmend.kernels.ops.matmul.quantized_matmul.operands import Operands
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

LEAST_ROWS = 9
MANY = 1 << 25
"""Weights of 4 bits from which it is taken up to 16 rows: else ``lanes`` is as fast, with one launch."""
CHUNK_BITS = 512
"""Of a row, which lanes take at once."""
FOUR = 4
"""K is a multiple of so many chunks: their scales are read at once, at most."""
ROWS = 128
"""The number of rows of weights is a multiple of these."""
BITS = (4, 8)
HALF_TILE = 128
"""Rows of x that are half of a tile of many."""
DTYPES = ("bfloat16", "float16")
MOST_SPLITS = 8
LEAST_STEPS = 2
"""Of a part of K. Triton makes a constant of a number that is 1, and its compiler fails at the loop without turns."""
UNITS = 132
"""Compute units of an H200, where a target does not say."""
FILL = 128
"""Rows of weights whose programs a compute unit holds at once: parts of K may make as many programs as that gives."""


def suits(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes a problem on a target."""
    return (
        gluon.on_target(target, "quantized_matmul.gemm_w4a16_wgmma")
        and problem.dtype in DTYPES
        and problem.mode == "affine"
        and problem.bits in BITS
        and problem.group_size in (chunk_of(problem), chunk_of(problem) // 2)
        and problem.transpose
        and problem.batch == 1
        and (problem.rows > FEW or (problem.rows >= LEAST_ROWS and problem.bits == BITS[0] and _many(problem)))
        and problem.columns % ROWS == 0
        and problem.depth % (FOUR * chunk_of(problem)) == 0
        and problem.depth >= LEAST_STEPS * FOUR * chunk_of(problem)
    )


def _many(problem: Problem) -> bool:
    return problem.columns * problem.depth >= MANY


def chunk_of(problem: Problem) -> int:
    """Return the codes of a chunk."""
    return CHUNK_BITS // problem.bits


def record_class(problem: Problem) -> str:
    """Name the class of tuning records: rows of x (up to 128 of their own), apart for 8 bits."""
    rows = "m128" if HALF_TILE // 2 < problem.rows <= HALF_TILE else rows_class(problem.rows)
    return rows if problem.bits == BITS[0] else f"b{problem.bits}-{rows}"


def pays(problem: Problem, target: Target) -> bool:
    """Return whether the kernel takes less time, by estimate, than dequantizing and the vendor's product would."""
    config = config_for(NAME, "gemm_w4a16_wgmma", record_class(problem), target)
    units = target.compute_units or UNITS
    block, splits = config["BLOCK_M"], splits_of(problem, config, units)
    unpacked = costs.unpacked_us(problem, block, _tiles(problem, config), splits, units, config["ROWS"] / FILL)
    return unpacked < costs.apart_us(problem)


def _tiles(problem: Problem, config: Config) -> int:
    return cdiv(problem.rows, config["BLOCK_M"]) * (problem.columns // config["ROWS"])


def splits_of(problem: Problem, config: Config, compute_units: int) -> int:
    """Return into how many parts K is cut, so that few tiles still give every compute unit work.

    Args:
        problem: One that the kernel takes.
        config: ``BLOCK_M`` by ``ROWS`` of a tile, ``CHUNKS`` of a step.
        compute_units: Of the target.
    """
    tiles = _tiles(problem, config)
    steps = problem.depth // (chunk_of(problem) * config["CHUNKS"])
    resident = FILL // config["ROWS"] * compute_units
    most = min(MOST_SPLITS, steps // LEAST_STEPS)
    return max((n for n in range(2, most + 1) if steps % n == 0 and n * tiles <= resident), default=1)


def plan(
    ops: Operands,
    otherwise: Callable[[], few.Launches],
    target: Target,
) -> few.Launches:
    """Plan the launch of ``x, w, scales, biases, out``.

    Args:
        ops: A problem's tensors.
        otherwise: Plans a kernel that takes tensors that stand at any address.
        target: Whose compute units count.
    """
    config = config_for(NAME, "gemm_w4a16_wgmma", record_class(ops.problem), target)
    small = (config_for(NAME, "ordered", "*", target), config_for(NAME, "sum", "*", target))
    planned = _planned(ops, config, target, small)
    unaligned = functools.cache(otherwise)

    def launches(
        x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        if backends.aligned(x, w, scales, biases):
            planned(x, w, scales, biases, out)
        else:
            unaligned()(x, w, scales, biases, out)

    return launches


def _planned(ops: Operands, config: Config, target: Target, small: tuple[Config, Config]) -> few.Launches:
    # Gluon's kernels are for NVIDIA alone: nothing else is to load them.
    from rocmend.kernels.backends.hopper.quantized_matmul.kernels.gemm_w4a16_wgmma import gemm_w4a16_wgmma_kernel

    p, device, block = ops.problem, ops.x.device, config["BLOCK_M"]
    stride, chunk = ops.x.stride(-2), chunk_of(p)
    chunks = p.depth // chunk
    splits, tiles = splits_of(p, config, target.compute_units or UNITS), cdiv(p.rows, block)
    constants = {"BITS": p.bits, "GROUP": p.group_size, "PDL": bool(config.get("launch_pdl", 0))}
    steps = chunks // config["CHUNKS"] // splits
    numbers = (p.rows, p.columns, ops.w.shape[-1], chunks // FOUR, stride, steps)
    grid = (tiles * (p.columns // config["ROWS"]), splits)
    main = LaunchPlan(gemm_w4a16_wgmma_kernel, grid, constants, config, numbers, few.TYPES)
    ordered = allocate.Output((tiles * block, p.depth), ops.x.dtype, device)
    parts = allocate.Output((splits, p.rows, p.columns), torch.float32, device)
    order, total = small
    shape = {
        "BITS": p.bits, "BLOCK_M": block, "WIDTH": chunk // config["PIECES"], "PDL": bool(order.get("launch_pdl", 0)),
    }  # fmt: skip
    first = LaunchPlan(
        ordered_kernel, (tiles * block // order["LINES"], chunks), shape, order, (p.rows, stride, chunks)
    )
    size = p.rows * p.columns
    last = LaunchPlan(sum_kernel, (cdiv(size, total["BLOCK"]),), {"SPLITS": splits}, total, (size,))

    def launches(
        x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        if not config["OWN"]:
            of = x
            x = ordered()
            first((of, x))
        sums = out if splits == 1 else parts()
        main((x, w, scales, biases, sums))
        if splits > 1:
            last((sums, out))

    return launches
