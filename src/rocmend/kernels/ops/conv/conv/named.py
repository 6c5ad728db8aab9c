"""Convolutions under the names that MLX and torch have for them."""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.ops.conv.conv.function import Options, conv_general, convolve, options_of
from rocmend.kernels.ops.conv.conv.geometry import checked

Numbers = int | tuple[int, ...]
Convolve = Callable[..., torch.Tensor]
_SPATIAL = {1: "W", 2: "H, W", 3: "D, H, W"}
_SHAPES = """Args:
        x: ``[N, {spatial}, C]``.
        weight: ``[O, {taps}, C / groups]``.
        bias: ``[O]``, or None."""


def _direct(axes: int) -> Convolve:
    """Return the convolution over so many axes."""
    name = f"conv{axes}d"

    def conv(
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        *,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        groups: int = 1,
    ) -> torch.Tensor:
        """Convolve over {axes}, channels last; see ``conv_general``.

        {shapes}
            stride: Step of the output.
            padding: Zeros on both sides.
            dilation: Step between taps.
            groups: Groups of channels.
        """
        _check_axes(name, x, axes)
        return convolve(x, weight, bias, options_of(stride, padding, dilation, 1, groups, False))

    return _named(conv, name, axes)


def _transposed(axes: int) -> Convolve:
    """Return the transposed convolution over so many axes."""
    name = f"conv_transpose{axes}d"

    def conv(
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None = None,
        *,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        output_padding: Numbers = 0,
        groups: int = 1,
    ) -> torch.Tensor:
        """Transposed convolution over {axes}, channels last, with the weight as MLX has it.

        {shapes}
            stride: Step between input elements in the output.
            padding: Elements cropped from both sides of the output.
            dilation: Step between taps.
            output_padding: Elements added after the output.
            groups: Groups of channels.
        """
        _check_axes(name, x, axes)
        return _transpose(x, weight, bias, stride, padding, dilation, output_padding, groups)

    return _named(conv, name, axes)


def _named(function: Convolve, name: str, axes: int) -> Convolve:
    """Give a function its name and the shapes in its docstring."""
    function.__name__ = function.__qualname__ = name
    spatial = _SPATIAL[axes]
    shapes = _SHAPES.format(spatial=spatial, taps="k" + spatial.replace(", ", ", k")).replace("\n", "\n    ")
    words = f"{axes} {'axis' if axes == 1 else 'axes'}"
    function.__doc__ = (function.__doc__ or "").replace("{axes}", words).replace("{shapes}", shapes)
    return function


def _check_axes(name: str, x: torch.Tensor, axes: int) -> None:
    if x.dim() != axes + 2:
        raise UsageError(name, f"expected x with {axes + 2} axes, channels last, got {tuple(x.shape)}.")


conv1d, conv2d, conv3d = map(_direct, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_transposed, (1, 2, 3))


def _transpose(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Numbers, padding: Numbers,
    dilation: Numbers, output_padding: Numbers, groups: int,
) -> torch.Tensor:  # fmt: skip
    given = (stride, padding, dilation, output_padding)
    options = _options(weight.shape[1:-1], *[one if one.__class__ is int else tuple(one) for one in given], groups)  # type: ignore[arg-type]  # no int is asked for a tuple
    return convolve(x, weight, bias, options)


@functools.lru_cache(maxsize=4096)
def _options(
    taps: tuple[int, ...], stride: Numbers, padding: Numbers, dilation: Numbers, output_padding: Numbers, groups: int
) -> Options:
    """Return the options of the convolution that a transposed one is."""
    pads, steps, extra = (
        checked("conv_transpose", what, value, len(taps))
        for what, value in (("padding", padding), ("dilation", dilation), ("output_padding", output_padding))
    )
    before = [step * (count - 1) - pad for count, step, pad in zip(taps, steps, pads, strict=True)]
    after = [one + more for one, more in zip(before, extra, strict=True)]
    return 1, (tuple(before), tuple(after)), dilation, stride, groups, True


def convolution(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    transposed: bool = False,
    output_padding: Numbers = 0,
    groups: int = 1,
) -> torch.Tensor:
    """Convolve with channels first, as ``torch.nn.functional.conv2d`` and ``conv_transpose2d`` do.

    Args:
        x: ``[N, C, spatial...]``; fastest in channels-last memory format, otherwise it is copied to it.
        weight: ``[O, C / groups, taps...]``; transposed: ``[C, O / groups, taps...]``.
        bias: ``[O]``, or None.
        stride: Step of the output (transposed: of the input).
        padding: Zeros on both sides (transposed: elements cropped).
        dilation: Step between taps.
        transposed: Compute the transposed convolution.
        output_padding: Elements added after a transposed convolution's output.
        groups: Groups of channels.

    Returns:
        ``[N, O, spatial...]`` in channels-last memory format.
    """
    last = x.movedim(1, -1)
    if not transposed:
        taps = weight.movedim(1, -1)
        out = conv_general(last, taps, bias, stride=stride, padding=padding, kernel_dilation=dilation, groups=groups)
        return out.movedim(-1, 1)
    if groups < 1 or weight.shape[0] % groups:
        raise UsageError("convolution", f"expected {weight.shape[0]} input channels in groups, got groups = {groups}.")
    grouped = weight.unflatten(0, (groups, weight.shape[0] // groups))
    taps = grouped.transpose(1, 2).flatten(0, 1).movedim(1, -1)
    return _transpose(last, taps, bias, stride, padding, dilation, output_padding, groups).movedim(-1, 1)
