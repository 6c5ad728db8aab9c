"""Depthwise convolution without MIOpen: one multiply-add over the whole output for each tap of the kernel.

A matrix product of a depthwise convolution has a single row for each group; shifting and adding moves less memory. The
three functions mirror those of ``gemm`` and take the same arguments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import torch
from torch import Tensor

from rocmend.torch.geometry import Geometry, blocks

_MOST_OUTPUTS_PER_CHANNEL = 4


def is_depthwise(shape: Sequence[int], geometry: Geometry) -> bool:
    """Whether each group has one input channel and few outputs (weight shape ``(out, in / groups, *kernel)``)."""
    return geometry.groups > 1 and shape[1] == 1 and shape[0] // geometry.groups <= _MOST_OUTPUTS_PER_CHANNEL


def accumulator_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that sums are kept in: float32 for the 16-bit ones."""
    return torch.float32 if dtype in {torch.float16, torch.bfloat16} else dtype


def tap_slices(
    kernel: Sequence[int], geometry: Geometry, block: Sequence[slice]
) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """For each tap of the kernel, the slices of the padded input that the positions of a block read.

    Args:
        kernel: Spatial size of the kernel.
        geometry: The convolution.
        block: Range of output positions on each spatial axis.

    Yields:
        The tap's index in row-major order, and one slice for each spatial axis.
    """
    for index, tap in enumerate(product(*(range(size) for size in kernel))):
        yield (
            index,
            tuple(
                slice(at * step + box.start * stride, at * step + (box.stop - 1) * stride + 1, stride)
                if box.stop > box.start
                else slice(0, 0)
                for at, step, stride, box in zip(tap, geometry.dilation, geometry.stride, block, strict=True)
            ),
        )


def empty_like_layout(shape: Sequence[int], like: Tensor, dtype: torch.dtype, *, channels_last: bool) -> Tensor:
    """Return an uninitialized tensor of ``shape`` (batch, channels, spatial…), channels innermost where asked for."""
    if not channels_last:
        return like.new_empty(tuple(shape), dtype=dtype)
    last = like.new_empty((shape[0], *shape[2:], shape[1]), dtype=dtype)
    return last.movedim(-1, 1)


def _by_group(tensor: Tensor, groups: int, each: int) -> Tensor:
    """Return the view ``(N, groups, each, …)`` of ``(N, groups * each, …)``."""
    return tensor.view(tensor.shape[0], groups, each, *tensor.shape[2:])


def correlate(
    padded: Tensor, weight: Tensor, geometry: Geometry, output: Sequence[int], *, channels_last: bool
) -> Tensor:
    """Return the depthwise convolution of a padded input; shapes as in ``gemm.correlate``."""
    batch, groups, rank = padded.shape[0], geometry.groups, len(output)
    each = weight.shape[0] // groups
    dtype = accumulator_dtype(padded.dtype)
    result = empty_like_layout((batch, weight.shape[0], *output), padded, dtype, channels_last=channels_last).zero_()
    split = _by_group(result, groups, each)
    scale = weight.reshape(groups, each, -1)
    everything = [slice(0, size) for size in output]
    for tap, where in tap_slices(weight.shape[2:], geometry, everything):
        shifted = padded[(slice(None), slice(None), *where)].unsqueeze(2)
        split.addcmul_(shifted, scale[:, :, tap].reshape(1, groups, each, *[1] * rank))
    return result.to(padded.dtype)


def input_gradient(
    gradient: Tensor, weight: Tensor, geometry: Geometry, padded_shape: Sequence[int], *, channels_last: bool
) -> Tensor:
    """Return the gradient with respect to the padded input, in the accumulator's dtype."""
    groups, rank = geometry.groups, gradient.ndim - 2
    each = weight.shape[0] // groups
    dtype = accumulator_dtype(gradient.dtype)
    result = empty_like_layout(padded_shape, gradient, dtype, channels_last=channels_last).zero_()
    split = _by_group(gradient, groups, each)
    scale = weight.reshape(groups, each, -1)
    everything = [slice(0, size) for size in gradient.shape[2:]]
    for tap, where in tap_slices(weight.shape[2:], geometry, everything):
        target = result[(slice(None), slice(None), *where)]
        for one in range(each):
            target.addcmul_(split[:, :, one], scale[:, one, tap].reshape(1, groups, *[1] * rank))
    return result


def weight_gradient(
    gradient: Tensor, padded: Tensor, kernel: Sequence[int], geometry: Geometry, *, limit_bytes: int
) -> Tensor:
    """Return the gradient with respect to the weight, in the accumulator's dtype."""
    groups, output = geometry.groups, gradient.shape[2:]
    each = gradient.shape[1] // groups
    dtype = accumulator_dtype(gradient.dtype)
    result = gradient.new_zeros((groups, each, math.prod(kernel)), dtype=dtype)
    split = _by_group(gradient, groups, each)
    position_bytes = max(1, gradient.shape[1]) * dtype.itemsize
    axes = [0, *range(3, 3 + len(output))]
    for batch, *box in blocks((gradient.shape[0], *output), max(1, limit_bytes // position_bytes)):
        mine = split[(batch, slice(None), slice(None), *box)]
        for tap, where in tap_slices(kernel, geometry, box):
            shifted = padded[(batch, slice(None), *where)].unsqueeze(2)
            result[:, :, tap] += (mine * shifted).sum(axes, dtype=dtype)
    return result.reshape(groups * each, 1, *kernel)
