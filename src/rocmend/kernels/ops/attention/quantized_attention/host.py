"""Launch the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rocmend.kernels import allocate, backends, executor
from rocmend.kernels.common import semaphores
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.attention.attention_decode.host import (
    Cut,
    choose_splits,
    cut_rows,
    early_merge,
    finishing,
    mask_arguments,
    merging,
    power_of_two,
    uses_matrix,
)
from rocmend.kernels.ops.attention.quantized_attention import Problem, shape_class
from rocmend.kernels.ops.attention.quantized_attention.asked import Asked, Computes, Mask, Quantized
from rocmend.kernels.ops.attention.quantized_attention.kernels.blocks import quantized_kernel
from rocmend.kernels.ops.attention.quantized_attention.kernels.grouped import grouped_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for

MOST_GROUPS = 8
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


def fits_groups(problem: Problem) -> bool:
    """Return whether the kernel that goes group by group takes a problem: few groups, of four words at least."""
    widest = max(problem.head_dim, problem.value_dim)
    return problem.bits * problem.group_size >= 128 and widest <= MOST_GROUPS * problem.group_size


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
    """Plan a call; see ``function.quantized_attention``."""
    batch, heads, queries, dim = q.shape
    kv_heads, keys, value_dim = k[0].shape[1], k[0].shape[2], v[0].shape[3] * 32 // bits
    output = allocate.Output((batch, heads, queries, value_dim), q.dtype, q.device)
    if 0 in (batch, heads, queries, value_dim, keys):
        return lambda *_, **__: output().zero_()
    if not (_is_dense(k) and _is_dense(v) and q.stride(-1) == 1):

        def copying(q: torch.Tensor, k: Quantized, v: Quantized, *options: Any, **more: Any) -> torch.Tensor:
            result: torch.Tensor = run(q.contiguous(), _dense(k), _dense(v), *options, **more)
            return result

        return copying
    problem = Problem(NAMES[q.dtype], batch, heads, kv_heads, queries, keys, dim, value_dim, bits, group_size)
    asked = Asked(q, k, v, scale, mask, lengths, problem, executor.target_for(q.device), output)
    # The only query sees all keys.
    masked = mask is not None and not (isinstance(mask, str) and queries == 1)
    taken = backends.taken("quantized_attention", problem, asked.target, asked=asked, masked=masked)
    computes = _in_blocks(asked) if taken is None else _of_back_end(asked, taken)

    def call(
        q: torch.Tensor,
        k: Quantized,
        v: Quantized,
        scale: float,  # noqa: ARG001  planned, as are the width of codes and groups
        mask: Mask = None,
        group_size: int = 64,  # noqa: ARG001
        bits: int = 8,  # noqa: ARG001
        lengths: torch.Tensor | None = None,
    ) -> torch.Tensor:
        return computes(q, k, v, mask, lengths)

    return call


def _of_back_end(asked: Asked, taken: backends.Taken) -> Computes:
    """Plan a kernel of a back end; the portable ones where tensors lie at odd addresses."""
    # What computes calls outlives this one, and must not keep its tensors.
    _, _, _, scale, _, _, problem, target, output = asked
    splits, split = taken.plan(asked, early_merge=early_merge("quantized_attention", target))
    merged = _merging(asked, splits)
    workspace = _workspace(asked, splits)
    others: list[Computes] = []

    def computes(q: torch.Tensor, k: Quantized, v: Quantized, mask: Mask, lengths: torch.Tensor | None) -> torch.Tensor:
        if not backends.aligned(q, *k, *v):
            if not others:
                others.append(_in_blocks(Asked(q, k, v, scale, mask, lengths, problem, target, output)))
            return others[0](q, k, v, mask, lengths)
        out = output()
        if merged is None:
            split((q, *k, *v, lengths, None, out))
            return out
        some = workspace()
        split((q, *k, *v, lengths, some, out))
        merged((some, None, lengths, out))
        return out

    return computes


def _merging(asked: Asked, splits: int) -> LaunchPlan | None:
    """Plan the launch that merges the parts, where there are several."""
    if splits == 1:
        return None
    return merging("quantized_attention", asked.shape, None, asked.lengths, splits, asked.target)


def _workspace(asked: Asked, splits: int) -> allocate.Output:
    """Return a function that allocates memory for the sums of all parts, and their maxima and weights."""
    numbers = asked.parts(splits) * (asked.problem.value_dim + 2)
    return allocate.Output((numbers,), torch.float32, asked.q.device)


def _in_blocks(asked: Asked) -> Computes:
    """Plan the portable kernels."""
    q, k, v, scale, mask, lengths, problem, target, output = asked
    batch, heads, kv_heads, queries, keys, dim, value_dim, bits, group_size = problem[1:]
    cut, grouped = _cut(problem, target)
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
            groups = {"DG": power_of_two(dim // group_size), "DVG": power_of_two(value_dim // group_size)}
            more = {**constants, **groups, "DOT": cut.matrix}
            return LaunchPlan(quantized_kernel, grid, more, cut.config, (float(scale), *numbers), types)
        more = {**constants, "LAST": last is not None, **(last or {"LIVE": 1, "SPLITS": 1, "WIDTH": 1})}
        more["PDL"] = last is None and splits > 1 and early_merge("quantized_attention", target)
        ones = 0x3C003C00 if q_dtype == torch.float16 else 0x3F803F80
        return LaunchPlan(grouped_kernel, grid, more, cut.config, (float(scale), ones, *numbers), types)

    q_dtype, device = q.dtype, q.device
    split = planned(None)
    merged = _merging(asked, splits)
    counted, needed = batch * kv_heads * cut.row_blocks, parts * (value_dim + 2) * 4
    possible = grouped and semaphores.fits(counted, needed)
    finish = finishing(cut, heads // kv_heads * queries, value_dim) if possible else None
    whole = planned(finish) if finish else None
    workspace = _workspace(asked, splits)

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


def _cut(problem: Problem, target: Target) -> tuple[Cut, bool]:
    """Return how a problem is cut, and whether the kernel goes group by group."""
    rows = problem.heads // problem.kv_heads * problem.queries
    matrix = uses_matrix(target, problem.dtype, rows)
    few = config_for("quantized_attention", "grouped", shape_class(problem), target)
    grouped = matrix and problem.dtype != "float32" and fits_groups(problem) and rows <= int(few["most_rows"])
    if grouped:
        config, tile, row_blocks = few, max(power_of_two(rows), LEAST_ROWS), 1
    else:
        kernel = "split" if matrix else "split_vector"
        config = config_for("quantized_attention", kernel, shape_class(problem), target)
        matrix = matrix and bool(config.get("matrix", 1))
        tile, row_blocks = cut_rows(rows, int(config.get("most_rows", 16)), matrix=matrix)
    programs = problem.batch * problem.kv_heads * row_blocks
    per_unit = config.get("programs_per_unit", 2)
    if problem.bits == 8:  # they take more registers
        per_unit = config.get("programs_per_unit_8bit", per_unit)
    splits = choose_splits(config, target, programs, problem.keys, int(config.constants["BLOCK_N"]), per_unit)
    return Cut(config, tile, row_blocks, splits, matrix), grouped
