"""Convolutions."""

from __future__ import annotations

from typing import Any

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import FLOATS, Family

family = Family("convolution", tags=("miopen", "conv2d"), allowance="library", slow="miopen-find")


def layer(ctx: Context, kind: str, *sizes: Any, **settings: Any) -> torch.nn.Module:
    """Return a convolution of ``torch.nn`` in the probe's dtype."""
    made: torch.nn.Module = getattr(torch.nn, kind)(*sizes, **settings)
    return made.to(ctx.dtype)


@family.probe("conv1d-forward", "1-d convolution")
def conv1d(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv1d", 8, 12, 5, padding=2), (ctx.randn(3, 8, 101),))


@family.probe("conv1d-backward", "gradients of a 1-d convolution", ("float32", "float16"))
def conv1d_backward(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv1d", 8, 12, 5, padding=2), (ctx.randn(3, 8, 101),), backward=True)


@family.probe("conv2d-forward", "2-d convolution, 3 x 3", FLOATS, smoke=True)
def conv2d(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv2d", 3, 16, 3, padding=1), (ctx.randn(2, 3, 32, 32),))


@family.probe("conv2d-backward", "gradients of a 2-d convolution")
def conv2d_backward(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv2d", 6, 16, 3, padding=1), (ctx.randn(2, 6, 17, 19),), backward=True)


@family.probe("conv2d-1x1", "2-d convolution, 1 x 1")
def conv2d_1x1(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv2d", 32, 48, 1), (ctx.randn(2, 32, 15, 15),))


@family.probe("conv2d-7x7", "a network's first layer: 7 x 7, stride 2")
def conv2d_7x7(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv2d", 3, 32, 7, stride=2, padding=3, bias=False), (ctx.randn(1, 3, 65, 65),))


@family.probe("conv2d-grouped", "2-d convolution in 4 groups, with gradients", ("float32", "float16"))
def conv2d_grouped(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv2d", 16, 24, 3, groups=4, padding=1), (ctx.randn(2, 16, 13, 13),), backward=True)


@family.probe("conv2d-depthwise", "2-d convolution, a group a channel, with gradients", ("float32", "float16"))
def conv2d_depthwise(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv2d", 24, 24, 3, groups=24, padding=1), (ctx.randn(2, 24, 15, 15),), backward=True)


@family.probe("conv2d-dilated", "2-d convolution with gaps of 2, with gradients", ("float32", "float16"))
def conv2d_dilated(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv2d", 8, 12, 3, dilation=2, padding=2), (ctx.randn(2, 8, 19, 19),), backward=True)


@family.probe("conv2d-odd", "stride 3, uneven padding and kernel, odd channels")
def conv2d_odd(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv2d", 5, 7, (3, 5), stride=(3, 2), padding=(1, 0)), (ctx.randn(3, 5, 31, 37),))


@family.probe("conv2d-channels-last", "2-d convolution, channels last, with gradients")
def conv2d_channels_last(ctx: Context) -> Case:
    made = layer(ctx, "Conv2d", 8, 16, 3, padding=1).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Case(made, (ctx.randn(2, 8, 17, 17).to(memory_format=torch.channels_last),), backward=True)


@family.probe("conv3d-forward", "3-d convolution", ("float32", "float16"))
def conv3d(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv3d", 4, 8, 3, padding=1), (ctx.randn(2, 4, 9, 9, 9),))


@family.probe("conv3d-backward", "gradients of a 3-d convolution", ("float32",))
def conv3d_backward(ctx: Context) -> Case:
    return Case(layer(ctx, "Conv3d", 4, 8, 3, padding=1), (ctx.randn(1, 4, 7, 7, 7),), backward=True)


@family.probe("conv-transpose1d", "transposed 1-d convolution", ("float32",))
def conv_transpose1d(ctx: Context) -> Case:
    return Case(layer(ctx, "ConvTranspose1d", 8, 6, 4, stride=2, padding=1), (ctx.randn(2, 8, 33),))


@family.probe("conv-transpose2d", "transposed 2-d convolution, with gradients", ("float32", "float16"))
def conv_transpose2d(ctx: Context) -> Case:
    made = layer(ctx, "ConvTranspose2d", 8, 6, 3, stride=2, padding=1, output_padding=1)
    return Case(made, (ctx.randn(2, 8, 11, 11),), backward=True)


@family.probe("conv-transpose3d", "transposed 3-d convolution", ("float32",))
def conv_transpose3d(ctx: Context) -> Case:
    return Case(layer(ctx, "ConvTranspose3d", 4, 3, 3, stride=2, padding=1), (ctx.randn(1, 4, 5, 5, 5),))
