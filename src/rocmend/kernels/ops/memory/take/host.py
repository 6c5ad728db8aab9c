"""Launch the Triton kernels."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.memory.take.kernel import along_kernel, grid_kernel, lines_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import Config, config_for

_FEW = 1 << 31  # what the kernel counts in 32 bits
_GRID = 65535  # programs along the second and third axis of a grid, on any vendor's GPUs


@Planner
def run(x: torch.Tensor, indices: torch.Tensor, axis: int, *, along: bool) -> Callable[..., torch.Tensor]:
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

    def call(x: torch.Tensor, indices: torch.Tensor, _axis: int, *, along: bool) -> torch.Tensor:
        del along
        out = output()
        plan((x.contiguous(), indices.contiguous(), out))
        return out

    return call


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
