"""Launch the Triton kernels. Inputs are ``[N, D, H, W, C]`` of any strides, weights ``[O, D, H, W, C / groups]``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common.column_sum import column_sum_kernel
from rocmend.kernels.common.plans import Plan
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.conv import Problem, kind, shape_class
from rocmend.kernels.ops.conv.geometry import Geometry
from rocmend.kernels.ops.conv.kernels.depthwise import depthwise_kernel
from rocmend.kernels.ops.conv.kernels.depthwise_weight import depthwise_weight_kernel
from rocmend.kernels.ops.conv.kernels.forward import forward_kernel
from rocmend.kernels.ops.conv.kernels.weight import weight_kernel
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

WIDE_ELEMENTS = 1 << 31


@functools.lru_cache(maxsize=4096)
def problem_of(direction: str, dtype: torch.dtype, geometry: Geometry) -> Problem:
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
        plain=False,
    )


def run(
    direction: str, x: torch.Tensor, other: torch.Tensor, bias: torch.Tensor | None, geometry: Geometry
) -> torch.Tensor:
    """Compute the output (``forward``: other is the weight) or the weight's gradient (``weight``: the output's)."""
    if direction == "weight":
        return _weight(x, other, geometry)
    problem = problem_of(direction, x.dtype, geometry)
    out = allocate.empty(geometry.output_shape, dtype=x.dtype, device=x.device)
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


class _Plan(NamedTuple):
    """A launch of the forward kernel, but for its tensors.

    Args:
        grid: Programs.
        numbers: Run-time numbers up to the strides.
        constants: Compile-time constants; the bias is left out where the sum is split.
        config: The tuning record.
        splits: Parts that the sum is split in.
    """

    grid: tuple[int, int, int]
    numbers: tuple[int, ...]
    constants: dict[str, bool]
    config: Config
    splits: int


@functools.lru_cache(maxsize=4096)
def _plan(geometry: Geometry, problem: Problem, target: Target, config: Config, *, wide: bool, bias: bool) -> _Plan:
    channels, outputs = geometry.c_in // geometry.groups, geometry.c_out // geometry.groups
    axes = geometry.axes
    phases = [axis.phases for axis in axes]
    pixels = geometry.batch
    for axis, count in zip(axes, phases, strict=True):
        pixels *= -(-axis.out // count)
    flat = kind(problem) == "flat"
    tiles = triton.cdiv(pixels, config["BLOCK_M"]) * triton.cdiv(outputs, config["BLOCK_N"])
    all_phases = phases[0] * phases[1] * phases[2]
    taps = [axis.taps // axis.tap_step for axis in axes]
    along = (taps[2] * channels) if flat else channels
    steps = taps[0] * taps[1] * (1 if flat else taps[2]) * triton.cdiv(along, config["BLOCK_K"])
    # Few tiles leave most of the GPU idle: split the sum, but not into crumbs.
    wanted = target.compute_units * config.get("programs_per_unit", 2) // max(tiles * all_phases * geometry.groups, 1)
    splits = max(1, min(wanted, steps // 8, 16))
    return _Plan(
        (tiles, all_phases * splits, geometry.groups),
        (
            geometry.batch, channels, outputs, splits, geometry.pixels_out * geometry.c_out,
            *_numbers(geometry), *phases, *(axis.tap_step for axis in axes),
        ),
        {
            "HAS_BIAS": bias and splits == 1,
            "FLIP": geometry.flip,
            "PHASED": any(axis.input_dilation > 1 for axis in axes),
            "FLAT": flat,
            "ONE": flat and axes[2].taps * channels <= config["BLOCK_K"],
            "BITS": geometry.taps <= 32,
            "EVEN": channels % config["BLOCK_K"] == 0,
            "WIDE": wide,
        },
        config,
        splits,
    )  # fmt: skip


def _forward(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor, geometry: Geometry, problem: Problem
) -> None:
    target = executor.target_for(x.device)
    config = config_for("conv", "forward", shape_class(problem), target)
    plan = _plan(geometry, problem, target, config, wide=_wide(x, out), bias=bias is not None)
    if plan.splits == 1:
        args = (x, w.contiguous(), bias, out, *plan.numbers, *x.stride(), *out.stride())
        launch(forward_kernel, plan.grid, args, plan.constants, config)
        return
    parts = allocate.empty((plan.splits, *out.shape), dtype=torch.float32, device=x.device)
    args = (x, w.contiguous(), None, parts, *plan.numbers, *x.stride(), *out.stride())
    launch(forward_kernel, plan.grid, args, plan.constants, config)
    total = parts.sum(0)
    out.copy_(total if bias is None else total.add_(bias))


def plan_forward(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, geometry: Geometry, shape: tuple[int, ...]
) -> Callable[..., torch.Tensor] | None:
    """Plan calls of ``(x, w, bias)`` in one launch, of tensors that are used as they are; None for others.

    Args:
        x: ``[N, D, H, W, C]``; the calls may be given it with fewer axes.
        w: ``[O, D, H, W, C / groups]``, the like.
        bias: ``[O]`` or None.
        geometry: Of the convolution.
        shape: Of the result.
    """
    problem = problem_of("forward", x.dtype, geometry)
    if geometry.c_in == 0 or geometry.pixels_in == 0 or 0 in shape or kind(problem) == "depthwise":
        return None
    if not w.is_contiguous() or not (x.stride(-1) == 1 or x.shape[-1] == 1):
        return None
    target = executor.target_for(x.device)
    config = config_for("conv", "forward", shape_class(problem), target)
    example = torch.empty(geometry.output_shape, dtype=x.dtype, device="meta")
    cut = _plan(geometry, problem, target, config, wide=_wide(x, example), bias=bias is not None)
    numbers = (*cut.numbers, *x.stride(), *example.stride())
    launched = Plan(forward_kernel, cut.grid, cut.constants, config, numbers)
    output = allocate.Output(shape, x.dtype, x.device)
    if cut.splits > 1:
        return None if bias is not None else _plan_parts(launched, output, cut.splits, math.prod(shape), x.device)

    def call(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        out = output()
        launched((x, w, bias, out))
        return out

    return call


def _plan_parts(
    launched: Plan, output: allocate.Output, splits: int, size: int, device: torch.device
) -> Callable[..., torch.Tensor]:
    """Plan a convolution whose sum is split: parts in fp32, and a launch that adds them in their order."""
    parts = allocate.Output((splits, size), torch.float32, device)
    config = config_for("conv", "parts", "*", executor.target_for(device))
    added = Plan(column_sum_kernel, (triton.cdiv(size, config["COLUMNS"]),), {}, config, (splits, size))

    def call(x: torch.Tensor, w: torch.Tensor, _bias: torch.Tensor | None) -> torch.Tensor:
        out, some = output(), parts()
        launched((x, w, None, some))
        added((some, out))
        return out

    return call


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
    size, out = math.prod(shape), allocate.empty(shape, dtype=x.dtype, device=x.device)
    whole = splits == 1 and x.dtype == torch.float32
    part = out if whole else allocate.empty((splits, size), dtype=torch.float32, device=x.device)
    args = (x, dy, part, geometry.batch, channels, outputs, geometry.groups, per_split, *numbers)
    launch(weight_kernel, (tiles, splits, geometry.groups), args, constants, config)
    if not whole:
        parts = config_for("conv", "parts", "*", target)
        launch(column_sum_kernel, (triton.cdiv(size, parts["COLUMNS"]),), (part, out, splits, size), {}, parts)
    return out
