"""Launch the Triton kernels. Inputs are ``[N, D, H, W, C]`` of any strides, weights ``[O, D, H, W, C / groups]``."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.conv import Problem, kind, shape_class
from rocmend.kernels.ops.conv.geometry import Geometry
from rocmend.kernels.ops.conv.kernels.depthwise import depthwise_kernel
from rocmend.kernels.ops.conv.kernels.depthwise_weight import depthwise_weight_kernel
from rocmend.kernels.ops.conv.kernels.forward import forward_kernel
from rocmend.kernels.ops.conv.kernels.weight import weight_kernel
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for

WIDE_ELEMENTS = 1 << 31


def problem_of(direction: str, dtype: torch.dtype, geometry: Geometry, *, plain: bool = False) -> Problem:
    """Return the problem of a convolution."""
    return Problem(
        NAMES[dtype],
        direction,
        geometry.pixels_in,
        geometry.pixels_out,
        geometry.c_in,
        geometry.c_out,
        geometry.groups,
        geometry.taps,
        plain,
    )


def run(
    direction: str, x: torch.Tensor, other: torch.Tensor, bias: torch.Tensor | None, geometry: Geometry
) -> torch.Tensor:
    """Compute the output (``forward``: other is the weight) or the weight's gradient (``weight``: the output's)."""
    if direction == "weight":
        return _weight(x, other, geometry)
    problem = problem_of(direction, x.dtype, geometry)
    out = allocate.empty(
        (geometry.batch, *(axis.out for axis in geometry.axes), geometry.c_out), dtype=x.dtype, device=x.device
    )
    if geometry.c_in == 0 or geometry.pixels_in == 0:
        return out.zero_() if bias is None else out.copy_(bias.expand_as(out))
    x = channels_contiguous(x)
    if kind(problem) == "depthwise":
        _depthwise(x, other, bias, out, geometry, problem)
    else:
        _forward(x, other, bias, out, geometry, problem)
    return out


def channels_contiguous(x: torch.Tensor) -> torch.Tensor:
    """Return x with its channels side by side: a copy costs less than loads that are not."""
    if x.stride(-1) == 1 or x.shape[-1] == 1:
        return x
    return x.contiguous()


def _numbers(geometry: Geometry) -> tuple[int, ...]:
    axes = geometry.axes
    return (
        *(axis.size for axis in axes),
        *(axis.out for axis in axes),
        *(axis.taps for axis in axes),
        *(axis.stride for axis in axes),
        *(axis.padding for axis in axes),
        *(axis.dilation for axis in axes),
        *(axis.input_dilation for axis in axes),
    )


def _wide(*tensors: torch.Tensor) -> bool:
    return any(tensor.numel() >= WIDE_ELEMENTS or max(tensor.stride()) >= WIDE_ELEMENTS // 4 for tensor in tensors)


def _forward(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor, geometry: Geometry, problem: Problem
) -> None:
    target = executor.target_for(x.device)
    config = config_for("conv", "forward", shape_class(problem), target)
    channels, outputs = geometry.c_in // geometry.groups, geometry.c_out // geometry.groups
    axes = geometry.axes
    phases = [axis.phases for axis in axes]
    pixels = geometry.batch
    for axis, count in zip(axes, phases, strict=True):
        pixels *= -(-axis.out // count)
    grid = (
        triton.cdiv(pixels, config["BLOCK_M"]) * triton.cdiv(outputs, config["BLOCK_N"]),
        phases[0] * phases[1] * phases[2],
        geometry.groups,
    )
    launch(
        forward_kernel,
        grid,
        (
            x, w.contiguous(), bias, out, geometry.batch, channels, outputs, *_numbers(geometry), *phases,
            *(axis.tap_step for axis in axes), *x.stride(), *out.stride(),
        ),
        {
            "HAS_BIAS": bias is not None,
            "FLIP": geometry.flip,
            "PHASED": any(axis.input_dilation > 1 for axis in axes),
            "FLAT": kind(problem) == "flat",
            "EVEN": channels % config["BLOCK_K"] == 0,
            "WIDE": _wide(x, out),
        },
        config,
    )  # fmt: skip


def _depthwise(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor, geometry: Geometry, problem: Problem
) -> None:
    config = config_for("conv", "depthwise", shape_class(problem), executor.target_for(x.device))
    taps_first = w.reshape(geometry.c_out, geometry.taps).t().contiguous()
    grid = (triton.cdiv(geometry.pixels_out, config["BLOCK_P"]), triton.cdiv(geometry.c_out, config["BLOCK_C"]))
    launch(
        depthwise_kernel,
        grid,
        (
            x, taps_first, bias, out, geometry.batch, geometry.c_out, geometry.c_out // geometry.groups,
            *_numbers(geometry), *x.stride(), *out.stride(),
        ),
        {
            "HAS_BIAS": bias is not None,
            "FLIP": geometry.flip,
            "PHASED": any(axis.input_dilation > 1 for axis in geometry.axes),
            "WIDE": _wide(x, out),
        },
        config,
    )  # fmt: skip


def _splits(programs: int, pixels: int, block: int, target: Target) -> tuple[int, int]:
    """Return in how many parts the pixels are summed, and a part's pixels: enough programs for the whole GPU."""
    wanted = max(1, (target.compute_units or 64) * 2 // max(programs, 1))
    splits = max(1, min(wanted, pixels // (block * 4), 256))
    per_split = triton.cdiv(triton.cdiv(pixels, splits), block) * block
    return triton.cdiv(pixels, per_split), per_split


def _weight(x: torch.Tensor, dy: torch.Tensor, geometry: Geometry) -> torch.Tensor:
    """Return the weight gradient ``[O, D, H, W, C / groups]``."""
    channels, outputs = geometry.c_in // geometry.groups, geometry.c_out // geometry.groups
    shape = (geometry.c_out, *(axis.taps for axis in geometry.axes), channels)
    if geometry.pixels_out == 0 or geometry.pixels_in == 0 or 0 in shape:
        return torch.zeros(shape, dtype=x.dtype, device=x.device)
    x, dy = channels_contiguous(x), channels_contiguous(dy)
    problem = problem_of("weight", x.dtype, geometry)
    target = executor.target_for(x.device)
    constants = {
        "FLIP": geometry.flip,
        "PHASED": any(axis.input_dilation > 1 for axis in geometry.axes),
        "WIDE": _wide(x, dy),
    }
    numbers = (*_numbers(geometry), *x.stride(), *dy.stride())
    if kind(problem) == "depthwise":
        config = config_for("conv", "depthwise_weight", shape_class(problem), target)
        blocks = triton.cdiv(geometry.c_out, config["BLOCK_C"])
        splits, per_split = _splits(blocks * geometry.taps, geometry.pixels_out, config["BLOCK_P"], target)
        part = allocate.empty((splits, geometry.taps, geometry.c_out), dtype=torch.float32, device=x.device)
        args = (x, dy, part, geometry.batch, geometry.c_out, outputs, per_split, *numbers)
        launch(depthwise_weight_kernel, (blocks, geometry.taps, splits), args, constants, config)
        return part.sum(0).t().reshape(shape).to(x.dtype)
    config = config_for("conv", "weight", shape_class(problem), target)
    tiles = triton.cdiv(outputs, config["BLOCK_M"]) * triton.cdiv(geometry.taps * channels, config["BLOCK_N"])
    splits, per_split = _splits(tiles * geometry.groups, geometry.pixels_out, config["BLOCK_K"], target)
    part = allocate.empty((splits, *shape), dtype=torch.float32, device=x.device)
    args = (x, dy, part, geometry.batch, channels, outputs, geometry.groups, per_split, *numbers)
    launch(weight_kernel, (tiles, splits, geometry.groups), args, constants, config)
    return (part[0] if splits == 1 else part.sum(0)).to(x.dtype)
