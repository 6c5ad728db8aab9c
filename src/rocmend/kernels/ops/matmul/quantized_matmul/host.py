"""Launch the Triton kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from rocmend.kernels import allocate, backends, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.formats import Format, as_int32
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.matmul.quantized_matmul import (
    FEW,
    FEWEST,
    Problem,
    few,
    few_class,
    gemv,
    reference,
    tuning_class,
)
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.groups import groups_kernel
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.kept import kept_kernel
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.rows import rows_kernel
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.tiles import columns_kernel, sum_kernel, tiles_kernel
from rocmend.kernels.ops.matmul.quantized_matmul.operands import Operands
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

NAME = "quantized_matmul"
WAVE64 = 64
MANY = 1 << 25
"""Weights from which groups of 32 are the stream's: with fewer, most of the time is not theirs."""


def run_reference(
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    form: Format,
    problem: Problem,
) -> torch.Tensor:
    """Compute with torch alone."""
    return reference.product(x, as_int32(w), scales, biases, problem.transpose, form)


@Planner
def run(
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    _form: Format,
    problem: Problem,
) -> Callable[..., torch.Tensor]:
    """Plan a call; see ``function.quantized_matmul``."""
    target = executor.target_for(x.device)
    ops = Operands(x, as_int32(w), scales, biases, problem)
    output = allocate.Output(ops.shape, x.dtype, x.device)
    if 0 in ops.shape:
        return lambda *_: output()
    if problem.depth == 0:
        return lambda *_: output().zero_()
    plan, launches = _chosen(problem, target)
    if plan is not None and ops.unchanged(x, w, scales, biases):
        planned = plan(ops)

        def at_once(
            x: torch.Tensor,
            w: torch.Tensor,
            scales: torch.Tensor,
            biases: torch.Tensor | None,
            _form: Format,
            _problem: Problem,
        ) -> torch.Tensor:
            out = output()
            planned(x, w, scales, biases, out)
            return out

        return at_once

    def call(
        x: torch.Tensor,
        w: torch.Tensor,
        scales: torch.Tensor,
        biases: torch.Tensor | None,
        _form: Format,
        problem: Problem,
    ) -> torch.Tensor:
        out = output()
        launches(Operands(x, as_int32(w), scales, biases, problem), out)
        return out

    return call


Plan = Callable[[Operands], few.Launches]


def _chosen(problem: Problem, target: Target) -> tuple[Plan | None, Callable[[Operands, torch.Tensor], None]]:
    """Return what plans launches of ``x, w, scales, biases, out``, if the kernel can be planned, and what launches."""
    taken = backends.taken(NAME, problem, target)
    if taken is None:
        kernel = kernel_of(problem, target)
        config = config_for(NAME, kernel, _class_of(problem, kernel), target)
        plan = functools.partial(_PLANS[kernel], config=config, target=target) if kernel in _PLANS else None
        return plan, functools.partial(_LAUNCHES[kernel], config=config, target=target)

    def of_back_end(ops: Operands) -> few.Launches:
        planned: few.Launches = taken.plan(ops, lambda: any_address(ops, target))
        return planned

    return of_back_end, lambda ops, out: of_back_end(ops)(ops.x, ops.w, ops.scales, ops.biases, out)


