"""The shape of a convolution."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

from rocmend.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial axis; ``x`` is read at ``(o·stride - padding + k·dilation) / input_dilation``.

    Args:
        size: Input elements.
        out: Output elements.
        taps: Taps of the kernel.
        stride: Step of the output over the dilated input.
        padding: Zeros before the dilated input; negative crops.
        dilation: Step between taps; negative where taps run backwards.
        input_dilation: Step between input elements, zeros between them.
    """

    size: int
    out: int
    taps: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1
    input_dilation: int = 1

    @property
    def phases(self) -> int:
        """Outputs ``o`` with equal ``o mod phases`` use the same taps."""
        return self.input_dilation // math.gcd(self.input_dilation, self.stride)

    @property
    def tap_step(self) -> int:
        """Among the taps, one in so many falls on an input element."""
        return self.input_dilation // math.gcd(self.input_dilation, self.dilation)

    @property
    def span(self) -> int:
        """Elements of the dilated input."""
        return (self.size - 1) * self.input_dilation + 1 if self.size else 0

    @property
    def reach(self) -> int:
        """Elements of the dilated input from the first tap to the last."""
        return (self.taps - 1) * self.dilation + 1

    @property
    def end_padding(self) -> int:
        """Zeros after the dilated input; negative crops, and elements that no output reads are cropped."""
        return (self.out - 1) * self.stride + self.reach - self.span - self.padding

    @property
    def transposed_padding(self) -> tuple[int, int]:
        """Padding and output_padding of torch's transposed convolution that this axis of a flipped one is."""
        own = self.reach - 1 - self.padding
        return own, self.out - ((self.size - 1) * self.input_dilation - 2 * own + self.reach)

    def padding_after(self, padding_after: int) -> Axis:
        """Return the axis with its output size computed from the padding after the input.

        Raises:
            UsageError: The kernel does not fit in the padded input.
        """
        reach, room = self.reach, self.span + self.padding + padding_after - self.reach
        if room < 0:
            raise UsageError(
                "conv",
                f"expected an input that the kernel fits in, got {self.size} elements ({room + reach} padded) for "
                f"taps that reach over {reach}.",
                next_step="Pad the input or use a smaller kernel or dilation.",
            )
        return replace(self, out=room // self.stride + 1)


@dataclass(frozen=True, eq=False)
class Geometry:
    """A convolution: its axes, always three (those in front have one element), channels and groups.

    Compared and hashed by identity, which costs nothing at each call: ``geometry_of`` returns the same one for the same
    shapes and options.

    Args:
        batch: Images.
        c_in: Input channels, all groups together.
        c_out: Output channels, all groups together.
        groups: Groups.
        axes: Depth, height, width.
        flip: Taps run backwards.
    """

    batch: int
    c_in: int
    c_out: int
    groups: int
    axes: tuple[Axis, Axis, Axis]
    flip: bool = False

    @functools.cached_property
    def taps(self) -> int:
        """Taps over all axes."""
        return math.prod(axis.taps for axis in self.axes)

    @functools.cached_property
    def pixels_out(self) -> int:
        """Images times output pixels."""
        return self.batch * math.prod(axis.out for axis in self.axes)

    @functools.cached_property
    def output_shape(self) -> tuple[int, ...]:
        """``[N, D, H, W, O]``."""
        return (self.batch, *(axis.out for axis in self.axes), self.c_out)

    @functools.cached_property
    def weight_shape(self) -> tuple[int, ...]:
        """``[O, D, H, W, C / groups]``."""
        return (self.c_out, *(axis.taps for axis in self.axes), self.c_in // self.groups)

    @functools.cached_property
    def is_direct(self) -> bool:
        """Whether windows slide over the input as it is, with the taps in their order."""
        return not self.flip and all(axis.input_dilation == 1 for axis in self.axes)

    @functools.cached_property
    def torch_kind(self) -> str | None:
        """Which of torch's convolutions it is: ``direct``, ``transposed``, or None."""
        axes = self.axes
        if 0 in (self.pixels_in, self.pixels_out, self.c_in, self.c_out, self.taps):
            return None
        if self.is_direct:
            even = all(axis.padding >= 0 and axis.out == axis.padding_after(axis.padding).out for axis in axes)
            return "direct" if even else None
        if not self.flip or any(axis.stride != 1 for axis in axes):
            return None
        pairs = [(axis, *axis.transposed_padding) for axis in axes]
        fits = all(own >= 0 and 0 <= extra < max(axis.input_dilation, axis.dilation) for axis, own, extra in pairs)
        return "transposed" if fits else None

    @functools.cached_property
    def pixels_in(self) -> int:
        """Images times input pixels."""
        return self.batch * math.prod(axis.size for axis in self.axes)

    @functools.cached_property
    def transposed(self) -> Geometry:
        """The convolution that gives the gradient with respect to the input from that of the output.

        With ``x = (o·s - p + k·d) / t`` solved for ``o``: ``o = (x·t + p - k·d) / s``: stride and input dilation change
        places, the padding becomes ``-p`` and the taps run backwards: a flip, and a shift by ``(taps - 1)·d``.
        """
        axes = tuple(
            Axis(
                axis.out,
                axis.size,
                axis.taps,
                stride=axis.input_dilation,
                padding=(axis.taps - 1) * axis.dilation - axis.padding,
                dilation=axis.dilation,
                input_dilation=axis.stride,
            )
            for axis in self.axes
        )
        return Geometry(self.batch, self.c_out, self.c_in, self.groups, (axes[0], axes[1], axes[2]), not self.flip)


def reciprocal(divisor: int) -> tuple[int, int]:
    """Return the factor and the shift with which kernels divide numbers below 2³¹ (``kernels.geometry.divided``).

    ``n // divisor = (2·n·factor) >> (32 + shift)`` with the least factor that is at least ``2**(31 + shift) / divisor``
    and a shift of the divisor's bits: it is above by less than one, which adds less than ``1 / divisor`` to the result.
    The factor has 32 bits and is returned as the signed number of the same bits, so that kernels always get an int32.
    """
    shift = (divisor - 1).bit_length()
    factor = -(-(1 << (31 + shift)) // divisor)
    return factor - (1 << 32) if factor >= 1 << 31 else factor, shift


def collapsed(sizes: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """Return the step between neighbours of axes that are as good as one, 0 where they have one element; else None."""
    step, expected = 0, None
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if expected is None:
            step = stride
        elif stride != expected:
            return None
        expected = stride * size
    return step


def checked(name: str, what: str, value: int | tuple[int, ...], axes: int) -> tuple[int, ...]:
    """Return one number for each axis.

    Raises:
        UsageError: Another number of numbers.
    """
    if isinstance(value, int):
        return (value,) * axes
    if len(value) != axes:
        raise UsageError(name, f"expected {what} to be a number or {axes} numbers, got {value}.")
    return tuple(value)


@functools.lru_cache(maxsize=4096)
def geometry_of(
    name: str,
    x: tuple[int, ...],
    weight: tuple[int, ...],
    stride: int | tuple[int, ...],
    padding: int | tuple[int, ...] | tuple[tuple[int, ...], tuple[int, ...]],
    kernel_dilation: int | tuple[int, ...],
    input_dilation: int | tuple[int, ...],
    groups: int,
    flip: bool,
) -> Geometry:
    """Return the geometry of a convolution of shapes ``[N, spatial..., C]`` and ``[O, taps..., C / groups]``.

    Raises:
        UsageError: Shapes or options that do not fit.
    """
    axes = len(x) - 2
    if axes not in (1, 2, 3) or len(weight) != len(x):
        raise UsageError(name, f"expected x and weight with 3 to 5 axes each, got {tuple(x)} and {tuple(weight)}.")
    c_out, c_in = weight[0], x[-1]
    if groups < 1 or c_in % groups or c_out % groups or weight[-1] != c_in // groups:
        raise UsageError(
            name,
            f"expected weight [O, taps..., C / groups] with O and C multiples of groups = {groups}, "
            f"got x {tuple(x)} and weight {tuple(weight)}.",
        )
    paired = not isinstance(padding, int) and len(padding) == 2 and not isinstance(padding[0], int)
    before: Any = padding[0] if paired else padding  # type: ignore[index]
    after: Any = padding[1] if paired else padding  # type: ignore[index]
    rows = [
        checked(name, what, value if isinstance(value, int) else tuple(value), axes)
        for what, value in (
            ("stride", stride),
            ("padding", before),
            ("padding", after),
            ("kernel_dilation", kernel_dilation),
            ("input_dilation", input_dilation),
        )
    ]
    if min(*rows[0], *rows[3], *rows[4]) < 1:
        raise UsageError(name, "expected strides and dilations of at least 1.")
    found = [
        Axis(x[1 + i], 0, weight[1 + i], rows[0][i], rows[1][i], rows[3][i], rows[4][i]).padding_after(rows[2][i])
        for i in range(axes)
    ]
    three = [Axis(1, 1, 1)] * (3 - axes) + found
    return Geometry(x[0], c_in, c_out, groups, (three[0], three[1], three[2]), flip)


@functools.lru_cache(maxsize=4096)
def transposed_geometry_of(
    x: tuple[int, ...],
    weight: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    output_padding: tuple[int, ...],
    groups: int,
) -> Geometry:
    """Return the geometry of the convolution whose input gradient torch's transposed one is: it goes from output to x.

    Args:
        x: ``[N, spatial..., C]``.
        weight: ``[C, taps..., O / groups]``.
        stride: For each axis, as are the others.
        padding: Cropped from the output.
        dilation: Step between taps.
        output_padding: Added after the output.
        groups: Groups.

    Raises:
        UsageError: The output would have a negative size.
    """
    axes = [Axis(1, 1, 1)] * (5 - len(x))
    numbers = zip(x[1:-1], weight[1:-1], stride, padding, dilation, output_padding, strict=True)
    for size, taps, step, pad, spread, extra in numbers:
        out = (size - 1) * step - 2 * pad + (taps - 1) * spread + 1 + extra
        if out < 0:
            raise UsageError(
                "convolution",
                f"expected an output of no negative size, got {out}.",
                why=f"The input has {size} elements, the kernel {taps}, and {pad} are cropped from both sides.",
                next_step="Give a larger input or less padding.",
            )
        axes.append(Axis(out, size, taps, step, pad, spread))
    return Geometry(x[0], weight[-1] * groups, x[-1], groups, (axes[0], axes[1], axes[2]))
