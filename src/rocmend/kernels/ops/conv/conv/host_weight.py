"""Launch the weight gradient's kernels: a sum over all output pixels, split so that a GPU is full."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton

from rocmend.kernels import allocate, arithmetic, executor
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.conv.conv import Problem, kind, shape_class, weight_class
from rocmend.kernels.ops.conv.conv.geometry import Geometry, collapsed
from rocmend.kernels.ops.conv.conv.host import (
    channels_contiguous,
    is_wide,
    numbers_of,
    parts_plan,
    pixel_step,
    problem_of,
    reciprocals,
    steps_of,
)
from rocmend.kernels.ops.conv.conv.kernels.depthwise_weight import depthwise_weight_kernel
from rocmend.kernels.ops.conv.conv.kernels.weight import weight_kernel
from rocmend.kernels.ops.conv.conv.kernels.weight_packed import weight_packed_kernel
from rocmend.kernels.ops.conv.conv.kernels.weight_tiled import weight_tiled_kernel
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

MOST_TAPS = 4
"""Taps along a row that a program of a depthwise gradient takes."""


class _Cut(NamedTuple):
    """A launch, but for its tensors.

    Args:
        kernel: The Triton function; it takes x, the output's gradient and the result or its parts.
        grid: Programs.
        splits: Parts that the sum is split in.
        numbers: Run-time numbers.
        constants: Compile-time constants.
        config: The tuning record.
        paired: The kernel sees pairs of 16-bit elements as int32.
    """

    kernel: Any
    grid: tuple[int, int, int]
    splits: int
    numbers: tuple[int, ...]
    constants: dict[str, Any]
    config: Config
    paired: bool = False


def plan_weight_gradient(
    x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, shape: tuple[int, ...]
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Plan calls that return the weight's gradient of x and the output's gradient.

    Args:
        x: ``[N, D, H, W, C]``; the calls may be given it with fewer axes.
        dy: The output's gradient, the like.
        geometry: Of the convolution.
        shape: Of the result, ``[O, taps..., C / groups]``.
    """
    if geometry.pixels_out == 0 or geometry.pixels_in == 0 or 0 in shape:
        return lambda x, _dy: torch.zeros(shape, dtype=x.dtype, device=x.device)
    as_x, as_dy = channels_contiguous(x), channels_contiguous(dy)
    if collapsed(tuple(as_dy.shape[:4]), as_dy.stride()[:4]) is None:
        as_dy = as_dy.contiguous()
    copied_x, copied_dy = as_x is not x, as_dy is not dy
    problem = problem_of("weight", x.dtype, geometry)
    which = kind(problem)
    tiled = which == "tiled" and all(axis.input_dilation == 1 for axis in geometry.axes)
    cut = (_depthwise if which == "depthwise" else _tiled if tiled else _any)(as_x, as_dy, geometry, problem)
    compute = _planned(cut, shape, x.dtype, x.device)
    if not (copied_x or copied_dy or cut.paired):
        return compute

    def call(x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        x, dy = x.contiguous() if copied_x else x, dy.contiguous() if copied_dy else dy
        if cut.paired:
            if int(x.storage_offset()) % 2 or int(dy.storage_offset()) % 2:
                return _planned(_any(as_x, as_dy, geometry, problem), shape, x.dtype, x.device)(x, dy)
            x, dy = x.view(torch.int32), dy.view(torch.int32)
        return compute(x, dy)

    return call


def _planned(
    cut: _Cut, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return a function that launches, and adds up the parts."""
    plan = LaunchPlan(cut.kernel, cut.grid, cut.constants, cut.config, cut.numbers)
    output, size = allocate.Output(shape, dtype, device), math.prod(shape)

    def whole(x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        out = output()
        plan((x, dy, out))
        return out

    if cut.splits == 1:
        return whole
    parts, added = allocate.Output((cut.splits, size), torch.float32, device), parts_plan(cut.splits, shape, device)

    def in_parts(x: torch.Tensor, dy: torch.Tensor) -> torch.Tensor:
        out, some = output(), parts()
        plan((x, dy, some))
        added((some, None, out))
        return out

    return in_parts


def _parts_of(programs: int, pixels: int, block: int, config: Config, target: Target) -> tuple[int, int]:
    """Return in how many parts the pixels are summed, and a part's pixels: as many programs as run at once."""
    least = config.get("least_blocks", 4)
    wanted = target.units * config.get("programs_per_unit", 2) // max(programs, 1)
    splits = max(1, min(wanted, pixels // (block * least), 512))
    per_split = triton.cdiv(triton.cdiv(pixels, splits), block) * block
    return triton.cdiv(pixels, per_split), per_split


def _paired(x: torch.Tensor) -> bool:
    """Return whether a tensor of 16-bit elements can be seen as one of pairs along its last axis."""
    return x.element_size() == 2 and all(step % 2 == 0 for step in x.stride()[:-1])


def _tiled(x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, problem: Problem) -> _Cut:
    """A tile of output and input channels at one tap, summed over pixels."""
    axes, groups = geometry.axes, geometry.groups
    channels, outputs = geometry.c_in // groups, geometry.c_out // groups
    target = executor.target_for(x.device)
    config = config_for("conv", "weight_tiled", weight_class(problem), target)
    packed = "AHEAD" in config.constants
    if packed and (channels % 2 or outputs % 2 or not (_paired(x) and _paired(dy))):
        return _any(x, dy, geometry, problem)
    pixel, across = pixel_step(x, geometry), collapsed(tuple(dy.shape[:4]), dy.stride()[:4]) or 0
    block_m, block_n, block_k = config["BLOCK_M"], config["BLOCK_N"], config["BLOCK_K"]
    # Without loads of 16 bytes three taps' addresses do not fit in registers.
    three = not packed and axes[2].taps == config.get("row_taps", 1) == 3 and channels % 8 == outputs % 8 == 0
    tiles = triton.cdiv(outputs, block_m) * triton.cdiv(channels, block_n) * (geometry.taps // (3 if three else 1))
    splits, per_split = _parts_of(tiles * groups, geometry.pixels_out, block_k, config, target)
    width = 2 if packed else 1
    numbers = (
        channels, outputs, geometry.pixels_out, per_split,
        *(axis.size for axis in axes), *(axis.out for axis in axes),
        *reciprocals(geometry),
        *(axis.taps for axis in axes), *(axis.stride for axis in axes), *(axis.padding for axis in axes),
        *(axis.dilation for axis in axes), *(step // width for step in (*steps_of(x, pixel)[:4], across)),
    )  # fmt: skip
    constants = {
        "FLIP": geometry.flip,
        "PLAIN": pixel is not None,
        "DEEP": axes[0].out > 1 or axes[0].taps > 1 or axes[0].size > 1,
        "EVEN": outputs % block_m == 0 and channels % block_n == 0,
        "WIDE": is_wide(x, dy),
    }
    if packed:
        kernel, constants["BF16"] = weight_packed_kernel, x.dtype == torch.bfloat16
    else:
        kernel, constants["THREE"], constants["EVEN_K"] = weight_tiled_kernel, three, geometry.pixels_out % block_k == 0
    return _Cut(kernel, (tiles, splits, groups), splits, numbers, constants, config, packed)


def _any(x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, problem: Problem) -> _Cut:
    """A tile of output channels by taps and input channels, whatever the steps, summed over pixels."""
    channels, outputs, groups = geometry.c_in // geometry.groups, geometry.c_out // geometry.groups, geometry.groups
    target = executor.target_for(x.device)
    config = config_for("conv", "weight", shape_class(problem), target)
    tiles = triton.cdiv(outputs, config["BLOCK_M"]) * triton.cdiv(geometry.taps * channels, config["BLOCK_N"])
    splits, per_split = _parts_of(tiles * groups, geometry.pixels_out, config["BLOCK_K"], config, target)
    steps = (*x.stride(), *dy.stride())
    numbers = (geometry.batch, channels, outputs, groups, per_split, *numbers_of(geometry), *steps)
    constants = {
        "FLIP": geometry.flip,
        "PHASED": any(axis.input_dilation > 1 for axis in geometry.axes),
        "WIDE": is_wide(x, dy),
    }
    return _Cut(weight_kernel, (tiles, splits, groups), splits, numbers, constants, config)


def _depthwise(x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, problem: Problem) -> _Cut:
    """A row of taps of a block of channels, summed over pixels."""
    target = executor.target_for(x.device)
    config = config_for("conv", "depthwise_weight", shape_class(problem), target)
    outputs, along = geometry.c_out, geometry.axes[2].taps
    taps = min(arithmetic.next_power_of_2(along), MOST_TAPS)
    rows = geometry.taps // along * triton.cdiv(along, taps)
    blocks = triton.cdiv(outputs, config["BLOCK_C"])
    # Channels loaded one by one: a wavefront has pixels to itself, and their addresses must fit its scalar registers.
    together = outputs == geometry.groups and outputs % (16 // x.element_size()) == 0
    block_p = config["BLOCK_P"] if together else min(config["BLOCK_P"], max(4, target.wave_size // 8))
    splits, per_split = _parts_of(blocks * rows, geometry.pixels_out, block_p, config, target)
    own = numbers_of(geometry)
    numbers = (
        outputs, outputs // geometry.groups, geometry.pixels_out, per_split,
        *own[:6], *reciprocals(geometry), *own[6:], *x.stride(), *dy.stride(),
    )  # fmt: skip
    constants = {
        "FLIP": geometry.flip,
        "PHASED": any(axis.input_dilation > 1 for axis in geometry.axes),
        "WIDE": is_wide(x, dy),
        "TAPS": taps,
        "BLOCK_P": block_p,
    }
    return _Cut(depthwise_weight_kernel, (blocks, rows, splits), splits, numbers, constants, config)