def any_address(ops: Operands, target: Target) -> few.Launches:
    """Plan the op's own kernel where a back end's takes a problem, for tensors that stand at any address."""
    problem = ops.problem
    kernel = kernel_of(problem, target, aligned=False)
    record = config_for(NAME, kernel, _class_of(problem, kernel), target)
    if kernel in _PLANS:
        return _PLANS[kernel](ops, record, target)

    def launches(
        x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        _LAUNCHES[kernel](Operands(x, w, scales, biases, problem), out, record, target)

    return launches


def _class_of(problem: Problem, kernel: str) -> str:
    """Return the class of a kernel's tuning records."""
    if kernel == "gemv":
        return gemv.record_class(problem.dtype, problem.bits)
    return few_class(problem) if kernel == "lanes" else tuning_class(problem)


def kernel_of(problem: Problem, target: Target, *, aligned: bool = True) -> str:
    """Return which kernel computes a problem on a target; ``aligned``: of tensors at multiples of 16 bytes."""
    taken = backends.taken(NAME, problem, target) if aligned else None
    if taken is not None:
        return taken.kernel
    return _own_kernel(problem, target) if problem.transpose else "columns"


def _own_kernel(problem: Problem, target: Target) -> str:
    """Return which of the op's own kernels computes a product with transposed weights."""
    interpreted = target.vendor == "cpu"
    matrix = problem.dtype != "float32" and (bool(target.matrix_dtypes) or interpreted)
    by_lanes = _by_lanes(problem, target, matrix=matrix)
    if by_lanes:
        return by_lanes
    if gemv.suits(problem.mode, problem.bits, problem.rows, problem.depth):
        return "gemv"
    if problem.rows <= FEW and matrix and problem.mode == "affine" and problem.bits in (2, 4, 8):
        if interpreted:  # both are checked there
            return "kept" if problem.rows % 2 else "groups"
        # Triton (3.6) stops compiling the other one with an assertion where matrix instructions are WMMA.
        return "kept" if target.vendor == "nvidia" or target.wave_size == WAVE64 else "groups"
    # Without matrix instructions a product padded to 16 rows wastes the arithmetic that there is.
    return "rows" if problem.rows <= FEWEST and (not matrix or 32 % problem.bits != 0) else "tiles"


def _by_lanes(problem: Problem, target: Target, *, matrix: bool) -> str | None:
    """Return which kernel takes a problem where lanes hold matrices as it means them to; None for none."""
    form = (problem.rows, problem.mode, problem.bits, problem.group_size)
    many = problem.columns * problem.depth >= MANY
    # With groups of 32 lanes would spend more on scales than on codes.
    fits = gemv.suits(problem.mode, problem.bits, problem.rows, problem.depth)
    if form == (1, "affine", 4, 32) and many and problem.dtype != "float32" and fits:
        return "gemv"
    lanes = few.on_target(target) or (target.vendor == "cpu" and problem.rows % 3 == 0)
    return "lanes" if lanes and matrix and problem.rows <= _most_lanes(problem) else None


def _most_lanes(problem: Problem) -> int:
    """Return up to how many rows of x lanes unpack weights of their own, where lanes hold matrices as that gives them.

    With codes that straddle words or stand for floats, tiles (which gather or convert code by code) take over later.
    """
    return FEW if problem.mode == "affine" and 32 % problem.bits == 0 else 2 * FEW


def _splits(config: Config, target: Target, programs: int, steps: int, least: int = 4) -> int:
    """Return into how many parts of at least so many steps K is cut, so that few tiles give every compute unit work."""
    wanted = config.get("split_k", 0)
    if wanted:
        return min(wanted, steps)
    if target.vendor == "cpu":
        return min(2, steps)
    fill = config.get("fill", 2) * target.units
    if programs * 2 > fill:
        return 1
    return max(1, min(fill // programs, steps // least, 32))


def _parts(out: torch.Tensor, splits: int) -> torch.Tensor:
    """Return where a kernel writes: the output, or the workspace of partial sums."""
    if splits == 1:
        return out
    return allocate.empty((splits, *out.shape), dtype=torch.float32, device=out.device)


def _sum(parts: torch.Tensor, out: torch.Tensor, splits: int, target: Target) -> None:
    if splits > 1:
        config = config_for(NAME, "sum", "*", target)
        size = out.numel()
        launch(sum_kernel, (cdiv(size, config["BLOCK"]),), (parts, out, size), {"SPLITS": splits}, config)


def _launch_rows(ops: Operands, out: torch.Tensor, config: Config, target: Target) -> None:
    p = ops.problem
    words, groups = ops.w.shape[-1], ops.scales.shape[-1]
    units = words if 32 % p.bits == 0 else words // p.bits
    block_n, block_u = config["BLOCK_N"], config["BLOCK_U"]
    others = p.batch * p.rows
    # Fewer rows of weights for each program where there would not be enough programs.
    while block_n > 1 and cdiv(p.columns, block_n) * others < config.get("fill", 2) * target.units:
        block_n //= 2
    tiles = cdiv(p.columns, block_n)
    steps = cdiv(units, block_u)
    splits = _splits(config, target, tiles * others, steps, least=1)
    per_split = cdiv(steps, splits) * block_u
    splits = cdiv(units, per_split)
    parts = _parts(out, splits)
    args = (
        ops.x, ops.w, ops.scales, ops.biases, parts, p.rows, p.columns, units, words, groups,
        ops.x.stride(-2), ops.x.stride(0), ops.w_batch, per_split,
    )  # fmt: skip
    constants = {
        "MODE": p.mode, "GROUP": p.group_size, "BITS": p.bits, "EVEN": units % block_u == 0, "BLOCK_N": block_n,
    }  # fmt: skip
    launch(rows_kernel, (tiles, splits, others), args, constants, config)
    _sum(parts, out, splits, target)


def _gemv(ops: Operands, config: Config, target: Target) -> Callable[..., None]:
    """Plan the launch for one row, of ``x, w, scales, biases, out``."""
    p = ops.problem
    planned = gemv.plan(
        [p.columns], p.depth, p.group_size, p.bits, p.dtype, target,
        config=config, batch=p.batch, x_stride=ops.x.stride(0), w_batch=ops.w_batch,
    )  # fmt: skip
    return lambda x, w, scales, biases, out: planned(gemv.operands(x, [(w, scales, biases)], [out]))


def _launch_gemv(ops: Operands, out: torch.Tensor, config: Config, target: Target) -> None:
    _gemv(ops, config, target)(ops.x, ops.w, ops.scales, ops.biases, out)


def _launch_lanes(ops: Operands, out: torch.Tensor, config: Config, target: Target) -> None:
    few.plan(ops, config, target)(ops.x, ops.w, ops.scales, ops.biases, out)


def _launch_groups(ops: Operands, out: torch.Tensor, config: Config, target: Target) -> None:
    p = ops.problem
    words, groups = ops.w.shape[-1], ops.scales.shape[-1]
    tiles = cdiv(p.columns, config["BLOCK_N"])
    others = cdiv(p.rows, config["BLOCK_M"]) * p.batch
    slices = config["SLICES"]
    steps = cdiv(groups, slices)
    splits = _splits(config, target, tiles * others, steps)
    per_split = cdiv(steps, splits) * slices
    splits = cdiv(groups, per_split)
    parts = _parts(out, splits)
    args = (
        ops.x, ops.w, ops.scales, ops.biases, parts, p.rows, p.columns, words, groups,
        ops.x.stride(-2), ops.x.stride(0), ops.w_batch, per_split,
    )  # fmt: skip
    constants = {"GROUP": p.group_size, "BITS": p.bits, "EVEN": groups % slices == 0}
    launch(groups_kernel, (tiles, splits, others), args, constants, config)
    _sum(parts, out, splits, target)


def _launch_kept(ops: Operands, out: torch.Tensor, config: Config, target: Target) -> None:
    p = ops.problem
    words, groups = ops.w.shape[-1], ops.scales.shape[-1]
    # Four groups a wavefront.
    slices = min(config["SLICES"], next_power_of_2(cdiv(groups, 4)))
    splits = cdiv(groups, 4 * slices)
    others = cdiv(p.rows, config["BLOCK_M"]) * p.batch
    tiles = cdiv(p.columns, config["BLOCK_N"])
    resident = config["fill"] * target.units
    programs = min(tiles, max(1, resident // (splits * others)))
    parts = _parts(out, splits)
    args = (
        ops.x, ops.w, ops.scales, ops.biases, parts, p.rows, p.columns, words, groups,
        ops.x.stride(-2), ops.x.stride(0), ops.w_batch,
    )  # fmt: skip
    constants = {
        "GROUP": p.group_size, "BITS": p.bits, "SLICES": slices, "EVEN": groups % (4 * slices) == 0,
    }  # fmt: skip
    launch(kept_kernel, (programs, splits, others), args, constants, config)
    _sum(parts, out, splits, target)


def _launch_tiles(ops: Operands, out: torch.Tensor, config: Config, target: Target) -> None:
    p = ops.problem
    words, groups = ops.w.shape[-1], ops.scales.shape[-1]
    block_n, block_k = config["BLOCK_N"], config["BLOCK_K"]
    tiles = cdiv(p.rows, config["BLOCK_M"]) * cdiv(p.columns, block_n)
    steps = cdiv(p.depth, block_k)
    splits = _splits(config, target, tiles * p.batch, steps)
    per_split = cdiv(steps, splits) * block_k
    splits = cdiv(p.depth, per_split)
    parts = _parts(out, splits)
    args = (
        ops.x, ops.w, ops.scales, ops.biases, parts, p.rows, p.columns, p.depth, words, groups,
        ops.x.stride(-2), ops.x.stride(0), ops.w_batch, per_split,
    )  # fmt: skip
    constants: dict[str, object] = {
        "MODE": p.mode, "GROUP": p.group_size, "BITS": p.bits, "BLOCK_N": block_n, "BLOCK_K": block_k,
        # AMD's arithmetic in bf16 is fp32 with roundings, and most of its GPUs round in software.
        "WIDE": target.vendor == "amd" and p.dtype == "bfloat16",
    }  # fmt: skip
    kernel = columns_kernel
    if p.transpose:
        kernel, constants["EVEN"], constants["WHOLE"] = tiles_kernel, p.depth % block_k == 0, p.columns % block_n == 0
        constants["WAITED"] = target.vendor == "nvidia"
    launch(kernel, (tiles, splits, p.batch), args, constants, config)
    _sum(parts, out, splits, target)


_PLANS = {
    "lanes": few.plan,
    "gemv": _gemv,
}
_LAUNCHES = {
    "lanes": _launch_lanes,
    "rows": _launch_rows,
    "gemv": _launch_gemv,
    "groups": _launch_groups,
    "kept": _launch_kept,
    "tiles": _launch_tiles,
    "columns": _launch_tiles,
}
