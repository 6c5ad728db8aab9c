"""Convolutions of any rank as matrix products over columns: no convolution library is called.

Three linear maps make up everything: ``correlate`` (an ordinary convolution), its adjoint in the input
(``input_gradient``) and its adjoint in the weight (``weight_gradient``). A transposed convolution is the second of them
run forward. Only padding, strided copies, additions and matrix products are used. The columns are made for a
block of output positions at a time, so that memory stays within a limit. Sums over blocks and taps of 16-bit types
are kept in float32.

Shapes: input ``(N, C, *size)``, weight ``(O, C / groups, *kernel)``, output ``(N, O, *output)``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rocmend.torch import depthwise
from rocmend.torch.depthwise import accumulator_dtype, empty_like_layout, is_depthwise, tap_slices
from rocmend.torch.geometry import Geometry, blocks
from rocmend.torch.workspace import workspace_bytes

_MOST_ELEMENTS = (1 << 31) - 1
"""Elements of one block: matrix libraries index with 32 bits."""


def _pad(source: Tensor, padding: Sequence[int]) -> Tensor:
    if not any(padding):
        return source
    return torch.nn.functional.pad(source, [pad for pad in reversed(padding) for _ in (0, 1)])


def _windows(padded: Tensor, kernel: Sequence[int], geometry: Geometry, output: Sequence[int]) -> Tensor:
    """Return the view ``(N, C, *output, *kernel)`` of every window of a padded input."""
    view = padded
    for axis, (span, step, dilation, size) in enumerate(
        zip(geometry.span(kernel), geometry.stride, geometry.dilation, output, strict=True), start=2
    ):
        view = view.unfold(axis, span, step).narrow(axis, 0, size)[..., ::dilation]
    return view


class _Columns:
    """The columns of a convolution's windows, block by block.

    Channels first: ``(groups, C / groups * taps, positions)``; channels last (one group): ``(positions, taps * C)``.
    """

    def __init__(  # noqa: PLR0913,PLR0917  one for each thing that sizes depend on
        self,
        shape: tuple[int, int],
        kernel: Sequence[int],
        output: Sequence[int],
        geometry: Geometry,
        like: Tensor,
        limit_bytes: int | None,
    ) -> None:
        self.batch, self.channels = shape
        self.kernel, self.output, self.geometry = tuple(kernel), tuple(output), geometry
        self.taps = math.prod(kernel)
        position_elements = max(1, self.channels * self.taps)
        if limit_bytes is None:
            needed = self.batch * math.prod(output) * position_elements * like.element_size()
            limit_bytes = workspace_bytes(like.device, needed)
        elements = min(limit_bytes // like.element_size(), _MOST_ELEMENTS)
        self.limit_bytes = limit_bytes
        self.blocks = list(blocks((self.batch, *self.output), max(1, elements // position_elements)))

    def channels_first(self, windows: Tensor, block: Sequence[slice]) -> Tensor:
        rank = len(self.output)
        part = windows[(block[0], slice(None), *block[1:])]
        order = (1, *range(2 + rank, 2 + 2 * rank), 0, *range(2, 2 + rank))
        rows = self.channels // self.geometry.groups * self.taps
        return part.permute(order).reshape(self.geometry.groups, rows, positions(block))

    def channels_last(self, windows: Tensor, block: Sequence[slice]) -> Tensor:
        rank = len(self.output)
        part = windows[(block[0], slice(None), *block[1:])]
        order = (0, *range(2, 2 + rank), *range(2 + rank, 2 + 2 * rank), 1)
        return part.permute(order).reshape(positions(block), self.taps * self.channels)


def positions(block: Sequence[slice]) -> int:
    """Return the number of positions in a block."""
    return math.prod(box.stop - box.start for box in block)


def _sizes(block: Sequence[slice]) -> list[int]:
    return [box.stop - box.start for box in block]


def _at(block: Sequence[slice]) -> tuple[slice, ...]:
    """Return the index of a block in a tensor ``(N, channels, *output)``."""
    return (block[0], slice(None), *block[1:])


def _is_pointwise(kernel: Sequence[int], geometry: Geometry, source: Tensor, result_size: Sequence[int]) -> bool:
    """Whether each position of a contiguous source makes the same position of the result, and none is added."""
    same = math.prod(kernel) == 1 and set(geometry.stride) == {1} and not any(geometry.padding)
    return same and tuple(source.shape[2:]) == tuple(result_size) and source.is_contiguous()


def correlate(  # noqa: PLR0913  two tensors, a geometry and how to go about it
    source: Tensor,
    weight: Tensor,
    geometry: Geometry,
    output: Sequence[int],
    *,
    channels_last: bool = False,
    limit_bytes: int | None = None,
) -> Tensor:
    """Return the convolution of ``source`` with ``weight``, no bias.

    Args:
        source: ``(N, C, *size)``.
        weight: ``(O, C / groups, *kernel)``.
        geometry: Stride, padding, dilation and groups; ``transposed`` is not looked at.
        output: Spatial size wanted; at most what the geometry gives.
        channels_last: Work and return with channels innermost.
        limit_bytes: Bytes of columns at a time; None for a share of what is free.

    Returns:
        ``(N, O, *output)``.

    Cost:
        ``2 * N * O * prod(output) * C / groups * prod(kernel)`` operations; columns of
        ``N * prod(output) * C * prod(kernel)`` elements are written and read once.
    """
    batch, channels, outputs, kernel = source.shape[0], source.shape[1], weight.shape[0], weight.shape[2:]
    groups = geometry.groups
    if not channels_last and _is_pointwise(kernel, geometry, source, output):
        flat = source.reshape(batch, groups, channels // groups, math.prod(output))
        product = torch.matmul(weight.reshape(groups, outputs // groups, channels // groups), flat)
        return product.reshape(batch, outputs, *output)
    padded = _pad(source, geometry.padding)
    if is_depthwise(weight.shape, geometry):
        return depthwise.correlate(padded, weight, geometry, output, channels_last=channels_last)
    windows = _windows(padded, kernel, geometry, output)
    columns = _Columns((batch, channels), kernel, output, geometry, source, limit_bytes)
    result = empty_like_layout((batch, outputs, *output), source, source.dtype, channels_last=channels_last)
    if channels_last and groups == 1:
        matrix = weight.movedim(0, -1).movedim(0, -2).reshape(columns.taps * channels, outputs)
        for block in columns.blocks:
            rows = torch.mm(columns.channels_last(windows, block), matrix)
            result[_at(block)] = rows.reshape(*_sizes(block), outputs).movedim(-1, 1)
        return result
    matrix = weight.reshape(groups, outputs // groups, channels // groups * columns.taps)
    for block in columns.blocks:
        rows = torch.bmm(matrix, columns.channels_first(windows, block))
        result[_at(block)] = rows.reshape(outputs, *_sizes(block)).movedim(0, 1)
    return result


def input_gradient(  # noqa: PLR0913  two tensors, a geometry and how to go about it
    gradient: Tensor,
    weight: Tensor,
    geometry: Geometry,
    size: Sequence[int],
    *,
    channels_last: bool = False,
    limit_bytes: int | None = None,
) -> Tensor:
    """Return the adjoint of ``correlate`` in its source: what a transposed convolution computes.

    Args:
        gradient: ``(N, O, *output)``.
        weight: ``(O, C / groups, *kernel)``.
        geometry: Of the convolution whose adjoint it is.
        size: Spatial size of the result.
        channels_last: Work and return with channels innermost.
        limit_bytes: Bytes of columns at a time; None for a share of what is free.

    Returns:
        ``(N, C, *size)``.

    Cost:
        As ``correlate``; each tap's part of the columns is added into the result.
    """
    batch, groups, kernel = gradient.shape[0], geometry.groups, weight.shape[2:]
    channels = weight.shape[1] * groups
    outputs = weight.shape[0]
    if not channels_last and _is_pointwise(kernel, geometry, gradient, size):
        flat = gradient.reshape(batch, groups, outputs // groups, math.prod(size))
        transposed = weight.reshape(groups, outputs // groups, channels // groups).transpose(1, 2)
        return torch.matmul(transposed, flat).reshape(batch, channels, *size)
    padded_shape = (batch, channels, *(n + 2 * pad for n, pad in zip(size, geometry.padding, strict=True)))
    if is_depthwise(weight.shape, geometry):
        padded = depthwise.input_gradient(gradient, weight, geometry, padded_shape, channels_last=channels_last)
    else:
        columns = _Columns((batch, channels), kernel, gradient.shape[2:], geometry, gradient, limit_bytes)
        dtype = accumulator_dtype(gradient.dtype)
        padded = empty_like_layout(padded_shape, gradient, dtype, channels_last=channels_last).zero_()
        _scatter(padded, gradient, weight, columns, channels_last=channels_last and groups == 1)
    if not any(geometry.padding):
        return padded.to(gradient.dtype)
    inside = (slice(pad, pad + n) for n, pad in zip(size, geometry.padding, strict=True))
    result = empty_like_layout((batch, channels, *size), gradient, gradient.dtype, channels_last=channels_last)
    return result.copy_(padded[(slice(None), slice(None), *inside)])  # a view would keep the padding's memory


def _scatter(padded: Tensor, gradient: Tensor, weight: Tensor, columns: _Columns, *, channels_last: bool) -> None:
    """Add the columns of the gradient, tap by tap, to where the windows read them from."""
    groups, taps, channels, outputs = columns.geometry.groups, columns.taps, columns.channels, weight.shape[0]
    if channels_last:
        matrix = weight.movedim(1, -1).reshape(outputs, taps * channels)
    else:
        matrix = weight.reshape(groups, outputs // groups, channels // groups * taps).transpose(1, 2)
    for block in columns.blocks:
        sizes = _sizes(block)
        part = gradient[_at(block)]
        if channels_last:
            rows = torch.mm(part.movedim(1, -1).reshape(positions(block), outputs), matrix)
            by_tap = rows.reshape(*sizes, taps, channels).movedim(-2, 0).movedim(-1, 2)
        else:
            rows = torch.bmm(matrix, part.movedim(1, 0).reshape(groups, outputs // groups, positions(block)))
            by_tap = rows.reshape(channels, taps, *sizes).movedim(1, 0).movedim(1, 2)
        for tap, where in tap_slices(columns.kernel, columns.geometry, block[1:]):
            padded[(block[0], slice(None), *where)] += by_tap[tap]


def weight_gradient(  # noqa: PLR0913  two tensors, a geometry and how to go about it
    gradient: Tensor,
    source: Tensor,
    kernel: Sequence[int],
    geometry: Geometry,
    *,
    channels_last: bool = False,
    limit_bytes: int | None = None,
) -> Tensor:
    """Return the adjoint of ``correlate`` in its weight.

    Args:
        gradient: ``(N, O, *output)``.
        source: ``(N, C, *size)``.
        kernel: Spatial size of the kernel.
        geometry: Of the convolution.
        channels_last: Work with channels innermost.
        limit_bytes: Bytes of columns at a time; None for a share of what is free.

    Returns:
        ``(O, C / groups, *kernel)``.

    Cost:
        As ``correlate``.
    """
    batch, channels, outputs, output = source.shape[0], source.shape[1], gradient.shape[1], gradient.shape[2:]
    groups = geometry.groups
    shape = (outputs, channels // groups, *kernel)
    padded = _pad(source, geometry.padding)
    columns = _Columns((batch, channels), kernel, output, geometry, source, limit_bytes)
    if is_depthwise(shape, geometry):
        found = depthwise.weight_gradient(gradient, padded, kernel, geometry, limit_bytes=columns.limit_bytes)
        return found.to(source.dtype)
    windows = _windows(padded, kernel, geometry, output)
    channels_last = channels_last and groups == 1
    total: Tensor | None = None
    for block in columns.blocks:
        part = gradient[_at(block)]
        if channels_last:
            left = part.movedim(1, -1).reshape(positions(block), outputs)
            found = torch.mm(left.t(), columns.channels_last(windows, block))
        else:
            left = part.movedim(1, 0).reshape(groups, outputs // groups, positions(block))
            found = torch.bmm(left, columns.channels_first(windows, block).transpose(1, 2))
        if len(columns.blocks) > 1:
            found = found.to(accumulator_dtype(found.dtype))
        total = found if total is None else total.add_(found)
    if total is None:
        return source.new_zeros(shape)
    total = total.to(source.dtype)
    if channels_last:
        return total.reshape(outputs, *kernel, channels).movedim(-1, 1)
    return total.reshape(shape)
