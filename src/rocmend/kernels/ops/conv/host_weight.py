"""Launch the weight gradient's kernels: a sum over all output pixels, split so that a GPU is full."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, arithmetic, executor
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.conv import Problem, kind, shape_class, weight_class
from rocmend.kernels.ops.conv.geometry import Geometry, collapsed
from rocmend.kernels.ops.conv.host import (
    add_parts,
    channels_contiguous,
    is_wide,
    numbers_of,
    pixel_step,
    problem_of,
    reciprocals,
    steps_of,
)
from rocmend.kernels.ops.conv.kernels.depthwise_weight import depthwise_weight_kernel
from rocmend.kernels.ops.conv.kernels.weight import weight_kernel
from rocmend.kernels.ops.conv.kernels.weight_packed import weight_packed_kernel
from rocmend.kernels.ops.conv.kernels.weight_tiled import weight_tiled_kernel
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

MOST_TAPS = 4
"""Taps along a row that a program of a depthwise gradient takes."""


def weight_gradient(x: torch.Tensor, dy: torch.Tensor, geometry: Geometry) -> torch.Tensor:
    """Return the weight's gradient ``[O, D, H, W, C / groups]`` of ``x`` and the output's gradient."""
    shape = (geometry.c_out, *(axis.taps for axis in geometry.axes), geometry.c_in // geometry.groups)
    if geometry.pixels_out == 0 or geometry.pixels_in == 0 or 0 in shape:
        return torch.zeros(shape, dtype=x.dtype, device=x.device)
    x, dy = channels_contiguous(x), channels_contiguous(dy)
    problem = problem_of("weight", x.dtype, geometry)
    which = kind(problem)
    if which == "depthwise":
        return _depthwise(x, dy, geometry, problem, shape)
    if which == "tiled" and all(axis.input_dilation == 1 for axis in geometry.axes):
        return _tiled(x, dy, geometry, problem, shape)
    return _any(x, dy, geometry, problem, shape)


def _parts_of(programs: int, pixels: int, block: int, config: Config, target: Target) -> tuple[int, int]:
    """Return in how many parts the pixels are summed, and a part's pixels: as many programs as run at once."""
    least = config.get("least_blocks", 4)
    wanted = (target.compute_units or 64) * config.get("programs_per_unit", 2) // max(programs, 1)
    splits = max(1, min(wanted, pixels // (block * least), 512))
    per_split = triton.cdiv(triton.cdiv(pixels, splits), block) * block
    return triton.cdiv(pixels, per_split), per_split


def _paired(x: torch.Tensor) -> bool:
    """Return whether a tensor of 16-bit elements can be seen as one of pairs along its last axis."""
    return x.element_size() == 2 and x.storage_offset() % 2 == 0 and all(step % 2 == 0 for step in x.stride()[:-1])


def _tiled(
    x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, problem: Problem, shape: tuple[int, ...]
) -> torch.Tensor:
    """Sum a tile of output and input channels at one tap over pixels."""
    axes, groups, dtype = geometry.axes, geometry.groups, x.dtype
    channels, outputs = geometry.c_in // groups, geometry.c_out // groups
    target = executor.target_for(x.device)
    config = config_for("conv", "weight_tiled", weight_class(problem), target)
    if collapsed(tuple(dy.shape[:4]), dy.stride()[:4]) is None:
        dy = dy.contiguous()
    packed = "AHEAD" in config.constants
    if packed:
        if channels % 2 or outputs % 2 or not (_paired(x) and _paired(dy)):
            return _any(x, dy, geometry, problem, shape)
        x, dy = x.view(torch.int32), dy.view(torch.int32)
    pixel, across = pixel_step(x, geometry), collapsed(tuple(dy.shape[:4]), dy.stride()[:4])
    block_m, block_n, block_k = config["BLOCK_M"], config["BLOCK_N"], config["BLOCK_K"]
    # Without loads of 16 bytes three taps' addresses do not fit in registers.
    three = not packed and axes[2].taps == config.get("row_taps", 1) == 3 and channels % 8 == outputs % 8 == 0
    tiles = triton.cdiv(outputs, block_m) * triton.cdiv(channels, block_n) * (geometry.taps // (3 if three else 1))
    splits, per_split = _parts_of(tiles * groups, geometry.pixels_out, block_k, config, target)
    out = allocate.empty(shape, dtype=dtype, device=x.device)
    part = out if splits == 1 else allocate.empty((splits, out.numel()), dtype=torch.float32, device=x.device)
    args = (
        x, dy, part, channels, outputs, geometry.pixels_out, per_split,
        *(axis.size for axis in axes), *(axis.out for axis in axes),
        *reciprocals(geometry),
        *(axis.taps for axis in axes), *(axis.stride for axis in axes), *(axis.padding for axis in axes),
        *(axis.dilation for axis in axes), *steps_of(x, pixel)[:4], across,
    )  # fmt: skip
    constants = {
        "FLIP": geometry.flip,
        "PLAIN": pixel is not None,
        "DEEP": axes[0].out > 1 or axes[0].taps > 1 or axes[0].size > 1,
        "EVEN": outputs % block_m == 0 and channels % block_n == 0,
        "WIDE": is_wide(x, dy),
    }
    if packed:
        kernel, constants["BF16"] = weight_packed_kernel, dtype == torch.bfloat16
    else:
        kernel, constants["THREE"], constants["EVEN_K"] = weight_tiled_kernel, three, geometry.pixels_out % block_k == 0
    launch(kernel, (tiles, splits, groups), args, constants, config)
    if splits > 1:
        add_parts(part, None, out, splits)
    return out


def _any(
    x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, problem: Problem, shape: tuple[int, ...]
) -> torch.Tensor:
    """Sum a tile of output channels by taps and input channels, whatever the steps, over pixels."""
    channels, outputs = geometry.c_in // geometry.groups, geometry.c_out // geometry.groups
    target = executor.target_for(x.device)
    config = config_for("conv", "weight", shape_class(problem), target)
    tiles = triton.cdiv(outputs, config["BLOCK_M"]) * triton.cdiv(geometry.taps * channels, config["BLOCK_N"])
    splits, per_split = _parts_of(tiles * geometry.groups, geometry.pixels_out, config["BLOCK_K"], config, target)
    out = allocate.empty(shape, dtype=x.dtype, device=x.device)
    part = out if splits == 1 else allocate.empty((splits, out.numel()), dtype=torch.float32, device=x.device)
    numbers = (*numbers_of(geometry), *x.stride(), *dy.stride())
    args = (x, dy, part, geometry.batch, channels, outputs, geometry.groups, per_split, *numbers)
    constants = {
        "FLIP": geometry.flip,
        "PHASED": any(axis.input_dilation > 1 for axis in geometry.axes),
        "WIDE": is_wide(x, dy),
    }
    launch(weight_kernel, (tiles, splits, geometry.groups), args, constants, config)
    if splits > 1:
        add_parts(part, None, out, splits)
    return out


def _depthwise(
    x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, problem: Problem, shape: tuple[int, ...]
) -> torch.Tensor:
    """Sum a row of taps of a block of channels over pixels."""
    target = executor.target_for(x.device)
    config = config_for("conv", "depthwise_weight", shape_class(problem), target)
    outputs, along = geometry.c_out, geometry.axes[2].taps
    taps = min(arithmetic.next_power_of_2(along), MOST_TAPS)
    rows = geometry.taps // along * triton.cdiv(along, taps)
    blocks = triton.cdiv(outputs, config["BLOCK_C"])
    splits, per_split = _parts_of(blocks * rows, geometry.pixels_out, config["BLOCK_P"], config, target)
    out = allocate.empty(shape, dtype=x.dtype, device=x.device)
    part = out if splits == 1 else allocate.empty((splits, out.numel()), dtype=torch.float32, device=x.device)
    numbers = numbers_of(geometry)
    args = (
        x, dy, part, outputs, outputs // geometry.groups, geometry.pixels_out, per_split,
        *numbers[:6], *reciprocals(geometry), *numbers[6:], *x.stride(), *dy.stride(),
    )  # fmt: skip
    constants = {
        "FLIP": geometry.flip,
        "PHASED": any(axis.input_dilation > 1 for axis in geometry.axes),
        "WIDE": is_wide(x, dy),
        "TAPS": taps,
    }
    launch(depthwise_weight_kernel, (blocks, rows, splits), args, constants, config)
    if splits > 1:
        add_parts(part, None, out, splits)
    return out
