"""Launch the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import plans
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.attention_decode import Problem, shape_class
from rocmend.kernels.ops.attention_decode.kernel import merge_kernel, split_kernel
from rocmend.kernels.remembered import Planned, Remembered
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

MOST_SPLITS = 256
# Compute units to plan for where only the target is known.
UNITS = 64


class Plan(NamedTuple):
    """How a problem is cut.

    Args:
        config: The tuning record of the split kernel.
        rows: Rows (query heads of a KV head times queries) of a program.
        row_blocks: Programs over the rows.
        splits: Parts of the cache.
        matrix: Whether scores go through matrix instructions.
    """

    config: Config
    rows: int
    row_blocks: int
    splits: int
    matrix: bool


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is not less."""
    return 1 << max(number - 1, 0).bit_length()


def cut_dim(dim: int) -> tuple[int, int]:
    """Cut a head dimension into two powers of two of at least 16, the second 0 where one is enough."""
    first = 1 << (dim.bit_length() - 1)
    if dim <= 16 or first == dim:
        return max(first if first == dim else 16, 16), 0
    return first, max(power_of_two(dim - first), 16)


def cut_rows(rows: int, most: int, *, matrix: bool) -> tuple[int, int]:
    """Return rows of a program and the number of programs over them."""
    tile = min(power_of_two(rows), most)
    tile = max(tile, 16) if matrix else tile
    return tile, -(-rows // tile)


def choose_splits(config: Config, target: Target, programs: int, keys: int, block: int) -> int:
    """Return into how many parts the cache is cut: enough to fill the device, each of a few blocks at least."""
    units = target.compute_units or int(config.get("units", UNITS))
    wanted = max(int(config.get("programs_per_unit", 2)) * units // max(programs, 1), 1)
    blocks = -(-keys // block)
    wanted = min(wanted, max(blocks // int(config.get("least_blocks", 2)), 1), MOST_SPLITS)
    return -(-blocks // -(-blocks // wanted))


def uses_matrix(target: Target, dtype: str, rows: int) -> bool:
    """Say whether padding the rows to 16 for matrix instructions is worth it."""
    if rows > 4:
        return True
    if dtype == "float32":
        return False
    return {"float16": "fp16", "bfloat16": "bf16"}[dtype] in target.matrix_dtypes


_cuts: Remembered[Plan] = Remembered()


def plan(problem: Problem, target: Target, span: int) -> Plan:
    """Cut a problem for a target; ``span`` keys can be seen."""
    key = (problem, target, span)
    return _cuts.get(key) or _cuts.keep(key, _cut(problem, target, span))


def _cut(problem: Problem, target: Target, span: int) -> Plan:
    rows = problem.heads // problem.kv_heads * problem.queries
    matrix = uses_matrix(target, problem.dtype, rows)
    config = config_for("attention_decode", "split" if matrix else "split_vector", shape_class(problem), target)
    matrix = matrix and bool(config.get("matrix", 1))
    tile, row_blocks = cut_rows(rows, int(config.get("most_rows", 16)), matrix=matrix)
    programs = problem.batch * problem.kv_heads * row_blocks
    splits = choose_splits(config, target, programs, span, int(config.constants["BLOCK_N"]))
    return Plan(config, tile, row_blocks, splits, matrix)


def mask_arguments(
    mask: torch.Tensor | str | None, shape: tuple[int, int, int, int]
) -> tuple[torch.Tensor | None, tuple[int, ...], int]:
    """Return the mask's tensor, its four strides after broadcasting, and its kind for the kernel."""
    if mask is None or isinstance(mask, str):
        return None, (0, 0, 0, 0), 0
    wide = mask.expand(shape)
    kind = 1 if mask.dtype == torch.bool else 2
    return wide.view(torch.uint8) if kind == 1 else wide, wide.stride(), kind


@Planned
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float,
    mask: torch.Tensor | str | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    window: int | None = None,
    lengths: torch.Tensor | None = None,
) -> Callable[..., torch.Tensor]:
    """Plan a call; see ``function.attention_decode``."""
    batch, heads, queries, dim = q.shape
    kv_heads, keys, value_dim = k.shape[1], k.shape[2], v.shape[3]
    output = allocate.Output((batch, heads, queries, value_dim), q.dtype, q.device)
    if 0 in (batch, heads, queries, value_dim, keys, dim):
        group = heads // kv_heads
        return lambda _q, _k, v, *_, **__: output().zero_() if keys == 0 else _no_scores(output(), v, group)
    problem = Problem(NAMES[q.dtype], batch, heads, kv_heads, queries, keys, dim, value_dim)
    target = executor.target_for(q.device)
    span = keys if window is None else min(keys, window + queries - 1)
    cut = plan(problem, target, span)
    _, strides, kind = mask_arguments(mask, (batch, heads, queries, keys))
    rows_total = batch * heads * queries
    sums = allocate.Output((rows_total, cut.splits, value_dim), torch.float32, q.device)
    tops = allocate.Output((2, rows_total, cut.splits), torch.float32, q.device)
    d0, d1 = cut_dim(dim)
    constants: dict[str, object] = {
        "KV": kv_heads, "GROUP": heads // kv_heads, "L": queries, "D": dim, "DV": value_dim, "D0": d0, "D1": d1,
        "DVB": max(power_of_two(value_dim), 16), "ROWS": cut.rows, "DOT": cut.matrix, "CAUSAL": isinstance(mask, str),
        "MASK": kind, "SOFT_CAP": soft_cap is not None, "SINKS": sinks is not None, "WINDOW": window is not None,
        "LENGTHS": lengths is not None, "SPLIT": cut.splits > 1, "PDL": cut.splits > 1 and early_merge(target),
    }  # fmt: skip
    split = plans.Plan(
        split_kernel,
        (cut.splits * batch * kv_heads, cut.row_blocks),
        constants,
        cut.config,
        (
            float(scale), float(soft_cap or 1.0), int(window or 0), keys, cut.splits, rows_total,
            *q.stride(), *k.stride(), *v.stride(), *strides,
        ),
        (None, None, None, torch.uint8 if kind == 1 else None, None, None, None, None, None),
    )  # fmt: skip
    shape = (batch, heads, queries, value_dim)
    merged = merging("attention_decode", shape, sinks, lengths, cut.splits, target) if cut.splits > 1 else None

    def call(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        scale: float,  # noqa: ARG001  planned, as are the cap and the window
        mask: torch.Tensor | str | None = None,
        sinks: torch.Tensor | None = None,
        soft_cap: float | None = None,  # noqa: ARG001
        window: int | None = None,  # noqa: ARG001
        lengths: torch.Tensor | None = None,
    ) -> torch.Tensor:
        out = output()
        values = mask if kind else None
        if merged is None:
            split((q, k, v, values, sinks, lengths, None, None, out))  # type: ignore[arg-type]  # by kind no string
            return out
        acc, ml = sums(), tops()
        split((q, k, v, values, sinks, lengths, acc, ml, out))  # type: ignore[arg-type]  # by kind no string
        merged((acc, ml, sinks, lengths, out))
        return out

    return call


def _no_scores(out: torch.Tensor, v: torch.Tensor, group: int) -> torch.Tensor:
    """Queries of no dimension: every score is zero, the output a mean."""
    if out.numel():
        out.copy_(v.float().mean(2, keepdim=True).repeat_interleave(group, dim=1).expand_as(out))
    return out


def workspaces(
    rows: int, splits: int, value_dim: int, device: torch.device
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Allocate the parts' sums, and their maxima and denominators; nothing for one part."""
    if splits == 1:
        return None, None
    acc = allocate.empty((rows, splits, value_dim), dtype=torch.float32, device=device)
    return acc, allocate.empty((2, rows, splits), dtype=torch.float32, device=device)


def early_merge(target: Target) -> bool:
    """Say whether the merging kernel is launched while the parts are computed (NVIDIA's dependent launch)."""
    return bool(config_for("attention_decode", "merge", "*", target).get("launch_pdl", 0))


def merging(
    op: str,
    shape: Sequence[int],
    sinks: torch.Tensor | None,
    lengths: torch.Tensor | None,
    splits: int,
    target: Target,
) -> plans.Plan:
    """Plan the launch that merges the parts, of ``(acc, ml, sinks, lengths, out)``; ``shape`` is that of out."""
    batch, heads, queries, value_dim = shape
    rows = batch * heads * queries
    config = config_for(op, "merge", "*", target)
    block = min(max(power_of_two(value_dim), 16), int(config.constants["BLOCK_DV"]))
    constants = {
        "L": queries, "DV": value_dim, "SPLITS": power_of_two(splits), "BLOCK_DV": block,
        "SINKS": sinks is not None, "LENGTHS": lengths is not None, "PDL": bool(config.get("launch_pdl", 0)),
    }  # fmt: skip
    return plans.Plan(merge_kernel, (rows, -(-value_dim // block)), constants, config, (splits, rows, heads * queries))


def merge(
    op: str,
    acc: torch.Tensor | None,
    ml: torch.Tensor | None,
    sinks: torch.Tensor | None,
    lengths: torch.Tensor | None,
    out: torch.Tensor,
    splits: int,
    target: Target,
) -> None:
    """Launch the kernel that merges the parts."""
    merging(op, out.shape, sinks, lengths, splits, target)((acc, ml, sinks, lengths, out))
