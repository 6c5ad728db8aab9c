"""Launch the Triton kernels."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import axes
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.copy.kernel import lines_kernel, turned_kernel
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for


class Axis(NamedTuple):
    """An axis of a copy: its size, and its strides in both tensors."""

    size: int
    source: int
    target: int


def collapse(sizes: torch.Size, source: tuple[int, ...], target: tuple[int, ...]) -> list[Axis]:
    """Return as few axes as describe a copy, the one of the smallest stride in the target last."""
    found = [Axis(*axis) for axis in zip(sizes, source, target, strict=True) if axis[0] != 1]
    found.sort(key=lambda axis: -abs(axis.target))
    merged: list[Axis] = []
    for axis in found:
        last = merged[-1] if merged else None
        if last and last.source == axis.size * axis.source and last.target == axis.size * axis.target:
            merged[-1] = Axis(last.size * axis.size, axis.source, axis.target)
        else:
            merged.append(axis)
    return merged or [Axis(1, 1, 1)]


def run(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Copy to a new contiguous tensor; see ``function.copy``."""
    out = allocate.empty(x.shape, dtype=dtype, device=x.device)
    return run_into(out, x)


def run_into(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Copy into a tensor of any strides; see ``function.copy_into``."""
    if out.numel() == 0:
        return out
    same = x.dtype == out.dtype
    source, target = (_raw(x), _raw(out)) if same else (_numbers(x), _numbers(out))
    constants = {
        "UNSIGNED": not same and not x.dtype.is_floating_point and axes.kind(x.dtype) == "unsigned",
        "TO_BOOL": not same and out.dtype == torch.bool,
    }
    sizes = source.shape if x.dim() else torch.Size((1,))
    found = collapse(sizes, source.stride() if x.dim() else (1,), target.stride() if x.dim() else (1,))
    _copy(source, target, found, constants, executor.target_for(x.device))
    return out


def _raw(x: torch.Tensor) -> torch.Tensor:
    sizes = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return x if x.dtype in sizes.values() else x.view(sizes[x.element_size()])


def _numbers(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype.is_floating_point else _raw(x)


def _copy(x: torch.Tensor, out: torch.Tensor, found: list[Axis], constants: dict[str, bool], target: Target) -> None:
    last = found[-1]
    turning = [axis for axis in found[:-1] if axis.source == 1 and axis.size > 1]
    turned = last.source not in (0, 1) and last.target == 1 and turning and turning[0].size >= 8 and last.size >= 8
    most = 4 if turned else 6
    outer = [axis for axis in found[:-1] if not turned or axis is not turning[0]]
    if len(outer) > most:
        # More axes than a kernel takes: one launch for each step of the outermost.
        first = outer[0]
        rest = [axis for axis in found if axis is not first]
        for step in range(first.size):
            _copy(
                x.as_strided((1,), (1,), x.storage_offset() + step * first.source),
                out.as_strided((1,), (1,), out.storage_offset() + step * first.target),
                rest, constants, target,
            )  # fmt: skip
        return
    outer.reverse()
    sizes = [axis.size for axis in outer] + [1] * (most - len(outer))
    source = [axis.source for axis in outer] + [0] * (most - len(outer))
    to = [axis.target for axis in outer] + [0] * (most - len(outer))
    lines = math.prod(axis.size for axis in outer)
    width = str(8 * max(x.element_size(), out.element_size()))
    more = constants | {"RANK": len(outer)}
    if turned:
        config = config_for("copy", "turned", width, target)
        m, n = turning[0].size, last.size
        tiles = triton.cdiv(m, config["BLOCK_M"]) * triton.cdiv(n, config["BLOCK_N"])
        args = (x, out, m, n, last.source, turning[0].target, *sizes[:-1], *source, *to)
        launch(turned_kernel, (tiles * lines,), args, more, config)
        return
    config = config_for("copy", "lines", width, target)
    block = min(config["tile"], triton.next_power_of_2(last.size))
    group = max(1, min(config["tile"] // block, triton.next_power_of_2(lines)))
    programs = triton.cdiv(lines, group) * triton.cdiv(last.size, block)
    args = (x, out, lines, last.size, last.source, last.target, *sizes[:-1], *source, *to)
    launch(lines_kernel, (programs,), args, more | {"ROWS": group, "BLOCK": block}, config)
