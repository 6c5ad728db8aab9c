"""Launch the Triton kernels."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.caches import Cache
from rocmend.kernels.common import semaphores
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.attention.attention_decode import Problem, rows_of, shape_class
from rocmend.kernels.ops.attention.attention_decode.kernel import merge_kernel, split_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

MOST_SPLITS = 256
MOST_HELD = 32
"""Elements of parts that a lane of the program which merges them holds at once."""
MOST_MERGED = 128
"""The same of the kernel that merges: with more, some are held in memory."""


class Cut(NamedTuple):
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


def cut_dim(dim: int) -> tuple[int, int]:
    """Cut a head dimension into two powers of two of at least 16, the second 0 where the first is enough."""
    first = 1 << (dim.bit_length() - 1)
    if dim <= 16 or first == dim:
        return max(first if first == dim else 16, 16), 0
    return first, next_power_of_2(dim - first, 16)


def cut_rows(rows: int, most: int, *, matrix: bool) -> tuple[int, int]:
    """Return rows of a program and the number of programs over them."""
    tile = min(next_power_of_2(rows), most)
    tile = max(tile, 16) if matrix else tile
    return tile, -(-rows // tile)


def choose_splits(
    config: Config, target: Target, programs: int, keys: int, block: int, per_unit: int | None = None
) -> int:
    """Return into how many parts the cache is cut: enough to fill the device, each of a few blocks at least.

    Args:
        config: The tuning record.
        target: Where it runs.
        programs: Programs for each part.
        keys: Of the cache.
        block: Keys of a block.
        per_unit: Programs wanted for each compute unit; the record's where None.
    """
    units = target.compute_units or int(config.get("units", target.units))
    wanted = int(config.get("programs_per_unit", 2)) if per_unit is None else per_unit
    wanted = max(wanted * units // max(programs, 1), 1)
    blocks = -(-keys // block)
    wanted = min(wanted, max(blocks // int(config.get("least_blocks", 2)), 1), MOST_SPLITS)
    return -(-blocks // -(-blocks // wanted))


_cuts: Cache[Cut] = Cache()


def plan(kernel: str, problem: Problem, target: Target, span: int) -> Cut:
    """Cut a problem for a kernel on a target; ``span`` keys can be seen."""
    key = (kernel, problem, target, span)
    return _cuts.get(key) or _cuts.keep(key, _cut(*key))


def _cut(kernel: str, problem: Problem, target: Target, span: int) -> Cut:
    matrix = kernel == "split"
    config = config_for("attention_decode", kernel, shape_class(problem), target)
    tile, row_blocks = cut_rows(rows_of(problem), int(config.get("most_rows", 16)), matrix=matrix)
    programs = problem.batch * problem.kv_heads * row_blocks
    splits = choose_splits(config, target, programs, span, int(config.constants["BLOCK_N"]))
    return Cut(config, tile, row_blocks, splits, matrix)


def mask_arguments(
    mask: torch.Tensor | str | None, shape: tuple[int, int, int, int]
) -> tuple[torch.Tensor | None, tuple[int, ...], int]:
    """Return the mask's tensor, its four strides after broadcasting, and its kind for the kernel."""
    if mask is None or isinstance(mask, str):
        return None, (0, 0, 0, 0), 0
    wide = mask.expand(shape)
    kind = 1 if mask.dtype == torch.bool else 2
    return wide.view(torch.uint8) if kind == 1 else wide, wide.stride(), kind


