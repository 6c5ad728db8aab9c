"""The reference: zeros put between input elements, padding, and torch's own convolution with stride and dilation."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rocmend.kernels.ops.conv.conv.geometry import Geometry, checked
from rocmend.kernels.ops.conv.conv.operands import Call, five, planned_input_gradient

CONVOLUTIONS = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}


def conv_general(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] | tuple[Sequence[int], Sequence[int]] = 0,
    kernel_dilation: int | tuple[int, ...] = 1,
    input_dilation: int | tuple[int, ...] = 1,
    groups: int = 1,
    flip: bool = False,
) -> torch.Tensor:
    """Convolve; channels last, as ``function.conv_general``."""
    axes = x.dim() - 2
    before, after = (padding, padding) if isinstance(padding, int) or isinstance(padding[0], int) else padding
    low, high = (checked("conv", "padding", tuple(p) if not isinstance(p, int) else p, axes) for p in (before, after))
    wide = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    spread = spread_out(x.to(wide).movedim(-1, 1), checked("conv", "input_dilation", input_dilation, axes))
    pads = [n for pair in reversed(list(zip(low, high, strict=True))) for n in pair]
    spread = torch.nn.functional.pad(spread, pads)
    if x.shape[-1] == 0:  # torch gives no output channels then
        spread, weight = (
            spread.new_zeros((x.shape[0], groups, *spread.shape[2:])),
            weight.new_zeros((*weight.shape[:-1], 1)),
        )
    taps = weight.to(wide).movedim(-1, 1)
    if flip:
        taps = taps.flip(tuple(range(2, taps.dim())))
    out: torch.Tensor = CONVOLUTIONS[axes](
        spread,
        taps,
        None if bias is None else bias.to(wide),
        stride=checked("conv", "stride", stride, axes),
        dilation=checked("conv", "kernel_dilation", kernel_dilation, axes),
        groups=groups,
    )
    return out.movedim(1, -1).to(x.dtype)


def spread_out(x: torch.Tensor, steps: Sequence[int]) -> torch.Tensor:
    """Return ``[N, C, ...]`` with ``step - 1`` zeros between the elements of each axis."""
    for axis, step in enumerate(steps, start=2):
        if step > 1 and x.shape[axis] > 0:
            size = list(x.shape)
            size[axis] = (x.shape[axis] - 1) * step + 1
            wider = x.new_zeros(size)
            wider[(slice(None),) * axis + (slice(None, None, step),)] = x
            x = wider
    return x


def conv_weight_gradient(
    x: torch.Tensor, gradient: torch.Tensor, kernel_size: tuple[int, ...], **options: object
) -> torch.Tensor:
    """Return the weight gradient of ``conv_general`` by automatic differentiation."""
    groups = options.get("groups", 1)
    channels = x.shape[-1] // groups if isinstance(groups, int) else 0
    weight = torch.zeros(
        (gradient.shape[-1], *kernel_size, channels), dtype=x.dtype, device=x.device, requires_grad=True
    )
    with torch.enable_grad():
        out = conv_general(x.detach(), weight, **options)  # type: ignore[arg-type]
    return torch.autograd.grad(out, weight, gradient.to(out.dtype))[0]


def plan(
    direction: str,
    x: torch.Tensor,
    other: torch.Tensor,
    _bias: torch.Tensor | None,
    geometry: Geometry,
    shape: tuple[int, ...],
) -> Call:
    """Plan calls of the reference; see ``function.planned``."""
    if direction == "input":
        return planned_input_gradient(plan, x, other, geometry, shape)
    axes = geometry.axes
    options: dict[str, object] = {
        "stride": tuple(axis.stride for axis in axes),
        "padding": (tuple(axis.padding for axis in axes), tuple(axis.end_padding for axis in axes)),
        "kernel_dilation": tuple(axis.dilation for axis in axes),
        "input_dilation": tuple(axis.input_dilation for axis in axes),
        "groups": geometry.groups,
        "flip": geometry.flip,
    }

    def call(x: torch.Tensor, other: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        if direction == "weight":
            taps = tuple(axis.taps for axis in axes)
            return conv_weight_gradient(five(x), five(other), taps, **options).reshape(shape)
        return conv_general(five(x), five(other), bias, **options).reshape(shape)  # type: ignore[arg-type]

    return call
