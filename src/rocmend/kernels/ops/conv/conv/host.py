"""Launch the Triton kernels. Inputs are ``[N, D, H, W, C]`` of any strides, weights ``[O, D, H, W, C / groups]``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import LaunchPlan, launch
from rocmend.kernels.ops.conv.conv import Problem, kind, shape_class
from rocmend.kernels.ops.conv.conv.geometry import Geometry, collapsed, reciprocal
from rocmend.kernels.ops.conv.conv.kernels.depthwise import depthwise_kernel
from rocmend.kernels.ops.conv.conv.kernels.forward import forward_kernel
from rocmend.kernels.ops.conv.conv.kernels.parts import parts_kernel
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
        from rocmend.kernels.ops.conv.conv.host_weight import plan_weight_gradient

        shape = (geometry.c_out, *(axis.taps for axis in geometry.axes), geometry.c_in // geometry.groups)
        return plan_weight_gradient(x, other, geometry, shape)(x, other)
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


def numbers_of(geometry: Geometry) -> tuple[int, ...]:
    """Return the axes' numbers in the kernels' order."""
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


def is_wide(*tensors: torch.Tensor) -> bool:
    """Return whether offsets in a tensor may need 64 bits."""
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
def _plan(
    geometry: Geometry, problem: Problem, target: Target, config: Config, *, wide: bool, bias: bool, plain: bool = False
) -> _Plan:
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
            *numbers_of(geometry), *phases, *(axis.tap_step for axis in axes),
        ),
        {
            "HAS_BIAS": bias and splits == 1,
            "FLIP": geometry.flip,
            "PHASED": any(axis.input_dilation > 1 for axis in axes),
            "FLAT": flat,
            "ONE": flat and axes[2].taps * channels <= config["BLOCK_K"],
            "POINT": geometry.taps == 1 and not flat and all(axis.input_dilation == 1 for axis in axes),
            "PLAIN": plain,
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
    steps = weight_steps(w, target)
    if steps is None:
        w = w.contiguous()
        steps = w.stride(0), w.shape[-1], 1
    pixel = pixel_step(x, geometry)
    plan = _plan(
        geometry, problem, target, config, wide=is_wide(x, out), bias=bias is not None, plain=pixel is not None
    )
    numbers = (*plan.numbers, *steps_of(x, pixel), *out.stride(), *steps, *reciprocals(geometry))
    if plan.splits == 1:
        launch(forward_kernel, plan.grid, (x, w, bias, out, *numbers), plan.constants, config)
        return
    parts = allocate.empty((plan.splits, *out.shape), dtype=torch.float32, device=x.device)
    launch(forward_kernel, plan.grid, (x, w, None, parts, *numbers), plan.constants, config)
    add_parts(parts, bias, out, plan.splits)


def weight_steps(w: torch.Tensor, target: Target) -> tuple[int, int, int] | None:
    """Return how far apart output channels, taps and input channels of a weight are; None where it must be copied.

    Input channels side by side are a convolution's own weight, output channels side by side that of an input gradient.
    AMD's matrix instructions take input channels side by side, and LDS would be read in pieces of 16 bits: a copy is
    cheaper there.
    """
    tap = collapsed(tuple(w.shape[1:4]), w.stride()[1:4])
    one, other = w.stride(0), w.stride(4) if w.shape[4] > 1 else 1
    if tap is None or not (other == 1 or (one == 1 and target.vendor != "amd")):
        return None
    return one, tap, other


def pixel_step(x: torch.Tensor, geometry: Geometry) -> int | None:
    """Return how far apart pixels are where the convolution is a matrix product over them; else None."""
    if geometry.taps != 1 or any(
        axis.stride != 1 or axis.padding != 0 or axis.input_dilation != 1 or axis.out != axis.size
        for axis in geometry.axes
    ):
        return None
    return collapsed(tuple(x.shape[:4]), x.stride()[:4])


def steps_of(x: torch.Tensor, pixel: int | None) -> tuple[int, ...]:
    """Return the strides of x as the kernels take them."""
    return x.stride() if pixel is None else (0, 0, 0, pixel, x.stride(4))


@functools.lru_cache(maxsize=4096)
def reciprocals(geometry: Geometry) -> tuple[int, ...]:
    """Return the numbers with which kernels divide by the output's axes."""
    return tuple(number for axis in geometry.axes for number in reciprocal(max(axis.out, 1)))


def parts_config(splits: int, target: Target) -> Config:
    """Return the record with which that many parts are added."""
    return config_for("conv", "parts", "few" if splits <= 16 else "many" if splits <= 100 else "most", target)


def parts_plan(splits: int, shape: tuple[int, ...], device: torch.device, *, biased: bool = False) -> LaunchPlan:
    """Return the launch that adds parts, given them, the bias or None, and the result."""
    config, size = parts_config(splits, executor.target_for(device)), math.prod(shape)
    grid = (triton.cdiv(size, config["COLUMNS"]),)
    return LaunchPlan(parts_kernel, grid, {"HAS_BIAS": biased}, config, (splits, size, shape[-1]))


def add_parts(parts: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor, splits: int) -> None:
    """Add up the parts of a sum in their order, and the bias of the last axis."""
    config = parts_config(splits, executor.target_for(out.device))
    size = out.numel()
    args = (parts, bias, out, splits, size, out.shape[-1])
    launch(parts_kernel, (triton.cdiv(size, config["COLUMNS"]),), args, {"HAS_BIAS": bias is not None}, config)


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
    target = executor.target_for(x.device)
    steps = weight_steps(w, target)
    if steps is None or not (x.stride(-1) == 1 or x.shape[-1] == 1):
        return None
    config = config_for("conv", "forward", shape_class(problem), target)
    example = torch.empty(geometry.output_shape, dtype=x.dtype, device="meta")
    pixel = pixel_step(x, geometry)
    cut = _plan(
        geometry, problem, target, config, wide=is_wide(x, example), bias=bias is not None, plain=pixel is not None
    )
    numbers = (*cut.numbers, *steps_of(x, pixel), *example.stride(), *steps, *reciprocals(geometry))
    launched = LaunchPlan(forward_kernel, cut.grid, cut.constants, config, numbers)
    output = allocate.Output(shape, x.dtype, x.device)
    if cut.splits > 1:
        return _plan_parts(launched, output, cut.splits, shape, x.device, biased=bias is not None)

    def call(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        out = output()
        launched((x, w, bias, out))
        return out

    return call


def _plan_parts(
    launched: LaunchPlan,
    output: allocate.Output,
    splits: int,
    shape: tuple[int, ...],
    device: torch.device,
    *,
    biased: bool,
) -> Callable[..., torch.Tensor]:
    """Plan a convolution whose sum is split: parts in fp32, and a launch that adds them in their order."""
    parts = allocate.Output((splits, math.prod(shape)), torch.float32, device)
    added = parts_plan(splits, shape, device, biased=biased)

    def call(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        out, some = output(), parts()
        launched((x, w, None, some))
        added((some, bias, out))
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
            *numbers_of(geometry), *x.stride(), *out.stride(),
        ),
        {
            "HAS_BIAS": bias is not None,
            "FLIP": geometry.flip,
            "PHASED": any(axis.input_dilation > 1 for axis in geometry.axes),
            "WIDE": is_wide(x, out),
        },
        config,
    )  # fmt: skip
