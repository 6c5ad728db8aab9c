"""The geometry of a convolution: its parameters for each spatial axis, output sizes, and blocks of output positions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rocmend.core.errors import RocmendError


class ConvolutionError(RocmendError):
    """A convolution was called with arguments that do not describe one."""

    code = "bad-convolution"


@dataclass(frozen=True, slots=True)
class Geometry:
    """What defines a convolution beside its tensors, one number for each spatial axis.

    Attributes:
        stride: Step between windows.
        padding: Zeros on both sides.
        dilation: Step between the taps of a window.
        output_padding: Rows added at the end of a transposed convolution's output.
        transposed: It is the adjoint of a convolution.
        groups: Number of groups that channels are split into.
    """

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    output_padding: tuple[int, ...]
    transposed: bool
    groups: int

    def span(self, kernel: Sequence[int]) -> tuple[int, ...]:
        """Return how many input rows a window covers on each axis: ``dilation * (kernel - 1) + 1``."""
        return tuple(step * (size - 1) + 1 for step, size in zip(self.dilation, kernel, strict=True))

    def output_size(self, size: Sequence[int], kernel: Sequence[int]) -> tuple[int, ...]:
        """Return the spatial size of the output for a spatial size of the input."""
        axes = zip(size, self.span(kernel), self.stride, self.padding, self.output_padding, strict=True)
        if self.transposed:
            return tuple((n - 1) * step - 2 * pad + span + extra for n, span, step, pad, extra in axes)
        return tuple((n + 2 * pad - span) // step + 1 for n, span, step, pad, _ in axes)


def make_geometry(  # noqa: PLR0913  one for each parameter of a convolution
    rank: int,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    output_padding: Sequence[int],
    *,
    transposed: bool,
    groups: int,
) -> Geometry:
    """Return the geometry of a convolution over ``rank`` spatial axes; a single number stands for all axes.

    Raises:
        ConvolutionError: A parameter has neither one number nor one for each axis, or one that is out of range.
    """

    def expand(name: str, values: Sequence[int], least: int) -> tuple[int, ...]:
        numbers = tuple(int(value) for value in values)
        if len(numbers) == 1:
            numbers *= rank
        if len(numbers) != rank or any(number < least for number in numbers):
            raise ConvolutionError("convolution", f"expected {name} to be {rank} numbers from {least}, got {values}.")
        return numbers

    if groups < 1:
        raise ConvolutionError("convolution", f"expected groups from 1, got {groups}.")
    return Geometry(
        expand("stride", stride, 1),
        expand("padding", padding, 0),
        expand("dilation", dilation, 1),
        expand("output_padding", output_padding, 0),
        transposed,
        groups,
    )


def blocks(shape: Sequence[int], limit: int) -> Iterator[tuple[slice, ...]]:
    """Cut an index space into boxes of at most ``limit`` positions, splitting leading axes first.

    Args:
        shape: Size of each axis.
        limit: Positions in a box at most; at least one is always taken.
    """
    if not shape or math.prod(shape) <= limit:
        yield tuple(slice(0, size) for size in shape)
        return
    inner = math.prod(shape[1:])
    if inner <= limit:
        step = max(1, limit // max(1, inner))
        rest = tuple(slice(0, size) for size in shape[1:])
        for start in range(0, shape[0], step):
            yield (slice(start, min(start + step, shape[0])), *rest)
        return
    for start in range(shape[0]):
        for tail in blocks(shape[1:], limit):
            yield (slice(start, start + 1), *tail)
