"""Convolutions as matrix products over columns (im2col): torch and its matrix library, no convolution kernel at all.

Three linear maps make up everything: ``correlate`` (a convolution), its adjoint in the input (``adjoint``, which a
transposed convolution is too) and its adjoint in the weight (``weight_gradient``). Only padding, strided copies,
additions and matrix products are used. Columns are made for a block of output positions at a time, so that memory stays
within a limit. Sums over blocks and taps of 16-bit types are kept in float32.

Tensors are ``[N, D, H, W, C]`` and ``[O, D, H, W, C / groups]`` of any strides; the geometry has neither input dilation
nor a flip. ``channels_last`` says how to work and how the result lies in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rocmend.kernels.ops.conv.conv import depthwise_columns
from rocmend.kernels.ops.conv.conv.depthwise_columns import accumulator_dtype, empty, is_depthwise, tap_slices
from rocmend.kernels.ops.conv.conv.geometry import Geometry
from rocmend.kernels.ops.conv.conv.operands import Call, five, swapped
from rocmend.kernels.ops.conv.conv.workspace import blocks, workspace_bytes

_MOST_ELEMENTS = (1 << 31) - 1
"""Elements of one block: matrix libraries index with 32 bits."""


def plan(
    direction: str, _x: Tensor, _other: Tensor, _bias: Tensor | None, geometry: Geometry, shape: tuple[int, ...]
) -> Call:
    """Plan matrix products, those of 16-bit types in float32, rounded once; see ``function.planned``."""
    direct = geometry.is_direct
    own = geometry if direct else geometry.transposed
    forward, to_input = (correlate, adjoint) if direct else (adjoint, correlate)

    def call(x: Tensor, other: Tensor, bias: Tensor | None = None) -> Tensor:
        dtype = accumulator_dtype(x.dtype)
        first, second = five(x).to(dtype), five(other).to(dtype)
        options: dict[str, Any] = {"channels_last": first.stride(-1) == 1}
        if direction == "weight":
            pair = (first, second) if direct else (second, first)
            out = weight_gradient(*pair, own, **options)
            out = out if direct else swapped(out, own)
        else:
            weight = second if direct else swapped(second, geometry)
            out = (forward if direction == "forward" else to_input)(first, weight, own, **options)
        if bias is not None:
            out = out.add_(bias)
        return out.to(x.dtype).reshape(shape).contiguous()

    return call


def correlate(
    x: Tensor, weight: Tensor, geometry: Geometry, *, channels_last: bool, limit_bytes: int | None = None
) -> Tensor:
    """Return the convolution of x with a weight.

    Args:
        x: ``[N, D, H, W, C]``.
        weight: ``[O, D, H, W, C / groups]``.
        geometry: Of the convolution.
        channels_last: Work and return with channels innermost.
        limit_bytes: Bytes of columns at a time; None for a share of what is free.

    Returns:
        ``[N, D, H, W, O]``.

    Cost: 2 · N · output pixels · O · taps · C / groups operations; columns of N · output pixels · taps · C elements are
    written and read once.
    """
    source, groups, out = x.movedim(-1, 1), geometry.groups, _out(geometry)
    inside, outside = geometry.c_in // groups, geometry.c_out // groups
    if not channels_last and _is_pointwise(source, geometry):
        flat = source.reshape(geometry.batch, groups, inside, math.prod(out))
        product = torch.matmul(weight.reshape(groups, outside, inside), flat)
        return product.reshape(geometry.batch, geometry.c_out, *out).movedim(1, -1)
    padded = _padded(source, geometry)
    if is_depthwise(geometry):
        return depthwise_columns.correlate(padded, weight, geometry, channels_last=channels_last).movedim(1, -1)
    columns = _Columns(geometry, source, limit_bytes, channels_last=channels_last)
    windows, matrix = _windows(padded, geometry), columns.matrix(weight)
    result = empty((geometry.batch, geometry.c_out, *out), source, source.dtype, channels_last=channels_last)
    for block in columns.blocks:
        rows = columns.product(matrix, columns.of(windows, block))
        result[_at(block)] = rows.reshape(geometry.c_out, *_sizes(block)).movedim(0, 1)
    return result.movedim(1, -1)


def adjoint(
    dy: Tensor, weight: Tensor, geometry: Geometry, *, channels_last: bool, limit_bytes: int | None = None
) -> Tensor:
    """Return the adjoint of ``correlate`` in x: ``[N, D, H, W, C]`` of ``[N, D, H, W, O]``.

    Args:
        dy: Of the size of the convolution's output.
        weight: As in ``correlate``; so are the others.
        geometry: Of the convolution whose adjoint it is.
        channels_last: See ``correlate``.
        limit_bytes: See ``correlate``.

    Cost: as ``correlate``; each tap's part of the columns is added into the result.
    """
    gradient, groups = dy.movedim(-1, 1), geometry.groups
    inside, outside = geometry.c_in // groups, geometry.c_out // groups
    size = tuple(axis.size for axis in geometry.axes)
    if not channels_last and _is_pointwise(gradient, geometry):
        flat = gradient.reshape(geometry.batch, groups, outside, math.prod(size))
        product = torch.matmul(weight.reshape(groups, outside, inside).transpose(1, 2), flat)
        return product.reshape(geometry.batch, geometry.c_in, *size).movedim(1, -1)
    spans = [axis.size + axis.padding + axis.end_padding for axis in geometry.axes]
    padded = empty(
        (geometry.batch, geometry.c_in, *spans),
        gradient,
        accumulator_dtype(gradient.dtype),
        channels_last=channels_last,
    ).zero_()
    if is_depthwise(geometry):
        depthwise_columns.add_adjoint(padded, gradient, weight, geometry)
    else:
        columns = _Columns(geometry, gradient, limit_bytes, channels_last=channels_last)
        matrix = columns.matrix(weight).mT
        for block in columns.blocks:
            by_tap = columns.by_tap(columns.product(matrix, columns.part(gradient, block)), _sizes(block))
            for tap, where in tap_slices(geometry, block[1:]):
                padded[(block[0], slice(None), *where)] += by_tap[tap]
    if not any(axis.padding or axis.end_padding for axis in geometry.axes):
        return padded.to(gradient.dtype).movedim(1, -1)
    result = empty((geometry.batch, geometry.c_in, *size), gradient, gradient.dtype, channels_last=channels_last)
    return result.copy_(_padded(padded, geometry, sign=-1)).movedim(1, -1)


def weight_gradient(
    x: Tensor, dy: Tensor, geometry: Geometry, *, channels_last: bool, limit_bytes: int | None = None
) -> Tensor:
    """Return the adjoint of ``correlate`` in its weight, ``[O, D, H, W, C / groups]``; see ``adjoint``."""
    source, gradient = x.movedim(-1, 1), dy.movedim(-1, 1)
    padded, columns = _padded(source, geometry), _Columns(geometry, source, limit_bytes, channels_last=channels_last)
    if is_depthwise(geometry):
        found = depthwise_columns.weight_gradient(gradient, padded, geometry, columns.limit_bytes)
        return found.to(source.dtype).reshape(geometry.weight_shape)
    windows = _windows(padded, geometry)
    total: Tensor | None = None
    for block in columns.blocks:
        found = torch.bmm(columns.part(gradient, block), columns.of(windows, block).mT)
        if len(columns.blocks) > 1:
            found = found.to(accumulator_dtype(found.dtype))
        total = found if total is None else total.add_(found)
    return source.new_zeros(geometry.weight_shape) if total is None else columns.weight(total.to(source.dtype))


class _Columns:
    """The columns of a convolution's windows, block by block: ``(groups, C / groups * taps, positions)``.

    With channels last, which is for one group, they lie ``(positions, taps * C)`` in memory, and products likewise.
    """

    def __init__(self, geometry: Geometry, like: Tensor, limit_bytes: int | None, *, channels_last: bool) -> None:
        self.geometry, self.channels_last = geometry, channels_last and geometry.groups == 1
        self.rows = geometry.c_in // geometry.groups * geometry.taps
        position_elements = max(1, geometry.c_in * geometry.taps)
        if limit_bytes is None:
            needed = geometry.pixels_out * position_elements * like.element_size()
            limit_bytes = workspace_bytes(like.device, needed)
        elements = min(limit_bytes // like.element_size(), _MOST_ELEMENTS)
        self.limit_bytes = limit_bytes
        self.blocks = list(blocks((geometry.batch, *_out(geometry)), max(1, elements // position_elements)))

    def of(self, windows: Tensor, block: Sequence[slice]) -> Tensor:
        """Return a block's columns."""
        part, groups = windows[_at(block)], self.geometry.groups
        if self.channels_last:
            return part.permute(0, 2, 3, 4, 5, 6, 7, 1).reshape(1, _positions(block), self.rows).mT
        return part.permute(1, 5, 6, 7, 0, 2, 3, 4).reshape(groups, self.rows, _positions(block))

    def part(self, gradient: Tensor, block: Sequence[slice]) -> Tensor:
        """Return a block of the output's gradient, ``(groups, O / groups, positions)``."""
        part, groups = gradient[_at(block)], self.geometry.groups
        if self.channels_last:
            return part.movedim(1, -1).reshape(1, _positions(block), self.geometry.c_out).mT
        return part.movedim(1, 0).reshape(groups, self.geometry.c_out // groups, _positions(block))

    def matrix(self, weight: Tensor) -> Tensor:
        """Return a weight ``[O, D, H, W, C / groups]`` in the order of columns: ``(groups, O / groups, …)``."""
        groups, outputs = self.geometry.groups, self.geometry.c_out
        return (weight if self.channels_last else weight.movedim(-1, 1)).reshape(groups, outputs // groups, self.rows)

    def weight(self, matrix: Tensor) -> Tensor:
        """Return what ``matrix`` was made of."""
        outputs, *taps, inside = self.geometry.weight_shape
        if self.channels_last:
            return matrix.reshape(outputs, *taps, inside)
        return matrix.reshape(outputs, inside, *taps).movedim(1, -1)

    def by_tap(self, columns: Tensor, sizes: Sequence[int]) -> Tensor:
        """Return columns ``(taps, N, C, D, H, W)``."""
        taps, channels = self.geometry.taps, self.geometry.c_in
        if self.channels_last:
            return columns.reshape(taps, channels, *sizes).movedim(1, 2)
        return columns.reshape(channels, taps, *sizes).movedim(0, 2)

    def product(self, left: Tensor, right: Tensor) -> Tensor:
        """Multiply batches of matrices, whose last axis is positions."""
        return torch.bmm(right.mT, left.mT).mT if self.channels_last else torch.bmm(left, right)


def _padded(source: Tensor, geometry: Geometry, *, sign: int = 1) -> Tensor:
    """Return ``(N, C, D, H, W)`` with what padding adds or crops; -1 undoes it."""
    pads = [sign * side for axis in reversed(geometry.axes) for side in (axis.padding, axis.end_padding)]
    return torch.nn.functional.pad(source, pads) if any(pads) else source


def _windows(padded: Tensor, geometry: Geometry) -> Tensor:
    """Return the view ``(N, C, D, H, W, taps...)`` of every window of a padded input."""
    for place, axis in enumerate(geometry.axes, start=2):
        padded = padded.unfold(place, axis.reach, axis.stride)[..., :: axis.dilation]
    return padded


def _out(geometry: Geometry) -> tuple[int, ...]:
    return geometry.output_shape[1:4]


def _sizes(block: Sequence[slice]) -> list[int]:
    return [box.stop - box.start for box in block]


def _positions(block: Sequence[slice]) -> int:
    """Return the number of positions in a block."""
    return math.prod(_sizes(block))


def _at(block: Sequence[slice]) -> tuple[slice, ...]:
    """Return the index of a block in a tensor ``(N, channels, D, H, W)``."""
    return (block[0], slice(None), *block[1:])


def _is_pointwise(source: Tensor, geometry: Geometry) -> bool:
    """Whether each position of a contiguous source makes the same position of the result, and none is added."""
    plain = all(axis.stride == 1 and axis.padding == 0 and axis.out == axis.size for axis in geometry.axes)
    return plain and geometry.taps == 1 and source.is_contiguous()
