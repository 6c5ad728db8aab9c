"""The Triton kernels: lines that indices name, and single elements along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import Config, config_for

_FEW = 1 << 31  # what the kernel counts in 32 bits
_GRID = 65535  # programs along the second and third axis of a grid, on any vendor's GPUs


@triton.jit
def place_of(index, n, UNSIGNED: tl.constexpr):
    """Return int64 places: negative indices count from the end."""
    place = index.to(tl.int64)
    if UNSIGNED:
        return place & 0xFFFFFFFF
    return tl.where(place < 0, place + n, place)


@triton.jit
def lines_kernel(
    x_ptr, index_ptr, out_ptr, lines, m, n, inner,
    UNSIGNED: tl.constexpr, FEW: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy lines of ``inner`` elements: ``out[outer, m, inner]`` of ``x[outer, n, inner]``; places are kept inside.

    Lines and columns are counted in 32 bits where they are few: divisions of 64 bits are slow.
    """
    pieces = tl.cdiv(inner, BLOCK)
    program = tl.program_id(0)
    if not FEW:
        program = program.to(tl.int64)
    line = (program // pieces) * ROWS + tl.arange(0, ROWS)
    column = (program % pieces) * BLOCK + tl.arange(0, BLOCK)
    inside = (line < lines)[:, None] & (column < inner)[None, :]
    place = place_of(tl.load(index_ptr + line % m, mask=line < lines, other=0), n, UNSIGNED)
    place = tl.minimum(tl.maximum(place, 0), n - 1)
    source = ((line // m).to(tl.int64) * n + place) * inner
    x = tl.load(x_ptr + source[:, None] + column[None, :], mask=inside, other=0)
    tl.store(out_ptr + (line.to(tl.int64) * inner)[:, None] + column[None, :], x, mask=inside)


@triton.jit
def grid_kernel(
    x_ptr, index_ptr, out_ptr, m, n, inner,
    UNSIGNED: tl.constexpr, PIECES: tl.constexpr, FULL: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy lines as ``lines_kernel`` does, by programs in a grid of the axes' sizes: nothing is divided.

    Programs are (pieces of a line, m, outer) with PIECES, else (blocks of m, outer). FULL: all tiles are whole.
    """
    if PIECES:
        line = tl.program_id(1) + tl.arange(0, ROWS)
        column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        outer = tl.program_id(2).to(tl.int64)
    else:
        line = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        column = tl.arange(0, BLOCK)
        outer = tl.program_id(1).to(tl.int64)
    if FULL:
        index = tl.load(index_ptr + line)
    else:
        index = tl.load(index_ptr + line, mask=line < m, other=0)
    place = tl.minimum(tl.maximum(place_of(index, n, UNSIGNED), 0), n - 1)
    source = x_ptr + ((outer * n + place) * inner)[:, None] + column[None, :]
    target = out_ptr + ((outer * m + line) * inner)[:, None] + column[None, :]
    if FULL:
        tl.store(target, tl.load(source))
    else:
        inside = (line < m)[:, None] & (column < inner)[None, :]
        tl.store(target, tl.load(source, mask=inside, other=0), mask=inside)


@triton.jit
def along_kernel(
    x_ptr, index_ptr, out_ptr, total, m, n, inner, UNSIGNED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy single elements: ``out[o, j, i] = x[o, index[o, j, i], i]``."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    place = place_of(tl.load(index_ptr + at, mask=inside, other=0), n, UNSIGNED)
    place = tl.minimum(tl.maximum(place, 0), n - 1)
    line = at // inner
    source = ((line // m) * n + place) * inner + (at - line * inner)
    tl.store(out_ptr + at, tl.load(x_ptr + source, mask=inside, other=0), mask=inside)


@Planner
def run(x: Tensor, indices: Tensor, axis: int, *, along: bool) -> Callable[..., Tensor]:
    """Plan to take along an axis; see ``function.take`` and ``function.take_along_axis``."""
    outer, n, inner = axes.split(x.shape, axis)
    shape = indices.shape if along else x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
    output = allocate.Output(shape, x.dtype, x.device)
    total = math.prod(shape)
    if total == 0:
        return lambda *_, **__: output()
    constants: dict[str, int] = {"UNSIGNED": indices.dtype == torch.uint32}
    target = executor.target_for(x.device)
    width = str(8 * x.element_size())
    raw = axes.raw_type(x.dtype)
    types = (raw, axes.raw_type(indices.dtype), raw)
    if along:
        config = config_for("take", "along", width, target)
        numbers: tuple[int, ...] = (total, indices.shape[axis], n, inner)
        plan = LaunchPlan(along_kernel, (cdiv(total, config["BLOCK"]),), constants, config, numbers, types)
    else:
        config = config_for("take", "lines", width, target)
        plan = _lines(outer, indices.numel(), n, inner, config, constants, types)
    return plan.into(output, lambda x, indices, _axis, **_: (x.contiguous(), indices.contiguous()))


def _lines(
    outer: int, m: int, n: int, inner: int,
    config: Config, constants: dict[str, int], types: tuple[torch.dtype | None, ...],
) -> LaunchPlan:  # fmt: skip
    """Plan to take ``m`` lines of ``inner`` elements from each of ``outer`` times ``n``."""
    block = min(config["tile"], next_power_of_2(inner))
    room, pieces = config["tile"] // block, cdiv(inner, block)
    rows = 1 if pieces > 1 else max(1, min(room, next_power_of_2(m)))
    blocks = cdiv(m, rows)
    y, z = (m, outer) if pieces > 1 else (outer, 1)
    filled = 3 * m >= 2 * blocks * rows and 2 * rows >= min(room, next_power_of_2(m * outer))
    if filled and max(y, z) <= _GRID and max(m + rows, inner + block) < _FEW:
        full = inner % block == 0 and m % rows == 0
        tiles = {"PIECES": pieces > 1, "FULL": full, "ROWS": rows, "BLOCK": block}
        grid = (pieces if pieces > 1 else blocks, y, z)
        return LaunchPlan(grid_kernel, grid, constants | tiles, config, (m, n, inner), types)
    lines = outer * m
    group = max(1, min(room, next_power_of_2(lines)))
    tiles = {"FEW": max(lines + group, inner + block) < _FEW, "ROWS": group, "BLOCK": block}
    grid = (cdiv(lines, group) * pieces, 1, 1)
    return LaunchPlan(lines_kernel, grid, constants | tiles, config, (lines, m, n, inner), types)
