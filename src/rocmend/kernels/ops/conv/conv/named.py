"""Convolutions under the names that MLX and torch have for them."""

from __future__ import annotations

import functools

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.ops.conv.conv.function import Options, conv_general, convolve, hashable
from rocmend.kernels.ops.conv.conv.geometry import checked

Numbers = int | tuple[int, ...]


def conv1d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> torch.Tensor:
    """Convolve over 1 axis, channels last; see ``conv_general``.

    Args:
        x: ``[N, W, C]``.
        weight: ``[O, kW, C / groups]``.
        bias: ``[O]``, or None.
        stride: Step of the output.
        padding: Zeros on both sides.
        dilation: Step between taps.
        groups: Groups of channels.
    """
    if x.dim() != 3:
        raise _axes_error("conv1d", x, 1)
    return convolve(x, weight, bias, _plain(stride, padding, dilation, groups))


def conv2d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> torch.Tensor:
    """Convolve over 2 axes, channels last; see ``conv_general``.

    Args:
        x: ``[N, H, W, C]``.
        weight: ``[O, kH, kW, C / groups]``.
        bias: ``[O]``, or None.
        stride: Step of the output.
        padding: Zeros on both sides.
        dilation: Step between taps.
        groups: Groups of channels.
    """
    if x.dim() != 4:
        raise _axes_error("conv2d", x, 2)
    return convolve(x, weight, bias, _plain(stride, padding, dilation, groups))


def conv3d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    stride: Numbers = 1,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> torch.Tensor:
    """Convolve over 3 axes, channels last; see ``conv_general``.

    Args:
        x: ``[N, D, H, W, C]``.
        weight: ``[O, kD, kH, kW, C / groups]``.
        bias: ``[O]``, or None.
        stride: Step of the output.
        padding: Zeros on both sides.
        dilation: Step between taps.
        groups: Groups of channels.
    """
    if x.dim() != 5:
        raise _axes_error("conv3d", x, 3)
    return convolve(x, weight, bias, _plain(stride, padding, dilation, groups))


def conv_transpose1d(
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
    """Transposed convolution over 1 axis, channels last, weight ``[O, taps..., C / groups]`` as in MLX.

    Args:
        x: ``[N, W, C]``.
        weight: ``[O, kW, C / groups]``.
        bias: ``[O]``, or None.
        stride: Step between input elements in the output.
        padding: Elements cropped from both sides of the output.
        dilation: Step between taps.
        output_padding: Elements added after the output.
        groups: Groups of channels.
    """
    if x.dim() != 3:
        raise _axes_error("conv_transpose1d", x, 1)
    return _transpose(x, weight, bias, stride, padding, dilation, output_padding, groups)


def conv_transpose2d(
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
    """Transposed convolution over 2 axes, channels last, weight ``[O, taps..., C / groups]`` as in MLX.

    Args:
        x: ``[N, H, W, C]``.
        weight: ``[O, kH, kW, C / groups]``.
        bias: ``[O]``, or None.
        stride: Step between input elements in the output.
        padding: Elements cropped from both sides of the output.
        dilation: Step between taps.
        output_padding: Elements added after the output.
        groups: Groups of channels.
    """
    if x.dim() != 4:
        raise _axes_error("conv_transpose2d", x, 2)
    return _transpose(x, weight, bias, stride, padding, dilation, output_padding, groups)


def conv_transpose3d(
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
    """Transposed convolution over 3 axes, channels last, weight ``[O, taps..., C / groups]`` as in MLX.

    Args:
        x: ``[N, D, H, W, C]``.
        weight: ``[O, kD, kH, kW, C / groups]``.
        bias: ``[O]``, or None.
        stride: Step between input elements in the output.
        padding: Elements cropped from both sides of the output.
        dilation: Step between taps.
        output_padding: Elements added after the output.
        groups: Groups of channels.
    """
    if x.dim() != 5:
        raise _axes_error("conv_transpose3d", x, 3)
    return _transpose(x, weight, bias, stride, padding, dilation, output_padding, groups)


def _plain(stride: Numbers, padding: Numbers, dilation: Numbers, groups: int) -> Options:
    if stride.__class__ is padding.__class__ is dilation.__class__ is int:
        return stride, padding, dilation, 1, groups, False
    return hashable(stride), hashable(padding), hashable(dilation), 1, groups, False


def _axes_error(name: str, x: torch.Tensor, axes: int) -> UsageError:
    return UsageError(name, f"expected x with {axes + 2} axes, channels last, got {tuple(x.shape)}.")


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
