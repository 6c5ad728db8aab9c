"""Plan and launch the Triton kernels."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from rocmend.kernels import allocate, backends, executor, select
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.formats import Format, as_int32
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul import NAME, OP, Problem, few, few_class, reference, tuning_class
from rocmend.kernels.ops.matmul.quantized_matmul import gemv as one_row
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.groups import groups_kernel
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.kept import kept_kernel
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.rows import rows_kernel
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.tiles import columns_kernel, sum_kernel, tiles_kernel
from rocmend.kernels.ops.matmul.quantized_matmul.operands import TYPES, Launches, Operands
from rocmend.kernels.plan_cache import Planner, plan_of
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

Plan = Callable[[Operands, Target], Launches | None]
"""Plans the launches of a kernel; None where rows of x do not begin at multiples of 16 bytes, as it needs them to."""


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


def kernel(plan: Plan, *, aligned: bool = False) -> Planner:
    """Make an implementation of the op from a kernel's plan.

    Args:
        plan: Plans the kernel's launches.
        aligned: Whether the kernel takes tensors at multiples of 16 bytes only; others go to another implementation.
    """

    @Planner
    def run(
        x: torch.Tensor,
        w: torch.Tensor,
        scales: torch.Tensor,
        biases: torch.Tensor | None,
        form: Format,
        problem: Problem,
    ) -> Callable[..., torch.Tensor]:
        ops = Operands(x, as_int32(w), scales, biases, problem)
        output = allocate.Output(ops.shape, x.dtype, x.device)
        if 0 in ops.shape:
            return lambda *_: output()
        if problem.depth == 0:
            return lambda *_: output().zero_()
        launches = plan(ops, executor.target_for(x.device))
        if launches is None:
            return _at_any_address(x, w, scales, biases, form, problem)
        as_given, at_any_address = ops.unchanged(x, w, scales, biases), None

        def call(
            x: torch.Tensor,
            w: torch.Tensor,
            scales: torch.Tensor,
            biases: torch.Tensor | None,
            form: Format,
            problem: Problem,
        ) -> torch.Tensor:
            nonlocal at_any_address
            if as_given:
                tensors = x, w, scales, biases
            else:
                ops = Operands(x, as_int32(w), scales, biases, problem)
                tensors = ops.x, ops.w, ops.scales, ops.biases
            if aligned and not backends.aligned(*tensors):
                at_any_address = at_any_address or _at_any_address(x, w, scales, biases, form, problem)
                return at_any_address(x, w, scales, biases, form, problem)
            out = output()
            launches(*tensors, out)
            return out

        return call

    return run


def _at_any_address(
    x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, form: Format, problem: Problem
) -> Callable[..., torch.Tensor]:
    """Plan what computes calls whose tensors do not begin at multiples of 16 bytes."""
    run = select.implementation(OP, x.device, problem, aligned=False)
    return plan_of(run, x, as_int32(w), scales, biases, form, problem)


def _splits(config: Config, target: Target, programs: int, steps: int, least: int = 4) -> int:
    """Return into how many parts of at least so many steps K is cut, so that few tiles give every compute unit work."""
    wanted = config.get("split_k", 0)
    if wanted:
        return min(wanted, steps)
    fill = config.get("fill", 2) * target.units
    if programs * 2 > fill:
        return 1
    return max(1, min(fill // programs, steps // least, 32))


def added(ops: Operands, main: LaunchPlan, splits: int, target: Target) -> Launches:
    """Plan the launches of a kernel that computes parts of K, and of the kernel that adds them up."""
    if splits == 1:
        return lambda x, w, scales, biases, out: main((x, w, scales, biases, out))
    config, size = config_for(NAME, "sum", "*", target), math.prod(ops.shape)
    parts_of = allocate.Output((splits, *ops.shape), torch.float32, ops.x.device)
    total = LaunchPlan(sum_kernel, (cdiv(size, config["BLOCK"]),), {"SPLITS": splits}, config, (size,))

    def launches(
        x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        parts = parts_of()
        main((x, w, scales, biases, parts))
        total((parts, out))

    return launches


def _lanes(ops: Operands, target: Target) -> Launches:
    return few.plan(ops, config_for(NAME, "lanes", few_class(ops.problem), target), target)


def _gemv(ops: Operands, target: Target) -> Launches:
    p = ops.problem
    planned = one_row.plan(
        [p.columns], p.depth, p.group_size, p.bits, p.dtype, target,
        batch=p.batch, x_stride=ops.x.stride(0), w_batch=ops.w_batch,
    )  # fmt: skip
    return lambda x, w, scales, biases, out: planned(one_row.operands(x, [(w, scales, biases)], [out]))


def _rows(ops: Operands, target: Target) -> Launches:
    p, config = ops.problem, config_for(NAME, "rows", tuning_class(ops.problem), target)
    words, groups = ops.w.shape[-1], ops.scales.shape[-1]
    units = words if 32 % p.bits == 0 else words // p.bits
    block_n, block_u = config["BLOCK_N"], config["BLOCK_U"]
    others = p.batch * p.rows
    # Fewer rows of weights for each program where there would not be enough programs.
    while block_n > 1 and cdiv(p.columns, block_n) * others < config.get("fill", 2) * target.units:
        block_n //= 2
    tiles = cdiv(p.columns, block_n)
    steps = cdiv(units, block_u)
    per_split = cdiv(steps, _splits(config, target, tiles * others, steps, least=1)) * block_u
    splits = cdiv(units, per_split)
    numbers = (p.rows, p.columns, units, words, groups, ops.x.stride(-2), ops.x.stride(0), ops.w_batch, per_split)
    constants = {
        "MODE": p.mode, "GROUP": p.group_size, "BITS": p.bits, "EVEN": units % block_u == 0, "BLOCK_N": block_n,
    }  # fmt: skip
    main = LaunchPlan(rows_kernel, (tiles, splits, others), constants, config, numbers, TYPES)
    return added(ops, main, splits, target)


def _groups(ops: Operands, target: Target) -> Launches:
    p, config = ops.problem, config_for(NAME, "groups", tuning_class(ops.problem), target)
    words, groups = ops.w.shape[-1], ops.scales.shape[-1]
    tiles = cdiv(p.columns, config["BLOCK_N"])
    others = cdiv(p.rows, config["BLOCK_M"]) * p.batch
    slices = config["SLICES"]
    steps = cdiv(groups, slices)
    per_split = cdiv(steps, _splits(config, target, tiles * others, steps)) * slices
    splits = cdiv(groups, per_split)
    numbers = (p.rows, p.columns, words, groups, ops.x.stride(-2), ops.x.stride(0), ops.w_batch, per_split)
    constants = {"GROUP": p.group_size, "BITS": p.bits, "EVEN": groups % slices == 0}
    main = LaunchPlan(groups_kernel, (tiles, splits, others), constants, config, numbers, TYPES)
    return added(ops, main, splits, target)


def _kept(ops: Operands, target: Target) -> Launches:
    p, config = ops.problem, config_for(NAME, "kept", tuning_class(ops.problem), target)
    words, groups = ops.w.shape[-1], ops.scales.shape[-1]
    # Four groups a wavefront.
    slices = min(config["SLICES"], next_power_of_2(cdiv(groups, 4)))
    splits = cdiv(groups, 4 * slices)
    others = cdiv(p.rows, config["BLOCK_M"]) * p.batch
    resident = config["fill"] * target.units
    programs = min(cdiv(p.columns, config["BLOCK_N"]), max(1, resident // (splits * others)))
    numbers = (p.rows, p.columns, words, groups, ops.x.stride(-2), ops.x.stride(0), ops.w_batch)
    constants = {
        "GROUP": p.group_size, "BITS": p.bits, "SLICES": slices, "EVEN": groups % (4 * slices) == 0,
    }  # fmt: skip
    main = LaunchPlan(kept_kernel, (programs, splits, others), constants, config, numbers, TYPES)
    return added(ops, main, splits, target)


def _tiles(ops: Operands, target: Target) -> Launches:
    p = ops.problem
    config = config_for(NAME, "tiles" if p.transpose else "columns", tuning_class(p), target)
    words, groups = ops.w.shape[-1], ops.scales.shape[-1]
    block_n, block_k = config["BLOCK_N"], config["BLOCK_K"]
    tiles = cdiv(p.rows, config["BLOCK_M"]) * cdiv(p.columns, block_n)
    steps = cdiv(p.depth, block_k)
    per_split = cdiv(steps, _splits(config, target, tiles * p.batch, steps)) * block_k
    splits = cdiv(p.depth, per_split)
    numbers = (p.rows, p.columns, p.depth, words, groups, ops.x.stride(-2), ops.x.stride(0), ops.w_batch, per_split)
    constants: dict[str, object] = {
        "MODE": p.mode, "GROUP": p.group_size, "BITS": p.bits, "BLOCK_N": block_n, "BLOCK_K": block_k,
        # AMD's arithmetic in bf16 is fp32 with roundings, and most of its GPUs round in software.
        "WIDE": target.vendor == "amd" and p.dtype == "bfloat16",
    }  # fmt: skip
    function = columns_kernel
    if p.transpose:
        function, constants["EVEN"], constants["WHOLE"] = tiles_kernel, p.depth % block_k == 0, p.columns % block_n == 0
        constants["WAITED"] = target.vendor == "nvidia"
    main = LaunchPlan(function, (tiles, splits, p.batch), constants, config, numbers, TYPES)
    return added(ops, main, splits, target)


lanes, gemv, rows, groups, kept, tiles, columns = map(kernel, (_lanes, _gemv, _rows, _groups, _kept, _tiles, _tiles))
