"""Launch the weight gradient's kernels: a sum over all output pixels, split so that a GPU is full."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate, arithmetic
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.conv.conv import Problem, kind, problem_of, shape_class, weight_class
from rocmend.kernels.ops.conv.conv.geometry import Geometry, collapsed
from rocmend.kernels.ops.conv.conv.host import (
    ConvLaunch,
    Prepare,
    as_contiguous,
    channels_contiguous,
    is_phased,
    is_wide,
    launched,
    numbers_of,
    pixel_step,
    reciprocals,
    steps_of,
)
from rocmend.kernels.ops.conv.conv.kernels.depthwise_weight import depthwise_weight_kernel
from rocmend.kernels.ops.conv.conv.kernels.weight import weight_kernel
from rocmend.kernels.ops.conv.conv.kernels.weight_packed import weight_packed_kernel
from rocmend.kernels.ops.conv.conv.kernels.weight_tiled import weight_tiled_kernel
from rocmend.kernels.ops.conv.conv.operands import Call
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

MOST_TAPS = 4
"""Taps along a row that a program of a depthwise gradient takes."""


def plan_weight_gradient(
    x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, target: Target, output: allocate.Output
) -> Call:
    """Plan calls that return the weight's gradient of x and the output's gradient.

    Args:
        x: ``[N, D, H, W, C]``.
        dy: The output's gradient, the like.
        geometry: Of the convolution.
        target: What it runs on.
        output: Allocates the result.
    """
    # Without data: a plan keeps no tensor.
    x, dy = (torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta") for t in (x, dy))
    of_x, x = channels_contiguous(x)
    of_dy, dy = channels_contiguous(dy)
    if collapsed(tuple(dy.shape[:4]), dy.stride()[:4]) is None:
        of_dy, dy = as_contiguous(dy)
    problem = problem_of("weight", NAMES[x.dtype], geometry)
    which = kind(problem)
    if which == "depthwise":
        one = _depthwise(x, dy, geometry, problem, target)
    elif which == "tiled" and not is_phased(geometry):
        one = _tiled(x, dy, geometry, problem, target)
    else:
        one = _any(x, dy, geometry, problem, target)
    if one.kernel is not weight_packed_kernel:
        return launched(one, output, of_x, of_dy)
    in_pairs = launched(one, output, _pairs(of_x), _pairs(of_dy))

    def call(some: torch.Tensor, above: torch.Tensor, _bias: torch.Tensor | None = None) -> torch.Tensor:
        if (of_x is None and int(some.storage_offset()) % 2) or (of_dy is None and int(above.storage_offset()) % 2):
            return launched(_any(x, dy, geometry, problem, target), output, of_x, of_dy)(some, above)
        return in_pairs(some, above)

    return call


def _pairs(prepare: Prepare | None) -> Prepare:
    """Return what makes int32 of pairs of 16-bit elements, after something else."""
    if prepare is None:
        return lambda tensor: tensor.view(torch.int32)
    return lambda tensor: prepare(tensor).view(torch.int32)


def _parts_of(programs: int, pixels: int, block: int, config: Config, target: Target) -> tuple[int, int]:
    """Return in how many parts the pixels are summed, and a part's pixels: as many programs as run at once."""
    least = config.get("least_blocks", 4)
    wanted = target.units * config.get("programs_per_unit", 2) // max(programs, 1)
    splits = max(1, min(wanted, pixels // (block * least), 512))
    per_split = arithmetic.cdiv(arithmetic.cdiv(pixels, splits), block) * block
    return arithmetic.cdiv(pixels, per_split), per_split


def _paired(x: torch.Tensor) -> bool:
    """Return whether a tensor of 16-bit elements can be seen as one of pairs along its last axis."""
    return x.element_size() == 2 and all(step % 2 == 0 for step in x.stride()[:-1])


def _tiled(x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, problem: Problem, target: Target) -> ConvLaunch:
    """A tile of output and input channels at one tap, summed over pixels."""
    axes, groups = geometry.axes, geometry.groups
    channels, outputs = geometry.c_in // groups, geometry.c_out // groups
    config = config_for("conv", "weight_tiled", weight_class(problem), target)
    packed = "AHEAD" in config.constants
    if packed and (channels % 2 or outputs % 2 or not (_paired(x) and _paired(dy))):
        return _any(x, dy, geometry, problem, target)
    pixel, across = pixel_step(x, geometry), collapsed(tuple(dy.shape[:4]), dy.stride()[:4]) or 0
    block_m, block_n, block_k = config["BLOCK_M"], config["BLOCK_N"], config["BLOCK_K"]
    # Without loads of 16 bytes three taps' addresses do not fit in registers.
    three = not packed and axes[2].taps == config.get("row_taps", 1) == 3 and channels % 8 == outputs % 8 == 0
    tiles = (
        arithmetic.cdiv(outputs, block_m) * arithmetic.cdiv(channels, block_n) * (geometry.taps // (3 if three else 1))
    )
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
    return ConvLaunch(kernel, (tiles, splits, groups), numbers, constants, config, splits)


def _any(x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, problem: Problem, target: Target) -> ConvLaunch:
    """A tile of output channels by taps and input channels, whatever the steps, summed over pixels."""
    channels, outputs, groups = geometry.c_in // geometry.groups, geometry.c_out // geometry.groups, geometry.groups
    config = config_for("conv", "weight", shape_class(problem), target)
    tiles = arithmetic.cdiv(outputs, config["BLOCK_M"]) * arithmetic.cdiv(geometry.taps * channels, config["BLOCK_N"])
    splits, per_split = _parts_of(tiles * groups, geometry.pixels_out, config["BLOCK_K"], config, target)
    steps = (*x.stride(), *dy.stride())
    numbers = (geometry.batch, channels, outputs, groups, per_split, *numbers_of(geometry), *steps)
    constants = {
        "FLIP": geometry.flip,
        "PHASED": is_phased(geometry),
        "WIDE": is_wide(x, dy),
    }
    return ConvLaunch(weight_kernel, (tiles, splits, groups), numbers, constants, config, splits)


def _depthwise(x: torch.Tensor, dy: torch.Tensor, geometry: Geometry, problem: Problem, target: Target) -> ConvLaunch:
    """A row of taps of a block of channels, summed over pixels."""
    config = config_for("conv", "depthwise_weight", shape_class(problem), target)
    outputs, along = geometry.c_out, geometry.axes[2].taps
    taps = min(arithmetic.next_power_of_2(along), MOST_TAPS)
    rows = geometry.taps // along * arithmetic.cdiv(along, taps)
    blocks = arithmetic.cdiv(outputs, config["BLOCK_C"])
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
        "PHASED": is_phased(geometry),
        "WIDE": is_wide(x, dy),
        "TAPS": taps,
        "BLOCK_P": block_p,
    }
    return ConvLaunch(depthwise_weight_kernel, (blocks, rows, splits), numbers, constants, config, splits)
