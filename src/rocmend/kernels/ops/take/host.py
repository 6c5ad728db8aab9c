"""Launch the Triton kernels."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import axes
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.take.kernel import along_kernel, lines_kernel
from rocmend.kernels.tuning import config_for


def run(x: torch.Tensor, indices: torch.Tensor, axis: int, *, along: bool) -> torch.Tensor:
    """Take along an axis; see ``function.take`` and ``function.take_along_axis``."""
    x, indices = x.contiguous(), indices.contiguous()
    outer, n, inner = axes.split(x.shape, axis)
    shape = indices.shape if along else x.shape[:axis] + indices.shape + x.shape[axis + 1 :]
    out = allocate.empty(shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    unsigned = {"UNSIGNED": indices.dtype == torch.uint32}
    target = executor.target_for(x.device)
    width = str(8 * x.element_size())
    data, index, to = axes.raw(x), axes.raw(indices), axes.raw(out)
    if along:
        config = config_for("take", "along", width, target)
        grid = (triton.cdiv(out.numel(), config["BLOCK"]),)
        args = (data, index, to, out.numel(), indices.shape[axis], n, inner)
        launch(along_kernel, grid, args, unsigned, config)
        return out
    config = config_for("take", "lines", width, target)
    m = indices.numel()
    lines = outer * m
    block = min(config["tile"], triton.next_power_of_2(inner))
    group = max(1, min(config["tile"] // block, triton.next_power_of_2(lines)))
    grid = (triton.cdiv(lines, group) * triton.cdiv(inner, block),)
    constants = unsigned | {"ROWS": group, "BLOCK": block}
    launch(lines_kernel, grid, (data, index, to, lines, m, n, inner), constants, config)
    return out
