"""Normalization layers."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("normalization", tags=("batchnorm", "miopen"), slow="miopen-find")
plain = Family("normalization")


@family.probe("batchnorm-train", "batch norm in training", smoke=True)
def batchnorm_train(ctx: Context) -> Case:
    return Case(torch.nn.BatchNorm2d(16).to(ctx.dtype).train(), (ctx.randn(8, 16, 9, 9) * 2 + 1,))


@family.probe("batchnorm-backward", "gradients of batch norm in training", ("float32", "float16"))
def batchnorm_backward(ctx: Context) -> Case:
    return Case(torch.nn.BatchNorm2d(16).to(ctx.dtype).train(), (ctx.randn(8, 16, 9, 9),), backward=True)


@family.probe("batchnorm-eval", "batch norm with running statistics")
def batchnorm_eval(ctx: Context) -> Case:
    norm = torch.nn.BatchNorm2d(16).eval()
    norm.running_mean = ctx.randn(16).float()
    norm.running_var = ctx.uniform(0.5, 2, 16).float()
    return Case(norm.to(ctx.dtype), (ctx.randn(4, 16, 9, 9),))


@family.probe("batchnorm-statistics", "batch norm's running statistics after three batches", ("float32",))
def batchnorm_statistics(ctx: Context) -> Case:
    def train(*batches: torch.Tensor) -> list[torch.Tensor]:
        norm = torch.nn.BatchNorm1d(16, device=batches[0].device, dtype=batches[0].dtype)
        for batch in batches:
            norm(batch)
        return list(norm.buffers())[:2]

    return Case(train, tuple(ctx.randn(33, 16) + place for place in range(3)))


@family.probe(
    "batchnorm-large", "batch norm over a large batch, as in a ResNet", ("float32", "float16"), tags=("resnet",)
)
def batchnorm_large(ctx: Context) -> Case:
    return Case(torch.nn.BatchNorm2d(64).to(ctx.dtype).train(), (ctx.randn(16, 64, 28, 28),))


@plain.probe("layernorm", "layer norm", smoke=True)
def layernorm(ctx: Context) -> Case:
    return Case(torch.nn.LayerNorm(769).to(ctx.dtype), (ctx.randn(4, 17, 769),))


@plain.probe("layernorm-backward", "gradients of layer norm", ("float32", "bfloat16"))
def layernorm_backward(ctx: Context) -> Case:
    return Case(torch.nn.LayerNorm(256).to(ctx.dtype), (ctx.randn(4, 17, 256),), backward=True)


@plain.probe("groupnorm", "group norm, with gradients", ("float32", "float16"))
def groupnorm(ctx: Context) -> Case:
    return Case(torch.nn.GroupNorm(4, 16).to(ctx.dtype), (ctx.randn(3, 16, 9, 11),), backward=True)


@plain.probe("instancenorm", "instance norm", ("float32", "float16"))
def instancenorm(ctx: Context) -> Case:
    return Case(torch.nn.InstanceNorm2d(8, affine=True).to(ctx.dtype), (ctx.randn(3, 8, 13, 13),))


@plain.probe("rmsnorm", "root-mean-square norm, with gradients")
def rmsnorm(ctx: Context) -> Case:
    return Case(torch.nn.RMSNorm(512, eps=1e-5).to(ctx.dtype), (ctx.randn(4, 17, 512),), backward=True)
