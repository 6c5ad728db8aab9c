"""Plan the Triton kernels. Inputs are ``[N, D, H, W, C]`` of any strides, weights ``[O, D, H, W, C / groups]``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from rocmend.kernels import allocate, arithmetic, executor
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.conv.conv import Problem, kind, problem_of, shape_class
from rocmend.kernels.ops.conv.conv.geometry import Geometry, collapsed, reciprocal
from rocmend.kernels.ops.conv.conv.kernels.depthwise import depthwise_kernel
from rocmend.kernels.ops.conv.conv.kernels.forward import forward_kernel
from rocmend.kernels.ops.conv.conv.kernels.parts import parts_kernel
from rocmend.kernels.ops.conv.conv.operands import Call, planned_input_gradient
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

WIDE_ELEMENTS = 1 << 31
Prepare = Callable[[torch.Tensor], torch.Tensor]
"""Makes what a kernel takes of a tensor."""


class ConvLaunch(NamedTuple):
    """A launch that convolves, but for its tensors: x, the other, the bias (forward only), and the result or its parts.

    Args:
        kernel: The Triton function.
        grid: Programs.
        numbers: Run-time numbers.
        constants: Compile-time constants.
        config: The tuning record.
        splits: Parts that the sum is split in.
    """

    kernel: Any
    grid: tuple[int, ...]
    numbers: tuple[int, ...]
    constants: dict[str, Any]
    config: Config
    splits: int = 1


def plan(
    direction: str,
    x: torch.Tensor,
    other: torch.Tensor,
    bias: torch.Tensor | None,
    geometry: Geometry,
    shape: tuple[int, ...],
) -> Call:
    """Plan launches; see ``function.planned``."""
    if direction == "input":
        return planned_input_gradient(plan, x, other, geometry, shape)
    output = allocate.Output(shape, x.dtype, x.device)
    if 0 in (geometry.c_in, geometry.pixels_in, geometry.pixels_out, *shape):

        def nothing(_x: torch.Tensor, _other: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
            return output().zero_() if bias is None else output().copy_(bias.expand(shape))

        return nothing
    target = executor.target_for(x.device)
    if direction == "weight":
        from rocmend.kernels.ops.conv.conv.host_weight import plan_weight_gradient

        return plan_weight_gradient(x, other, geometry, target, output)
    problem, biased = problem_of("forward", NAMES[x.dtype], geometry), bias is not None
    of_x, x = channels_contiguous(x)
    if kind(problem) == "depthwise":
        one = _depthwise(x, geometry, problem, target, biased=biased)
        return launched(one, output, of_x, _taps_first(other, geometry), biased=biased)
    of_weight, steps = None, weight_steps(other, target)
    if steps is None:
        of_weight, other = as_contiguous(other)
        steps = other.stride(0), other.shape[-1], 1
    one = _forward(x, steps, geometry, problem, target, biased=biased)
    return launched(one, output, of_x, of_weight, biased=biased)


def launched(
    one: ConvLaunch,
    output: allocate.Output,
    of_x: Prepare | None = None,
    of_other: Prepare | None = None,
    *,
    biased: bool | None = None,
) -> Call:
    """Return a function that prepares the tensors, launches, and adds up the parts of a split sum in their order.

    Args:
        one: The launch.
        output: Allocates the result.
        of_x: Makes what the kernel takes of the first tensor; None where it takes it as it is.
        of_other: Of the second one.
        biased: There is a bias; None where the kernel takes none.
    """
    plan = LaunchPlan(one.kernel, one.grid, one.constants, one.config, one.numbers)
    if one.splits > 1:
        size = math.prod(output.shape)
        parts = allocate.Output((one.splits, size), torch.float32, output.device)
        added = _parts_plan(one.splits, output, biased=bool(biased))

    def call(x: torch.Tensor, other: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        if of_x is not None:
            x = of_x(x)
        if of_other is not None:
            other = of_other(other)
        out = output()
        if one.splits == 1:
            plan((x, other, out) if biased is None else (x, other, bias, out))
            return out
        some = parts()
        plan((x, other, some) if biased is None else (x, other, None, some))
        added((some, bias, out))
        return out

    return call


def as_contiguous(tensor: torch.Tensor) -> tuple[Prepare, torch.Tensor]:
    """Return a function that copies tensors like one, and the copy of one without data."""
    shape, strides = tuple(tensor.shape), tensor.stride()
    copy = torch.empty(shape, dtype=tensor.dtype, device="meta")
    return lambda tensor: tensor.as_strided(shape, strides).contiguous(), copy


def channels_contiguous(x: torch.Tensor) -> tuple[Prepare | None, torch.Tensor]:
    """Return how x gets its channels side by side, and x so: a copy costs less than loads that are not."""
    if x.stride(-1) == 1 or x.shape[-1] == 1:
        return None, x
    return as_contiguous(x)


def _taps_first(weight: torch.Tensor, geometry: Geometry) -> Prepare:
    """Return what makes ``[taps, O]`` of a depthwise weight."""
    shape, strides = tuple(weight.shape), weight.stride()
    rows = geometry.c_out, geometry.taps
    return lambda weight: weight.as_strided(shape, strides).reshape(rows).t().contiguous()


def numbers_of(geometry: Geometry) -> tuple[int, ...]:
    """Return the axes' numbers in the kernels' order."""
    names = ("size", "out", "taps", "stride", "padding", "dilation", "input_dilation")
    return tuple([getattr(axis, name) for name in names for axis in geometry.axes])


def is_phased(geometry: Geometry) -> bool:
    """Return whether an output uses a part of the taps, by its position."""
    return any(axis.input_dilation > 1 for axis in geometry.axes)


def is_wide(*tensors: torch.Tensor) -> bool:
    """Return whether offsets in a tensor may need 64 bits."""
    return any(tensor.numel() >= WIDE_ELEMENTS or max(tensor.stride()) >= WIDE_ELEMENTS // 4 for tensor in tensors)


def _forward(
    x: torch.Tensor, steps: tuple[int, int, int], geometry: Geometry, problem: Problem, target: Target, *, biased: bool
) -> ConvLaunch:
    """A tile of pixels by output channels, and few of them with parts of the sum over taps and channels."""
    config = config_for("conv", "forward", shape_class(problem), target)
    axes, groups = geometry.axes, geometry.groups
    channels, outputs = geometry.c_in // groups, geometry.c_out // groups
    phases = [axis.phases for axis in axes]
    pixels = geometry.batch * math.prod(arithmetic.cdiv(axis.out, axis.phases) for axis in axes)
    flat = kind(problem) == "flat"
    tiles = arithmetic.cdiv(pixels, config["BLOCK_M"]) * arithmetic.cdiv(outputs, config["BLOCK_N"])
    all_phases = math.prod(phases)
    taps = [axis.taps // axis.tap_step for axis in axes]
    along = (taps[2] * channels) if flat else channels
    turns = taps[0] * taps[1] * (1 if flat else taps[2]) * arithmetic.cdiv(along, config["BLOCK_K"])
    # Few tiles leave most of the GPU idle: split the sum, but not into crumbs.
    wanted = target.compute_units * config.get("programs_per_unit", 2) // max(tiles * all_phases * groups, 1)
    splits = max(1, min(wanted, turns // 8, 16))
    out = torch.empty(geometry.output_shape, dtype=x.dtype, device="meta")
    pixel = pixel_step(x, geometry)
    numbers = (
        geometry.batch, channels, outputs, splits, geometry.pixels_out * geometry.c_out,
        *numbers_of(geometry), *phases, *(axis.tap_step for axis in axes),
        *steps_of(x, pixel), *out.stride(), *steps, *reciprocals(geometry),
    )  # fmt: skip
    constants = {
        "HAS_BIAS": biased and splits == 1,
        "FLIP": geometry.flip,
        "PHASED": is_phased(geometry),
        "FLAT": flat,
        "ONE": flat and axes[2].taps * channels <= config["BLOCK_K"],
        "POINT": geometry.taps == 1 and not flat and not is_phased(geometry),
        "PLAIN": pixel is not None,
        "BITS": geometry.taps <= 32,
        "EVEN": channels % config["BLOCK_K"] == 0,
        "WIDE": is_wide(x, out),
    }
    return ConvLaunch(forward_kernel, (tiles, all_phases * splits, groups), numbers, constants, config, splits)


def _depthwise(x: torch.Tensor, geometry: Geometry, problem: Problem, target: Target, *, biased: bool) -> ConvLaunch:
    """A block of pixels by channels."""
    config = config_for("conv", "depthwise", shape_class(problem), target)
    out = torch.empty(geometry.output_shape, dtype=x.dtype, device="meta")
    blocks = (geometry.pixels_out, config["BLOCK_P"]), (geometry.c_out, config["BLOCK_C"])
    numbers = (
        geometry.batch, geometry.c_out, geometry.c_out // geometry.groups,
        *numbers_of(geometry), *x.stride(), *out.stride(),
    )  # fmt: skip
    constants = {"HAS_BIAS": biased, "FLIP": geometry.flip, "PHASED": is_phased(geometry), "WIDE": is_wide(x, out)}
    return ConvLaunch(depthwise_kernel, tuple(arithmetic.cdiv(*pair) for pair in blocks), numbers, constants, config)


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


def _parts_plan(splits: int, output: allocate.Output, *, biased: bool) -> LaunchPlan:
    """Return the launch that adds parts, given them, the bias or None, and the result."""
    count = "few" if splits <= 16 else "many" if splits <= 100 else "most"
    config, size = config_for("conv", "parts", count, executor.target_for(output.device)), math.prod(output.shape)
    grid = (arithmetic.cdiv(size, config["COLUMNS"]),)
    return LaunchPlan(parts_kernel, grid, {"HAS_BIAS": biased}, config, (splits, size, output.shape[-1]))
