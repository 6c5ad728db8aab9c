"""Launch the Triton kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from rocmend.kernels import allocate, backends, executor, select
from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.common import semaphores
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.attention.attention_decode import rows_of, shape_class
from rocmend.kernels.ops.attention.attention_decode.host import (
    Cut,
    choose_splits,
    cut_rows,
    early_merge,
    finishing,
    mask_arguments,
    merging,
)
from rocmend.kernels.ops.attention.quantized_attention import NAME, OP, Problem
from rocmend.kernels.ops.attention.quantized_attention.asked import Asked, Computes, Mask, Quantized, problem_of
from rocmend.kernels.ops.attention.quantized_attention.kernels.blocks import quantized_kernel
from rocmend.kernels.ops.attention.quantized_attention.kernels.grouped import grouped_kernel
from rocmend.kernels.plan_cache import Planner, plan_of
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for

LEAST_ROWS = 8
"""Columns of a matrix instruction."""


def _is_dense(quantized: Quantized) -> bool:
    words, scales, biases = quantized
    return words.stride(-1) == 1 and scales.stride(-1) == 1 and scales.stride() == biases.stride()


def _dense(quantized: Quantized) -> Quantized:
    """Return words, scales and biases with dense rows, scales and biases of the same strides."""
    words, scales, biases = quantized
    words = words if words.stride(-1) == 1 else words.contiguous()
    if scales.stride(-1) != 1 or scales.stride() != biases.stride():
        scales, biases = scales.contiguous(), biases.contiguous()
    return words, scales, biases


def kernel(plan: Callable[[Asked], Computes | None], *, aligned: bool = False) -> Planner:
    """Make an implementation of the op from a kernel's plan.

    Args:
        plan: Plans calls; None where strides are not as the kernel needs them.
        aligned: Whether the kernel takes tensors at multiples of 16 bytes only; others go to another implementation.
    """

    @Planner
    def run(
        q: torch.Tensor,
        k: Quantized,
        v: Quantized,
        scale: float,
        mask: Mask = None,
        group_size: int = 64,
        bits: int = 8,
        lengths: torch.Tensor | None = None,
    ) -> Callable[..., torch.Tensor]:
        problem = problem_of(q, k, v, mask, bits, group_size)
        shape = problem.batch, problem.heads, problem.queries, problem.value_dim
        output = allocate.Output(shape, q.dtype, q.device)
        if 0 in (*shape, problem.keys):
            return lambda *_, **__: output().zero_()
        if not (_is_dense(k) and _is_dense(v) and q.stride(-1) == 1):

            def copying(q: torch.Tensor, k: Quantized, v: Quantized, *options: Any, **more: Any) -> torch.Tensor:
                result: torch.Tensor = run(q.contiguous(), _dense(k), _dense(v), *options, **more)
                return result

            return copying
        computes = plan(Asked(q, k, v, scale, mask, lengths, problem, executor.target_for(q.device), output))
        if computes is None:
            return _at_any_address(problem, q, k, v, scale, mask, group_size, bits, lengths)
        at_any_address: Callable[..., torch.Tensor] | None = None

        def call(
            q: torch.Tensor,
            k: Quantized,
            v: Quantized,
            scale: float,
            mask: Mask = None,
            group_size: int = 64,
            bits: int = 8,
            lengths: torch.Tensor | None = None,
        ) -> torch.Tensor:
            nonlocal at_any_address
            if aligned and not backends.aligned(q, *k, *v):
                options = scale, mask, group_size, bits, lengths
                at_any_address = at_any_address or _at_any_address(problem, q, k, v, *options)
                return at_any_address(q, k, v, *options)
            return computes(q, k, v, mask, lengths)

        return call

    return run


def _at_any_address(problem: Problem, q: torch.Tensor, *more: Any) -> Callable[..., torch.Tensor]:
    """Plan what computes calls whose tensors do not begin at multiples of 16 bytes."""
    return plan_of(select.implementation(OP, q.device, problem, aligned=False), q, *more)


def merging_of(asked: Asked, splits: int) -> LaunchPlan | None:
    """Plan the launch that merges the parts, where there are several."""
    if splits == 1:
        return None
    return merging(NAME, asked.shape, None, asked.lengths, splits, asked.target)


def workspace_of(asked: Asked, splits: int) -> allocate.Output:
    """Return a function that allocates memory for the sums of all parts, and their maxima and weights."""
    numbers = asked.parts(splits) * (asked.problem.value_dim + 2)
    return allocate.Output((numbers,), torch.float32, asked.q.device)


def _portable(kernel: str, asked: Asked) -> Computes:
    """Plan a portable kernel: group by group, or by blocks of keys."""
    grouped = kernel == "grouped"
    q, k, v, scale, mask, lengths, problem, target, output = asked
    batch, heads, kv_heads, queries, keys, dim, value_dim, bits, group_size, _ = problem[1:]
    cut = _cut(kernel, problem, target)
    splits = cut.splits
    _, strides, kind = mask_arguments(mask, (batch, heads, queries, keys))
    parts = asked.parts(splits)
    constants: dict[str, object] = {
        "KV": kv_heads, "GROUP": heads // kv_heads, "D": dim, "DV": value_dim, "GROUP_SIZE": group_size, "BITS": bits,
        "ROWS": cut.rows, "CAUSAL": isinstance(mask, str), "MASK": kind, "LENGTHS": lengths is not None,
        "SPLIT": splits > 1,
    }  # fmt: skip
    numbers = (
        keys, splits, parts * value_dim, queries, *q.stride()[:3], *k[0].stride()[:3], *k[1].stride()[:3],
        *v[0].stride()[:3], *v[1].stride()[:3], *strides,
    )  # fmt: skip
    types = (
        None, torch.int32, None, None, torch.int32, None, None, torch.uint8 if kind == 1 else None, None,
        torch.float32, None, None,
    )  # fmt: skip
    grid = (splits * batch * kv_heads, cut.row_blocks)

    def planned(last: dict[str, int] | None) -> LaunchPlan:
        if not grouped:
            groups = {"DG": next_power_of_2(dim // group_size), "DVG": next_power_of_2(value_dim // group_size)}
            more = {**constants, **groups, "DOT": cut.matrix}
            return LaunchPlan(quantized_kernel, grid, more, cut.config, (float(scale), *numbers), types)
        more = {**constants, "LAST": last is not None, **(last or {"LIVE": 1, "SPLITS": 1, "WIDTH": 1})}
        more["PDL"] = last is None and splits > 1 and early_merge(NAME, target)
        more["APART"] = target.vendor == "nvidia"
        ones = 0x3C003C00 if q_dtype == torch.float16 else 0x3F803F80
        return LaunchPlan(grouped_kernel, grid, more, cut.config, (float(scale), ones, *numbers), types)

    q_dtype, device = q.dtype, q.device
    split = planned(None)
    merged = merging_of(asked, splits)
    counted, needed = batch * kv_heads * cut.row_blocks, parts * (value_dim + 2) * 4
    possible = grouped and semaphores.fits(counted, needed)
    finish = finishing(cut, heads // kv_heads * queries, value_dim) if possible else None
    whole = planned(finish) if finish else None
    workspace = workspace_of(asked, splits)

    def computes(q: torch.Tensor, k: Quantized, v: Quantized, mask: Mask, lengths: torch.Tensor | None) -> torch.Tensor:
        out = output()
        seen = (q, *k, *v, mask if kind else None, lengths)
        if merged is None:
            split((*seen, None, None, out))  # type: ignore[arg-type]  # by kind no string
            return out
        if whole is not None and (shared := semaphores.workspace(device, counted, needed)) is not None:
            counters, scratch = shared
            whole((*seen, scratch, counters, out))  # type: ignore[arg-type]  # see above
            return out
        some = workspace()
        split((*seen, some, None, out))  # type: ignore[arg-type]  # see above
        merged((some, None, lengths, out))
        return out

    return computes


def _cut(kernel: str, problem: Problem, target: Target) -> Cut:
    """Cut a problem for a kernel."""
    rows = rows_of(problem)
    matrix = kernel in {"grouped", "split"}
    config = config_for(NAME, kernel, shape_class(problem), target)
    if kernel == "grouped":
        tile, row_blocks = next_power_of_2(rows, LEAST_ROWS), 1
    else:
        tile, row_blocks = cut_rows(rows, int(config.get("most_rows", 16)), matrix=matrix)
    programs = problem.batch * problem.kv_heads * row_blocks
    per_unit = config.get("programs_per_unit", 2)
    if problem.bits == 8:  # they take more registers
        per_unit = config.get("programs_per_unit_8bit", per_unit)
    splits = choose_splits(config, target, programs, problem.keys, int(config.constants["BLOCK_N"]), per_unit)
    return Cut(config, tile, row_blocks, splits, matrix)


grouped, split, split_vector, split_rows = (
    kernel(functools.partial(_portable, name)) for name in ("grouped", "split", "split_vector", "split_rows")
)
