"""Pooling, padding and resizing."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("pooling", tags=("miopen",), slow="miopen-find")


@family.probe("maxpool2d", "2-d max pooling", ("float32", "float16"))
def maxpool2d(ctx: Context) -> Case:
    return Case(torch.nn.MaxPool2d(3, 2, 1), (ctx.randn(2, 8, 33, 31),))


@family.probe("maxpool2d-backward", "gradients of 2-d max pooling", ("float32",))
def maxpool2d_backward(ctx: Context) -> Case:
    return Case(torch.nn.MaxPool2d(3, 2, 1), (ctx.distinct(1, 4, 31, 31),), backward=True)


@family.probe("avgpool2d", "2-d mean pooling, with gradients", ("float32", "float16"))
def avgpool2d(ctx: Context) -> Case:
    return Case(torch.nn.AvgPool2d(3, 2, 1), (ctx.randn(2, 8, 33, 31),), backward=True)


@family.probe("adaptive-pool", "pooling to a given size", ("float32",))
def adaptive(ctx: Context) -> Case:
    def pool(x: torch.Tensor) -> list[torch.Tensor]:
        functions = torch.nn.functional
        return [functions.adaptive_avg_pool2d(x, (5, 3)), functions.adaptive_avg_pool2d(x, 1)]

    return Case(pool, (ctx.randn(2, 8, 23, 17),))


@family.probe("pool3d", "3-d pooling", ("float32",))
def pool3d(ctx: Context) -> Case:
    return Case(
        lambda x: [torch.nn.functional.max_pool3d(x, 2), torch.nn.functional.avg_pool3d(x, 3, 2)],
        (ctx.randn(2, 3, 9, 11, 13),),
    )


@family.probe("interpolate", "resizing, nearest and bilinear", ("float32",))
def interpolate(ctx: Context) -> Case:
    resize = torch.nn.functional.interpolate
    return Case(
        lambda x: [
            resize(x, scale_factor=2, mode="nearest"),
            resize(x, size=(19, 29), mode="bilinear", align_corners=False),
        ],
        (ctx.randn(2, 3, 13, 17),),
    )


@family.probe("pad", "constant, reflected and repeated borders", ("float32", "float16"))
def pad(ctx: Context) -> Case:
    border = torch.nn.functional.pad
    return Case(
        lambda x: [
            border(x, (1, 2, 3, 0), value=1.5),
            border(x, (2, 2, 1, 1), mode="reflect"),
            border(x, (1, 3, 2, 2), mode="replicate"),
        ],
        (ctx.randn(2, 3, 9, 11),),
        exact=True,
    )
