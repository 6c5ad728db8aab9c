"""Depthwise convolution for ``columns.py``: one multiply-add over the whole output for each tap of the kernel.

A matrix product of a depthwise convolution has a single row for each group; shifting and adding moves less memory.
Tensors are ``(N, C, D, H, W)`` here, inputs padded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import torch
from torch import Tensor

from rocmend.kernels.ops.conv.conv.geometry import Geometry
from rocmend.kernels.ops.conv.conv.workspace import blocks

_MOST_OUTPUTS_PER_CHANNEL = 4


def is_depthwise(geometry: Geometry) -> bool:
    """Whether each group has one input channel and few outputs."""
    groups = geometry.groups
    return groups > 1 and geometry.c_in == groups and geometry.c_out // groups <= _MOST_OUTPUTS_PER_CHANNEL


def accumulator_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype that sums are kept in: float32 for the 16-bit ones."""
    return torch.float32 if dtype in {torch.float16, torch.bfloat16} else dtype


def tap_slices(geometry: Geometry, block: Sequence[slice] | None = None) -> Iterator[tuple[int, tuple[slice, ...]]]:
    """For each tap, its index in row-major order and the slices of the padded input that a block's positions read.

    Args:
        geometry: The convolution.
        block: Range of output positions on each spatial axis; None for all.
    """
    boxes = block or [slice(0, axis.out) for axis in geometry.axes]
    for index, tap in enumerate(product(*(range(axis.taps) for axis in geometry.axes))):
        where = []
        for at, axis, box in zip(tap, geometry.axes, boxes, strict=True):
            first, last = (at * axis.dilation + place * axis.stride for place in (box.start, box.stop - 1))
            where.append(slice(first, last + 1, axis.stride) if box.stop > box.start else slice(0, 0))
        yield index, tuple(where)


def empty(shape: Sequence[int], like: Tensor, dtype: torch.dtype, *, channels_last: bool) -> Tensor:
    """Return an uninitialised tensor ``(N, C, D, H, W)``, channels innermost where asked for."""
    if not channels_last:
        return like.new_empty(tuple(shape), dtype=dtype)
    return like.new_empty((shape[0], *shape[2:], shape[1]), dtype=dtype).movedim(-1, 1)


def _by_group(tensor: Tensor, groups: int) -> Tensor:
    """Return the view ``(N, groups, each, …)`` of ``(N, groups * each, …)``."""
    return tensor.view(tensor.shape[0], groups, tensor.shape[1] // groups, *tensor.shape[2:])


def _scales(weight: Tensor, groups: int) -> Tensor:
    """Return ``(taps, 1, groups, each, 1, 1, 1)`` of a weight ``[O, D, H, W, 1]``."""
    taps = weight.shape[1] * weight.shape[2] * weight.shape[3]
    by_tap: Tensor = weight.reshape(groups, weight.shape[0] // groups, taps).movedim(-1, 0)
    return by_tap[:, None, ..., None, None, None]


def correlate(padded: Tensor, weight: Tensor, geometry: Geometry, *, channels_last: bool) -> Tensor:
    """Return the depthwise convolution of a padded input."""
    shape = (geometry.batch, geometry.c_out, *geometry.output_shape[1:4])
    result = empty(shape, padded, accumulator_dtype(padded.dtype), channels_last=channels_last).zero_()
    split, scales = _by_group(result, geometry.groups), _scales(weight, geometry.groups)
    for tap, where in tap_slices(geometry):
        split.addcmul_(padded[(slice(None), slice(None), *where)].unsqueeze(2), scales[tap])
    return result.to(padded.dtype)


def add_adjoint(padded: Tensor, gradient: Tensor, weight: Tensor, geometry: Geometry) -> None:
    """Add the gradient with respect to the padded input."""
    split, scales = _by_group(gradient, geometry.groups), _scales(weight, geometry.groups)
    for tap, where in tap_slices(geometry):
        target = padded[(slice(None), slice(None), *where)]
        for one in range(split.shape[2]):
            target.addcmul_(split[:, :, one], scales[tap][:, :, one])


def weight_gradient(gradient: Tensor, padded: Tensor, geometry: Geometry, limit_bytes: int) -> Tensor:
    """Return the gradient with respect to the weight, ``(groups, each, taps)`` in the accumulator's dtype."""
    groups, each = geometry.groups, geometry.c_out // geometry.groups
    dtype = accumulator_dtype(gradient.dtype)
    result = gradient.new_zeros((groups, each, geometry.taps), dtype=dtype)
    split = _by_group(gradient, groups)
    position_bytes = max(1, geometry.c_out) * dtype.itemsize
    for batch, *box in blocks((geometry.batch, *geometry.output_shape[1:4]), max(1, limit_bytes // position_bytes)):
        mine = split[(batch, slice(None), slice(None), *box)]
        for tap, where in tap_slices(geometry, box):
            shifted = padded[(batch, slice(None), *where)].unsqueeze(2)
            result[:, :, tap] += (mine * shifted).sum([0, 3, 4, 5], dtype=dtype)
    return result
