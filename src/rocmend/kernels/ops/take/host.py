"""Launch the Triton kernels."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes
from rocmend.kernels.common.plans import Plan
from rocmend.kernels.ops.take.kernel import along_kernel, lines_kernel
from rocmend.kernels.remembered import Planned
from rocmend.kernels.tuning import config_for

_FEW = 1 << 31  # what the kernel counts in 32 bits


@Planned
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
        launched = Plan(along_kernel, (cdiv(total, config["BLOCK"]),), constants, config, numbers, types)
    else:
        config = config_for("take", "lines", width, target)
        m = indices.numel()
        lines = outer * m
        block = min(config["tile"], next_power_of_2(inner))
        group = max(1, min(config["tile"] // block, next_power_of_2(lines)))
        grid = (cdiv(lines, group) * cdiv(inner, block),)
        numbers = (lines, m, n, inner)
        tiles = {"FEW": max(lines + group, inner + block) < _FEW, "ROWS": group, "BLOCK": block}
        launched = Plan(lines_kernel, grid, constants | tiles, config, numbers, types)

    def call(x: torch.Tensor, indices: torch.Tensor, _axis: int, *, along: bool) -> torch.Tensor:
        del along
        out = output()
        launched((x.contiguous(), indices.contiguous(), out))
        return out

    return call