def _plan(
    kernel: str,
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
    """Plan a call of a kernel; see ``function.attention_decode``."""
    batch, heads, queries, dim = q.shape
    device = q.device
    kv_heads, keys, value_dim = k.shape[1], k.shape[2], v.shape[3]
    output = allocate.Output((batch, heads, queries, value_dim), q.dtype, q.device)
    if 0 in (batch, heads, queries, value_dim, keys, dim):
        group = heads // kv_heads
        return lambda _q, _k, v, *_, **__: output().zero_() if keys == 0 else _no_scores(output(), v, group)
    problem = Problem(NAMES[q.dtype], batch, heads, kv_heads, queries, keys, dim, value_dim)
    target = executor.target_for(q.device)
    span = keys if window is None else min(keys, window + queries - 1)
    cut = plan(kernel, problem, target, span)
    _, strides, kind = mask_arguments(mask, (batch, heads, queries, keys))
    parts = batch * heads * queries * cut.splits
    workspace = allocate.Output((parts * (value_dim + 2),), torch.float32, q.device)
    d0, d1 = cut_dim(dim)
    constants: dict[str, object] = {
        "KV": kv_heads, "GROUP": heads // kv_heads, "L": queries, "D": dim, "DV": value_dim, "D0": d0, "D1": d1,
        "DVB": next_power_of_2(value_dim, 16), "ROWS": cut.rows, "DOT": cut.matrix, "CAUSAL": isinstance(mask, str),
        "MASK": kind, "SOFT_CAP": soft_cap is not None, "SINKS": sinks is not None, "WINDOW": window is not None,
        "LENGTHS": lengths is not None, "SPLIT": cut.splits > 1, "EARLY": bool(cut.config.get("launch_pdl", 0)),
        **_ahead(cut.config, k, v, lengths), "LATE": bool(cut.config.get("late", 0)) and cut.matrix and d1 == 0,
        "TRIGGER_LAST": bool(cut.config.get("trigger_last", 0)),
    }  # fmt: skip
    numbers = (
        float(scale), float(soft_cap or 1.0), int(window or 0), keys, cut.splits, parts * value_dim,
        *q.stride(), *k.stride(), *v.stride(), *strides,
    )  # fmt: skip
    types = (None, None, None, torch.uint8 if kind == 1 else None, None, None, torch.float32, None, None)
    grid = (cut.splits * batch * kv_heads, cut.row_blocks)

    def planned(**more: object) -> LaunchPlan:
        return LaunchPlan(split_kernel, grid, {**constants, **more}, cut.config, numbers, types)

    shape = (batch, heads, queries, value_dim)
    early = cut.splits > 1 and early_merge("attention_decode", target)
    split = planned(PDL=early, LAST=False, LIVE=1, SPLITS=1, WIDTH=1)
    merged = None
    if cut.splits > 1:
        merged = merging("attention_decode", shape, sinks, lengths, cut.splits, target, waited=True)
    counted = batch * kv_heads * cut.row_blocks
    needed = parts * (value_dim + 2) * 4
    finish = finishing(cut, heads // kv_heads * queries, value_dim) if semaphores.fits(counted, needed) else None
    whole = planned(PDL=False, LAST=True, **finish) if finish else None

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
        if whole is not None and (shared := semaphores.workspace(device, counted, needed)) is not None:
            counters, scratch = shared
            whole((q, k, v, values, sinks, lengths, scratch, counters, out))  # type: ignore[arg-type]  # see above
            return out
        parts = workspace()
        split((q, k, v, values, sinks, lengths, parts, None, out))  # type: ignore[arg-type]  # see above
        merged((parts, sinks, lengths, out))
        return out

    return call


def _ahead(config: Config, k: torch.Tensor, v: torch.Tensor, lengths: torch.Tensor | None) -> dict[str, int]:
    """Return how many keys and values of a part are fetched before the kernel in front is done.

    It must be known where they lie, without reading anything, and they must lie side by side.
    """
    dense = all(one.stride(3) == 1 and one.stride(2) == one.shape[3] for one in (k, v))
    known = config.get("launch_pdl", 0) and lengths is None and dense
    counts = (int(config.get(name, 0)) if known else 0 for name in ("ahead", "ahead_values"))
    return dict(zip(("AHEAD", "AHEAD_VALUES"), counts, strict=True))


def _no_scores(out: torch.Tensor, v: torch.Tensor, group: int) -> torch.Tensor:
    """Queries of no dimension: every score is zero, the output a mean."""
    if out.numel():
        out.copy_(v.float().mean(2, keepdim=True).repeat_interleave(group, dim=1).expand_as(out))
    return out


def finishing(cut: Cut, rows: int, value_dim: int) -> dict[str, int] | None:
    """Return the constants with which the last program of some rows merges their parts, or None where others do it.

    One program reads all parts of its rows: only where these are few does it save more than it takes.

    Args:
        cut: How the problem is cut.
        rows: Rows of a KV head.
        value_dim: Columns.
    """
    live, splits = min(next_power_of_2(rows), cut.rows), next_power_of_2(cut.splits)
    columns = next_power_of_2(value_dim, 16)
    most = int(cut.config.get("last_elements", 0))
    if cut.splits == 1 or live * splits * columns > most:
        return None
    held = MOST_HELD * 32 * int(cut.config.get("num_warps", 4))
    return {"LIVE": live, "SPLITS": splits, "WIDTH": max(min(columns, held // (live * splits)), 1)}


def early_merge(op: str, target: Target) -> bool:
    """Say whether the merging kernel is launched while the parts are computed (NVIDIA's dependent launch)."""
    return bool(config_for(op, "merge", "*", target).get("launch_pdl", 0))


def merging(
    op: str,
    shape: Sequence[int],
    sinks: torch.Tensor | None,
    lengths: torch.Tensor | None,
    splits: int,
    target: Target,
    *,
    waited: bool = False,
) -> LaunchPlan:
    """Plan the launch that merges the parts, of ``(workspace, sinks, lengths, out)``; ``shape`` is that of out.

    Args:
        op: Whose records are looked up.
        shape: Of the result.
        sinks: See ``function.attention_decode``, as lengths.
        lengths: See there.
        splits: How many parts there are.
        target: Where it runs.
        waited: Whether the kernel of the parts waits for the launch in front of it before it launches the merge.
    """
    batch, heads, queries, value_dim = shape
    rows = batch * heads * queries
    config = config_for(op, "merge", "*", target)
    most = MOST_MERGED * 32 * int(config.get("num_warps", 4)) // next_power_of_2(splits)
    block = min(next_power_of_2(value_dim, 16), int(config.constants["BLOCK_DV"]), max(most, 16))
    constants = {
        "L": queries, "DV": value_dim, "SPLITS": next_power_of_2(splits), "BLOCK_DV": block,
        "SINKS": sinks is not None, "LENGTHS": lengths is not None, "PDL": bool(config.get("launch_pdl", 0)),
        "FIRST": waited and bool(config.get("trigger_first", 0)),
    }  # fmt: skip
    numbers = (splits, rows * splits * value_dim, heads * queries)
    return LaunchPlan(merge_kernel, (rows, -(-value_dim // block)), constants, config, numbers)


split, split_vector, split_rows = (
    Planner(functools.partial(_plan, name)) for name in ("split", "split_vector", "split_rows")
)
